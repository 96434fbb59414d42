#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weightmill/base/mapped_file.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/fold.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// A constant of an ONNX model as its reader sees it: the stored elements behind the Cast, Identity and Transpose nodes
/// that stand between. Nothing is computed before it is read.
struct OnnxConstant {
  std::string name;  ///< of the stored tensor; no more than its first 512 bytes
  DType stored_dtype = DType::other;
  Shape stored_shape;
  std::vector<DType> casts;                ///< in the order of the data's way
  DType dtype = DType::other;              ///< as the reader sees it
  Shape shape;                             ///< as the reader sees it
  std::vector<std::int64_t> strides;       ///< of the stored elements along the axes of `shape`, in elements
  std::span<const std::uint8_t> bytes;     ///< row-major in `stored_shape`, little endian
  std::shared_ptr<const MappedFile> file;  ///< what `bytes` is a part of, or nothing
  std::shared_ptr<const std::vector<std::uint8_t>> owned;  ///< the same for bytes made from a tensor's typed fields

  /// Whether two constants of one model are the same elements seen in the same way.
  friend bool same_elements(const OnnxConstant& a, const OnnxConstant& b) {
    return a.bytes.data() == b.bytes.data() && a.bytes.size() == b.bytes.size() && a.stored_dtype == b.stored_dtype &&
           a.casts == b.casts && a.shape == b.shape && a.strides == b.strides;
  }
};

/// Elements [first, first + out.size()) of `constant` in the order of `shape`, each as float32. Gives the pages of a
/// mapped file back behind it. Requires: dtype f32, f16 or bf16, and the range inside the tensor.
void read_floats(const OnnxConstant& constant, std::uint64_t first, std::span<float> out);

/// All elements of an integer constant. Requires: no casts; at most 32 bits, and not u32.
std::vector<std::int32_t> read_integers(const OnnxConstant& constant);

/// A QuantizeLinear node whose inputs are all constants.
struct OnnxQuantize {
  std::size_t index = 0;  ///< the node's number in the model, by which OnnxModel::fold_quantize() knows it
  std::string graph;      ///< "" for the main graph, else e.g. "If_3/then_branch" or "function my.domain.Block"
  std::string node;       ///< the node's name, or its output's where it has none
  std::string output;
  OnnxConstant data;
  OnnxConstant scale;
  std::optional<OnnxConstant> zero_point;
  DType code_dtype = DType::other;  ///< of the output
  std::int64_t axis = 1;            ///< as written, may be negative
  std::int64_t block_size = 0;      ///< 0: not blocked
  DType division = DType::f32;      ///< the type that data / scale is rounded to
  std::string left_reason;          ///< why the graph forbids to fold it; empty if it does not
};

/// QuantizeLinear nodes that give the same codes, and those codes.
struct OnnxFold {
  std::vector<std::size_t> quantize;  ///< OnnxQuantize::index, not empty
  DType dtype = DType::other;         ///< of the codes
  Shape shape;
  /// Writes the codes, packed as ONNX stores them; called once for each time the model is written.
  std::function<void(const std::function<void(std::span<const std::uint8_t>)>& sink)> codes;
};

/// An operator's float weight, and what its quantization needs to know.
struct OnnxFloatWeight {
  std::size_t node = 0;    ///< the operator's number in the model, by which OnnxModel::dequantize_weights() knows it
  int input = 0;           ///< which of its inputs
  std::size_t source = 0;  ///< number of the stored tensor: the same for all that read it, in whatever way
  std::string graph;       ///< as OnnxQuantize::graph
  std::string name;        ///< the operator's name, or its output's where it has none
  std::string op;          ///< e.g. "Conv"
  OnnxConstant data;       ///< as the operator sees it
  bool was_input = false;        ///< it is an input of the model too, which a caller could replace (version 4 or later)
  std::vector<std::string> via;  ///< Constant, Cast, Identity and Transpose nodes between, from the operator backwards
  std::int64_t opset = 0;                   ///< of the default domain, where the operator stands
  std::optional<std::size_t> channel_axis;  ///< of `data`: the output channels; nothing: no axis has one scale for each
  std::optional<std::size_t> block_axis;    ///< of `data`: the axis of a dot product; nothing: there is not just one
  std::string no_channels;  ///< why channel_axis is missing
  std::string left_reason;  ///< why it cannot be quantized; empty if it can
  std::vector<std::string> other_readers;  ///< of the stored tensor, beside weights that can be quantized: "Add sum_3"
};

/// Input `input` of the operator with number `node`.
struct OnnxInput {
  std::size_t node = 0;
  int input = 0;
};

/// Integer weights that are to take the place of one float constant, behind a DequantizeLinear.
struct OnnxDequantization {
  std::vector<OnnxInput> readers;  ///< not empty; all see the same constant in the same way
  std::string name;                ///< of the float constant: what is new is named after it
  DType code_type = DType::i8;
  Shape shape;
  std::function<void(const std::function<void(std::span<const std::uint8_t>)>& sink)> codes;  ///< as OnnxFold::codes
  DType float_type = DType::f32;         ///< what the operators read: float32, float16 or bfloat16
  Shape scale_shape;                     ///< [] where there is one scale
  std::shared_ptr<const std::vector<float>> scale;
  std::vector<std::uint8_t> zero_point;  ///< one for each scale, packed like the codes; empty: none is written
  std::int64_t axis = 0;
  std::int64_t block_size = 0;
};

/// The least operator set of the default domain with a DequantizeLinear for such weights. Below it, DequantizeLinear of
/// com.microsoft takes its place, except for blocks.
std::int64_t dequantize_opset(DType code_type, bool per_axis, bool blocks) noexcept;

/// How an operator's weights are stored, as `inspect` shows it.
struct OnnxWeight {
  int scope = 0;      ///< number of the graph: 0 the main one, then functions and sub-graphs
  int index = 0;      ///< of the operator in its graph
  std::string graph;  ///< as OnnxQuantize::graph
  std::string node;
  std::string op;      ///< e.g. "Conv", or "com.microsoft.MatMulNBits"
  std::string weight;  ///< name of the stored constant
  Shape shape;         ///< as stored
  DType stored_dtype = DType::other;
  std::uint64_t bytes = 0;   ///< of the stored constant
  std::string quantization;  ///< "float", "dequantized", "quantized at run time" or "integer operator"
  std::string granularity;   ///< "per tensor", "per axis 0", "blocks of 32 along axis 0"; empty for float
  std::size_t n_scales = 0;  ///< 0: not dequantized, or scales computed at run time
  std::int64_t lowest_zero_point = 0, highest_zero_point = 0;
  DType activation_dtype = DType::other;  ///< codes behind the operator's first input; other: float or not known
};

/// An ONNX model in memory: its graph whole, the data of its tensors as views of the mapped files. Move-only.
///
/// Changes are edits of the graph as it was read; what this program does not understand is written back as it was.
class OnnxModel {
 public:
  /// Reads a model and maps its external data.
  /// Throws: bad_file if the file is missing or no ONNX model, if a tensor's data does not fit its shape, if external
  /// data is missing, too short or outside the model's directory, if names are defined twice or not at all, or if nodes
  /// form a cycle (each names the file, tensor or node).
  explicit OnnxModel(const std::filesystem::path& path);
  ~OnnxModel();
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;

  const std::filesystem::path& path() const;
  /// The model file and its files of external data.
  std::vector<std::filesystem::path> files() const;
  /// Sizes of all files().
  std::uint64_t size_bytes() const;

  /// read_floats() of a constant of this model, for many calls; large constants behind a Transpose are turned a stretch
  /// at a time. May be called on several threads, and outlives the model.
  std::function<void(std::uint64_t first, std::span<float> out)> reader(const OnnxConstant& constant) const;

  /// All QuantizeLinear nodes over constants, in the main graph, sub-graphs and functions, in node order.
  std::vector<OnnxQuantize> quantize_of_constants() const;

  /// Puts integer constants in the place of QuantizeLinear nodes: one for each OnnxFold, named like the first one's
  /// output. Constants and nodes that nobody reads any more go; those that anybody reads stay. Call it once.
  /// Returns the names of float constants that were folded but stay, because something else reads them too.
  std::vector<std::string> fold_quantize(const std::vector<OnnxFold>& folds);

  /// Float constants that are weights of Conv, ConvTranspose, Gemm, MatMul, Gather, LSTM, GRU or RNN, in node order.
  std::vector<OnnxFloatWeight> float_weights() const;

  /// Puts codes behind DequantizeLinear in the place of float weights. Constants and nodes that nobody reads any more
  /// go. Call it once.  Returns how many Constant, Cast, Identity and Transpose nodes went.
  std::size_t dequantize_weights(const std::vector<OnnxDequantization>& weights);

  /// How many operators, graphs and initialisers there are.
  struct Counts {
    std::size_t scopes = 0, nodes = 0, initializers = 0;
  };
  Counts counts() const;

  /// Operators with constant weights, in node order.
  std::vector<OnnxWeight> weights() const;

  /// Writes the model, and OUT.data where tensors go beside it. Both appear whole or not at all, the model last.
  /// Returns the number of bytes written. `out` empty: writes nothing and returns what would be written.
  /// Throws: bad_option if `out` or OUT.data is a file of the input; bad_file if writing fails; unsupported if the
  /// model file would reach 2 GiB (suggests external data).
  std::uint64_t write(const std::filesystem::path& out, ExternalData placement) const;

  /// A model whose tensors take no more than this is written as one file, however it was stored before.
  static constexpr std::uint64_t kSingleFileBytes = std::uint64_t{64} << 20;
  /// Smaller tensors stay in the model file: the limit that onnx.save_model has.
  static constexpr std::uint64_t kExternalBytes = 1024;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weightmill
