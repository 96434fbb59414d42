#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "onnx_model.h"
#include "tensor_types.h"
#include "wire.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using namespace onnx_file;

/// What protobuf can hold in one file, less room for the graph itself.
constexpr std::uint64_t kMaxInline = 0x7fff'ffff - (std::uint64_t{16} << 20);
constexpr std::uint64_t kMaxFile = 0x7fff'ffff;

/// Large tensors begin on a page, so that a reader can map them one by one; small ones on a cache line.
std::uint64_t alignment_of(std::uint64_t size) { return size >= (std::uint64_t{1} << 20) ? 4096 : 64; }

/// The layout of the file of external data: which payload goes where. A payload that several tensors share goes there
/// once.
class DataLayout {
 public:
  explicit DataLayout(const PayloadTable& payloads) : payloads_(payloads) {}

  /// The offset of the payload behind `raw_data`.
  std::uint64_t place(const std::string& raw_data) {
    const Payload& payload = payloads_.at(raw_data);
    const Key key =
        payload.produce ? Key{nullptr, PayloadTable::index_of(raw_data)} : Key{payload.view.data(), payload.size_bytes};
    const auto known = offsets_.find(key);
    if (known != offsets_.end()) return known->second;
    const std::uint64_t offset = ceil_to(size_bytes_, alignment_of(payload.size_bytes));
    offsets_.emplace(key, offset);
    order_.push_back({offset, &payload});
    size_bytes_ = offset + payload.size_bytes;
    return offset;
  }

  std::uint64_t size_bytes() const { return size_bytes_; }

  void write(AtomicFile& file) const {
    constexpr std::array<std::uint8_t, 4096> zeros{};
    for (const auto& [offset, payload] : order_) {
      file.write(std::span(zeros).first(static_cast<std::size_t>(offset - file.size_bytes())));
      payload->write([&](std::span<const std::uint8_t> bytes) { file.write(bytes); });
    }
  }

 private:
  using Key = std::pair<const void*, std::uint64_t>;
  const PayloadTable& payloads_;
  std::map<Key, std::uint64_t> offsets_;
  std::vector<std::pair<std::uint64_t, const Payload*>> order_;
  std::uint64_t size_bytes_ = 0;
};

/// Gathers small writes.
class BufferedFile {
 public:
  explicit BufferedFile(AtomicFile& file) : file_(file) { buffer_.reserve(kBytes); }
  void write(std::span<const std::uint8_t> bytes) {
    if (buffer_.size() + bytes.size() > kBytes) flush();
    if (bytes.size() > kBytes) return file_.write(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 18;
  AtomicFile& file_;
  std::vector<std::uint8_t> buffer_;
};

std::uint64_t payload_bytes(ModelProto& model, const PayloadTable& payloads) {
  std::uint64_t sum = 0;
  for_each_tensor(model, [&](TensorProto& tensor, TensorPlace) {
    if (tensor.has_raw_data()) sum += payloads.at(tensor.raw_data()).size_bytes;
  });
  return sum;
}

bool goes_outside(ExternalData placement, std::uint64_t bytes, bool had_external_data) {
  if (placement != ExternalData::automatic) return placement == ExternalData::always;
  return bytes > kMaxInline || (had_external_data && bytes > OnnxModel::kSingleFileBytes);
}

void set_external(TensorProto& tensor, const std::string& location, std::uint64_t offset, std::uint64_t size) {
  tensor.clear_raw_data();
  tensor.clear_external_data();
  tensor.set_data_location(TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(size));
}

/// Gives each tensor its place in `model`: beside it in `location`, or inside where `layout` is null.
void place_tensors(ModelProto& model, const PayloadTable& payloads, const std::string& location, DataLayout* layout) {
  for_each_tensor(model, [&](TensorProto& tensor, TensorPlace place) {
    if (!tensor.has_raw_data()) return;
    const std::uint64_t size = payloads.at(tensor.raw_data()).size_bytes;
    const bool may_move = place == TensorPlace::initializer || tensor.data_location() == TensorProto::EXTERNAL;
    if (layout != nullptr && may_move && size >= OnnxModel::kExternalBytes) {
      set_external(tensor, location, layout->place(tensor.raw_data()), size);
    } else {
      tensor.clear_external_data();
      tensor.clear_data_location();
    }
  });
}

void check_no_input(const fs::path& out, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    std::error_code error;
    if (fs::equivalent(out, input, error) && !error) {
      fail(ErrorCode::bad_option, out.string(),
           "is a file of the input, which is read while the output is written: choose another output");
    }
  }
}

std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void write_data(const fs::path& path, const DataLayout& layout, std::optional<AtomicFile>& file) {
  file.emplace(path);
  layout.write(*file);
}

}  // namespace

std::uint64_t OnnxModel::write(const fs::path& out, ExternalData placement) const {
  ModelProto model = impl_->proto;
  const PayloadTable& payloads = impl_->payloads;
  const bool outside = goes_outside(placement, payload_bytes(model, payloads), impl_->had_external_data);
  const fs::path data_path = out.string() + ".data";
  DataLayout layout(payloads);
  place_tensors(model, payloads, data_path.filename().string(), outside ? &layout : nullptr);

  const std::string skeleton = model.SerializeAsString();
  const auto size_of = [&](std::span<const std::uint8_t> handle) {
    return static_cast<std::size_t>(
        payloads.at({reinterpret_cast<const char*>(handle.data()), handle.size()}).size_bytes);
  };
  const RawDataReplacer filled(as_bytes(skeleton), out.string(), size_of);
  if (filled.size_bytes() > kMaxFile) {
    fail(ErrorCode::unsupported, out.string(),
         fmt::format("would have {} bytes, and protobuf ends at 2 GiB: put the tensors into external data",
                     filled.size_bytes()));
  }
  if (out.empty()) return filled.size_bytes() + layout.size_bytes();

  check_no_input(out, files());
  if (outside) check_no_input(data_path, files());
  std::optional<AtomicFile> data;
  if (layout.size_bytes() > 0) write_data(data_path, layout, data);
  AtomicFile file(out);
  BufferedFile buffer(file);
  const auto sink = [&](std::span<const std::uint8_t> bytes) { buffer.write(bytes); };
  filled.write(
      [&](std::span<const std::uint8_t> handle, const RawDataReplacer::Sink& to) {
        payloads.at({reinterpret_cast<const char*>(handle.data()), handle.size()}).write(to);
      },
      sink);
  buffer.flush();
  if (data) data->commit();
  file.commit();
  return filled.size_bytes() + layout.size_bytes();
}

}  // namespace weightmill
