#include "wire.h"

#include <array>
#include <optional>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using google::protobuf::internal::WireFormatLite;
using Bytes = std::span<const std::uint8_t>;

/// protobuf's own default limit: a model that nests deeper is refused by its parser too.
constexpr int kMaxDepth = 100;

/// The messages through which a way leads to a TensorProto.
enum class Message { model, graph, node, attribute, tensor, sparse_tensor, function, training_info };

struct Child {
  Message parent;
  int field;
  Message message;
};

/// Field numbers of onnx.proto. A test holds this table against the generated classes.
constexpr std::array<Child, 19> kChildren{{
    {Message::model, 7, Message::graph},
    {Message::model, 20, Message::training_info},
    {Message::model, 25, Message::function},
    {Message::graph, 1, Message::node},
    {Message::graph, 5, Message::tensor},
    {Message::graph, 15, Message::sparse_tensor},
    {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},
    {Message::attribute, 6, Message::graph},
    {Message::attribute, 10, Message::tensor},
    {Message::attribute, 11, Message::graph},
    {Message::attribute, 22, Message::sparse_tensor},
    {Message::attribute, 23, Message::sparse_tensor},
    {Message::sparse_tensor, 1, Message::tensor},
    {Message::sparse_tensor, 2, Message::tensor},
    {Message::function, 7, Message::node},
    {Message::function, 11, Message::attribute},
    {Message::training_info, 1, Message::graph},
    {Message::training_info, 2, Message::graph},
}};

constexpr int kRawData = 9;

/// What a protobuf message may measure: sizes are signed 32-bit numbers there.
constexpr std::size_t kMaxModelBytes = 0x7fff'ffff;

std::optional<Message> child_of(Message parent, int field) {
  for (const Child& child : kChildren) {
    if (child.parent == parent && child.field == field) return child.message;
  }
  return std::nullopt;
}

/// One field as it stands in the file.
struct Field {
  int number;
  bool length_delimited;
  Bytes head;  ///< tag and, where there is one, length
  Bytes tag;
  Bytes value;  ///< without the length
};

bool is_raw_data(const Field& field, Message parent) {
  return parent == Message::tensor && field.number == kRawData && field.length_delimited;
}

/// Walks through the fields of one message.
class FieldReader {
 public:
  FieldReader(Bytes message, const std::string& where)
      : message_(message), where_(where), input_(message.data(), static_cast<int>(message.size())) {}

  std::optional<Field> next() {
    const std::size_t begin = position();
    if (begin == message_.size()) return std::nullopt;
    const std::uint32_t tag = input_.ReadTag();
    if (tag == 0 || WireFormatLite::GetTagFieldNumber(tag) == 0) refuse();
    const std::size_t tag_end = position();
    const bool delimited = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const std::size_t value_begin = delimited ? skip_value() : skip_field(tag, tag_end);
    return Field{WireFormatLite::GetTagFieldNumber(tag), delimited, part(begin, value_begin), part(begin, tag_end),
                 part(value_begin, position())};
  }

 private:
  std::size_t position() const { return static_cast<std::size_t>(input_.CurrentPosition()); }
  Bytes part(std::size_t begin, std::size_t end) const { return message_.subspan(begin, end - begin); }

  std::size_t skip_value() {
    int length = 0;
    if (!input_.ReadVarintSizeAsInt(&length)) refuse();
    const std::size_t begin = position();
    if (!input_.Skip(length) || position() - begin != static_cast<std::size_t>(length)) refuse();
    return begin;
  }

  std::size_t skip_field(std::uint32_t tag, std::size_t begin) {
    if (!WireFormatLite::SkipField(&input_, tag)) refuse();
    return begin;
  }

  [[noreturn]] void refuse() const {
    fail(ErrorCode::bad_file, where_, "is damaged, or no ONNX model: not made of protobuf fields");
  }

  Bytes message_;
  const std::string& where_;
  google::protobuf::io::CodedInputStream input_;
};

std::size_t varint_size(std::uint64_t value) { return google::protobuf::io::CodedOutputStream::VarintSize64(value); }

/// First pass: what size everything will have.
class Measurer {
 public:
  Measurer(const std::string& where, const RawDataReplacer::Measure& measure, std::vector<std::uint64_t>& sizes)
      : where_(where), measure_(measure), sizes_(sizes) {}

  std::uint64_t size_of(Bytes message, Message kind, int depth) {
    if (depth > kMaxDepth) fail(ErrorCode::bad_file, where_, "messages are nested more than 100 deep");
    FieldReader reader(message, where_);
    std::uint64_t size = 0;
    while (const auto field = reader.next()) size += size_of_field(*field, kind, depth);
    return size;
  }

 private:
  std::uint64_t size_of_field(const Field& field, Message kind, int depth) {
    if (!field.length_delimited) return field.head.size() + field.value.size();
    const auto child = child_of(kind, field.number);
    const bool raw_data = is_raw_data(field, kind);
    if (!child && !raw_data) return field.head.size() + field.value.size();
    const std::size_t slot = new_slot();
    const std::uint64_t size = raw_data ? measure_(field.value) : size_of(field.value, *child, depth + 1);
    sizes_[slot] = size;
    return field.tag.size() + varint_size(size) + size;
  }

  std::size_t new_slot() {
    if (sizes_.size() == RawDataReplacer::kMaxMessages) {
      fail(ErrorCode::unsupported, where_, "has more than 4 million nodes, attributes and tensors");
    }
    sizes_.push_back(0);
    return sizes_.size() - 1;
  }

  const std::string& where_;
  const RawDataReplacer::Measure& measure_;
  std::vector<std::uint64_t>& sizes_;
};

/// Second pass: the copy.
class Copier {
 public:
  Copier(const std::string& where, const RawDataReplacer::Emit& emit, const RawDataReplacer::Sink& sink,
         const std::vector<std::uint64_t>& sizes)
      : where_(where), emit_(emit), sink_(sink), sizes_(sizes) {}

  void copy(Bytes message, Message kind) {
    FieldReader reader(message, where_);
    while (const auto field = reader.next()) copy_field(*field, kind);
  }

 private:
  void copy_field(const Field& field, Message kind) {
    const auto child = field.length_delimited ? child_of(kind, field.number) : std::nullopt;
    if (is_raw_data(field, kind)) {
      put_head(field);
      emit_(field.value, sink_);
    } else if (child) {
      put_head(field);
      copy(field.value, *child);
    } else {
      sink_(field.head);
      sink_(field.value);
    }
  }

  void put_head(const Field& field) {
    sink_(field.tag);
    std::array<std::uint8_t, 10> length{};
    const auto* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(sizes_[next_++], length.data());
    sink_({length.data(), static_cast<std::size_t>(end - length.data())});
  }

  const std::string& where_;
  const RawDataReplacer::Emit& emit_;
  const RawDataReplacer::Sink& sink_;
  const std::vector<std::uint64_t>& sizes_;
  std::size_t next_ = 0;
};

}  // namespace

RawDataReplacer::RawDataReplacer(Bytes model, std::string_view where, const Measure& measure)
    : model_(model), where_(where) {
  if (model.size() > kMaxModelBytes) {
    fail(ErrorCode::bad_file, where_,
         fmt::format("has {} bytes, and protobuf ends at 2 GiB: save the model with external data", model.size()));
  }
  size_bytes_ = Measurer(where_, measure, sizes_).size_of(model, Message::model, 0);
}

void RawDataReplacer::write(const Emit& emit, const Sink& sink) const {
  Copier(where_, emit, sink, sizes_).copy(model_, Message::model);
}

}  // namespace weightmill
