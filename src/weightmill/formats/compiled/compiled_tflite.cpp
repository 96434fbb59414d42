#include "compiled/compiled_tflite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/narrow.h>

#include "compiled/flatbuffer_map.h"
#include "compiled/tflite_schema.h"

namespace weightmill {
namespace {

using Table = FlatFile::Table;
using Vector = FlatFile::Vector;

constexpr std::string_view kNpuCode = "ethos-u";
constexpr std::uint64_t kCustom = 32;                       // builtin code of custom operators
constexpr std::uint8_t kNpuOptions[] = {0x01, 0x04, 0x01};  // a flexbuffer of the integer 1
constexpr std::uint64_t kUint8 = 3;                         // tensor type
constexpr std::uint32_t kNoTensor = 0xFFFFFFFF;             // an optional input that is left out

/// A tensor of bytes: the vectors that have to change with its length.
struct ByteTensor {
  Vector shape, data;
};

/// Where the parts of the NPU operators stand in the file.
struct Located {
  struct NpuOperator {
    std::string name;
    ByteTensor payload;
    std::size_t read_only = 0;
  };
  std::vector<NpuOperator> operators;
  std::vector<ByteTensor> read_only;
  std::vector<CompiledFile::CpuOperator> cpu_operators;
};

/// The bytes of a vector with elements of `element_bytes`; none where it is absent.
std::span<const std::uint8_t> bytes_of(const FlatFile& file, const Vector& vector, std::size_t element_bytes) {
  return file.bytes().subspan(vector.length == 0 ? 0 : vector.data(), vector.length * element_bytes);
}

struct Code {
  std::uint64_t builtin = 0;
  std::span<const std::uint8_t> custom;
  bool is_npu() const {
    return builtin == kCustom && std::equal(custom.begin(), custom.end(), kNpuCode.begin(), kNpuCode.end());
  }
};

std::vector<Code> operator_codes(const FlatFile& file) {
  const Vector codes = file.vector_field(file.table(file.target(0)), 1, 4);
  std::vector<Code> result;
  for (std::size_t i = 0; i < codes.length; ++i) {
    const Table code = file.table(file.target(codes.data() + 4 * i));
    result.push_back({std::max(file.number(code, 0, 1), file.number(code, 3, 4)),
                      bytes_of(file, file.vector_field(code, 1, 1), 1)});
  }
  return result;
}

/// Reads the graph, as far as NPU operators are concerned. The file's map was made before, so all offsets are sound.
class Finder {
 public:
  explicit Finder(const FlatFile& file) : file_(file), model_(file.table(file.target(0))) {}

  Located find() {
    codes_ = operator_codes(file_);
    count_buffer_uses();
    const Vector subgraphs = tables(model_, 2);
    for (std::size_t i = 0; i < subgraphs.length; ++i) read_subgraph(i, element(subgraphs, i));
    if (located_.operators.empty()) {
      fail(ErrorCode::unsupported, file_.name(),
           "nothing to do: it has no ethos-u operator; was it compiled for Ethos-U?");
    }
    return std::move(located_);
  }

 private:
  /// How one tensor of the subgraph at hand is used.
  struct Uses {
    std::size_t as_payload = 0, as_read_only = 0, otherwise = 0;
  };

  Vector tables(const Table& table, unsigned id) const { return file_.vector_field(table, id, 4); }
  Table element(const Vector& vector, std::size_t i) const { return file_.table(file_.target(vector.data() + 4 * i)); }

  void count_buffer_uses() {
    const Vector buffers = tables(model_, 4);
    buffer_uses_.resize(buffers.length);
    for (std::size_t i = 0; i < buffers.length; ++i) {
      const Table buffer = element(buffers, i);
      if (file_.number(buffer, 1, 8) != 0 || file_.number(buffer, 2, 8) != 0) {
        fail(ErrorCode::unsupported, file_.name(), fmt::format("buffer {} is stored behind the flatbuffer", i));
      }
    }
    const Vector metadata = tables(model_, 6);
    for (std::size_t i = 0; i < metadata.length; ++i) use_buffer(file_.number(element(metadata, i), 1, 4), "metadata");
    const Vector subgraphs = tables(model_, 2);
    for (std::size_t i = 0; i < subgraphs.length; ++i) {
      const Vector tensors = tables(element(subgraphs, i), 0);
      for (std::size_t j = 0; j < tensors.length; ++j) use_buffer(file_.number(element(tensors, j), 2, 4), "a tensor");
    }
  }

  void use_buffer(std::uint64_t index, const char* user) {
    if (index >= buffer_uses_.size()) {
      fail(ErrorCode::bad_file, file_.name(), fmt::format("{} uses buffer {} of {}", user, index, buffer_uses_.size()));
    }
    ++buffer_uses_[index];
  }

  void read_subgraph(std::size_t index, const Table& subgraph) {
    uses_.clear();
    read_only_of_tensor_.clear();
    const Vector tensors = tables(subgraph, 0), operators = tables(subgraph, 3);
    for (const unsigned id : {1u, 2u}) use_tensors(file_.vector_field(subgraph, id, 4), tensors, 0);
    for (std::size_t i = 0; i < operators.length; ++i) {
      read_operator(fmt::format("subgraph {}, operator {}", index, i), element(operators, i), tensors);
    }
    require_own_tensors(index);
  }

  std::size_t tensor_index(const Vector& indices, std::size_t i, const Vector& tensors) const {
    const std::uint32_t index = file_.u32(indices.data() + 4 * i);
    if (index >= tensors.length) {
      fail(ErrorCode::bad_file, file_.name(),
           fmt::format("an operator uses tensor {} of {}", static_cast<std::int32_t>(index), tensors.length));
    }
    return index;
  }

  /// Counts the tensors from number `first` on as used by something that is not the NPU's driver.
  void use_tensors(const Vector& indices, const Vector& tensors, std::size_t first) {
    n_uses_ += indices.length;
    // Operators may share their lists; a sound file is longer than they are together.
    if (n_uses_ > file_.bytes().size()) {
      fail(ErrorCode::unsupported, file_.name(), "its operators share their lists of tensors");
    }
    for (std::size_t i = first; i < indices.length; ++i) {
      if (file_.u32(indices.data() + 4 * i) == kNoTensor) continue;
      ++uses_[tensor_index(indices, i, tensors)].otherwise;
    }
  }

  void read_operator(const std::string& name, const Table& op, const Vector& tensors) {
    const std::uint64_t code = file_.number(op, 0, 4);
    if (code >= codes_.size()) fail(ErrorCode::bad_file, name, fmt::format("has code {} of {}", code, codes_.size()));
    if (file_.number(op, 9, 8) != 0 || file_.number(op, 10, 8) != 0) {
      fail(ErrorCode::unsupported, name, "has options behind the flatbuffer");
    }
    if (file_.number(op, 11, 1) != 0)
      fail(ErrorCode::unsupported, name, "has options of StableHLO or another newer kind");
    const Vector inputs = file_.vector_field(op, 1, 4);
    const bool is_npu = codes_[code].is_npu();
    use_tensors(inputs, tensors, is_npu ? 2 : 0);
    use_tensors(file_.vector_field(op, 2, 4), tensors, 0);
    use_tensors(file_.vector_field(op, 8, 4), tensors, 0);
    if (is_npu) return read_npu_operator(name, op, inputs, tensors);
    read_cpu_operator(name, op, codes_[code], tensors);
  }

  void read_cpu_operator(const std::string& name, const Table& op, const Code& code, const Vector& tensors) {
    const auto options = bytes_of(file_, file_.vector_field(op, 5, 1), 1);
    CompiledFile::CpuOperator cpu{name, code.builtin, code.custom, options, {}};
    const Vector inputs = file_.vector_field(op, 1, 4);
    for (std::size_t i = 0; i < inputs.length; ++i) {
      if (file_.u32(inputs.data() + 4 * i) == kNoTensor) continue;
      const Table tensor = element(tensors, tensor_index(inputs, i, tensors));
      const Table buffer = element(tables(model_, 4), file_.number(tensor, 2, 4));
      const Vector data = file_.vector_field(buffer, 0, 1);
      if (data.length == 0) continue;
      cpu.constants.push_back({i, file_.number(tensor, 1, 1), bytes_of(file_, file_.vector_field(tensor, 0, 4), 4),
                               bytes_of(file_, data, 1)});
    }
    located_.cpu_operators.push_back(std::move(cpu));
  }

  void read_npu_operator(const std::string& name, const Table& op, const Vector& inputs, const Vector& tensors) {
    const auto bytes = bytes_of(file_, file_.vector_field(op, 5, 1), 1);
    if (!std::equal(bytes.begin(), bytes.end(), std::begin(kNpuOptions), std::end(kNpuOptions)) ||
        file_.number(op, 6, 1) != 0) {
      fail(ErrorCode::bad_file, name, "its custom options are not 01 04 01, as the driver of Ethos-U wants them");
    }
    if (inputs.length < 4) {
      fail(ErrorCode::bad_file, name,
           fmt::format("has {} inputs, wanted at least 4: commands, read-only data, scratch, fast scratch",
                       inputs.length));
    }
    const std::size_t payload = tensor_index(inputs, 0, tensors), read_only = tensor_index(inputs, 1, tensors);
    if (++uses_[payload].as_payload > 1)
      fail(ErrorCode::bad_file, name, "shares its command tensor with another operator");
    Located::NpuOperator located{name, byte_tensor(name, "input 0 (commands)", element(tensors, payload)), 0};
    if (++uses_[read_only].as_read_only == 1) {
      read_only_of_tensor_[read_only] = located_.read_only.size();
      located_.read_only.push_back(byte_tensor(name, "input 1 (read-only data)", element(tensors, read_only)));
    }
    located.read_only = read_only_of_tensor_.at(read_only);
    located_.operators.push_back(std::move(located));
  }

  ByteTensor byte_tensor(const std::string& name, const char* what, const Table& tensor) const {
    const std::uint64_t index = file_.number(tensor, 2, 4);
    ByteTensor result{file_.vector_field(tensor, 0, 4), file_.vector_field(element(tables(model_, 4), index), 0, 1)};
    if (buffer_uses_[index] != 1) fail(ErrorCode::bad_file, name, fmt::format("{} shares its buffer {}", what, index));
    if (file_.number(tensor, 1, 1) != kUint8 || result.shape.length != 1 || result.data.position == 0 ||
        file_.u32(result.shape.data()) != result.data.length) {
      fail(
          ErrorCode::bad_file, name,
          fmt::format("{} is not UINT8 of one dimension, as long as its buffer of {} bytes", what, result.data.length));
    }
    return result;
  }

  void require_own_tensors(std::size_t subgraph) const {
    for (const auto& [tensor, uses] : uses_) {
      if (uses.as_payload == 0 && uses.as_read_only == 0) continue;
      if (uses.otherwise == 0 && (uses.as_payload == 0 || uses.as_read_only == 0)) continue;
      fail(ErrorCode::bad_file, fmt::format("subgraph {}, tensor {}", subgraph, tensor),
           "holds commands or read-only data of the NPU, but something else uses it too");
    }
  }

  const FlatFile& file_;
  Table model_;
  std::vector<Code> codes_;
  std::vector<std::size_t> buffer_uses_;
  std::map<std::size_t, Uses> uses_;
  std::map<std::size_t, std::size_t> read_only_of_tensor_;
  std::uint64_t n_uses_ = 0;
  Located located_;
};

void require_tflite(std::span<const std::uint8_t> file, std::string_view name) {
  if (file.size() >= 8 && std::equal(file.begin() + 4, file.begin() + 8, "TFL3")) return;
  fail(ErrorCode::bad_file, name, "is no TFLite file: 'TFL3' is not at bytes 4 to 7");
}

/// A file opened twice over: what is where, and every offset.
struct Opened {
  Opened(std::span<const std::uint8_t> bytes, std::string_view name)
      : file(bytes, std::string(name)), map(file, tflite_model_schema()), located(Finder(file).find()) {
    const auto require_own = [&](const Vector& vector) {
      if (map.n_references(vector.position) == 1) return;
      fail(ErrorCode::unsupported, file.name(),
           fmt::format("the vector at byte {} is used for two things", vector.position));
    };
    const auto require_own_tensor = [&](const ByteTensor& tensor) {
      require_own(tensor.shape);
      require_own(tensor.data);
    };
    for (const auto& op : located.operators) require_own_tensor(op.payload);
    for (const auto& tensor : located.read_only) require_own_tensor(tensor);
  }
  FlatFile file;
  FlatbufferMap map;
  Located located;
};

void append_u32(std::vector<std::uint8_t>& bytes, std::size_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

/// A vector of bytes in the place of another, with what fills up to the same position modulo 16.
void add_edits(const ByteTensor& tensor, std::span<const std::uint8_t> bytes, std::vector<ByteEdit>& edits) {
  constexpr std::size_t kAlignment = 16;
  ByteEdit data{tensor.data.position, tensor.data.data() + tensor.data.length, {}};
  append_u32(data.bytes, bytes.size());
  data.bytes.insert(data.bytes.end(), bytes.begin(), bytes.end());
  while (data.bytes.size() % kAlignment != (data.end - data.begin) % kAlignment) data.bytes.push_back(0);
  ByteEdit shape{tensor.shape.position, tensor.shape.data() + 4, {}};
  append_u32(shape.bytes, 1);
  append_u32(shape.bytes, bytes.size());
  edits.push_back(std::move(data));
  edits.push_back(std::move(shape));
}

}  // namespace

CompiledFile open_compiled_tflite(std::span<const std::uint8_t> file, std::string_view name) {
  require_tflite(file, name);
  const Opened opened(file, name);
  CompiledFile compiled;
  for (const auto& op : opened.located.operators) {
    compiled.operators.push_back({op.name, bytes_of(opened.file, op.payload.data, 1), op.read_only});
  }
  for (const ByteTensor& tensor : opened.located.read_only)
    compiled.read_only.push_back(bytes_of(opened.file, tensor.data, 1));
  compiled.cpu_operators = opened.located.cpu_operators;
  return compiled;
}

std::vector<std::uint8_t> replace_compiled_tflite(std::span<const std::uint8_t> file, std::string_view name,
                                                  const std::vector<std::vector<std::uint8_t>>& payloads,
                                                  const std::vector<std::vector<std::uint8_t>>& read_only) {
  require_tflite(file, name);
  const Opened opened(file, name);
  if (payloads.size() != opened.located.operators.size() || read_only.size() != opened.located.read_only.size()) {
    fail(ErrorCode::bad_request, name, "another number of payloads or read-only tensors than the file has");
  }
  std::vector<ByteEdit> edits;
  for (std::size_t i = 0; i < payloads.size(); ++i) add_edits(opened.located.operators[i].payload, payloads[i], edits);
  for (std::size_t i = 0; i < read_only.size(); ++i) add_edits(opened.located.read_only[i], read_only[i], edits);
  std::sort(edits.begin(), edits.end(), [](const ByteEdit& a, const ByteEdit& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < edits.size(); ++i) {
    if (edits[i - 1].end > edits[i].begin) fail(ErrorCode::bad_file, name, "parts of its NPU operators overlap");
  }
  return opened.map.apply(edits);
}

bool is_compiled_tflite(std::span<const std::uint8_t> file) noexcept {
  try {
    require_tflite(file, "file");
    const auto codes = operator_codes(FlatFile(file, "file"));
    return std::any_of(codes.begin(), codes.end(), [](const Code& code) { return code.is_npu(); });
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace weightmill
