#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/external_data.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// How the scale of a group of weights is chosen.  [docs/weight-only.md §2]
enum class ScaleMethod : std::uint8_t {
  automatic,  ///< minmax for 8-bit codes, mse for 4-bit ones
  minmax,     ///< from the largest weight
  mse,        ///< the one of a few with the least squared error
};

/// "auto", "minmax", "mse".
std::string_view name_of(ScaleMethod method) noexcept;
/// Throws: bad_option for any other word (lists them).
ScaleMethod scale_method(std::string_view word);

/// How weights become integers while activations stay in floating point.  [docs/weight-only.md]
struct WeightQuantizeOptions {
  DType weight_type = DType::i8;  ///< int8 and int4 are symmetric, uint8 and uint4 have zero points
  ScaleMethod scale_method = ScaleMethod::automatic;
  bool per_channel = true;        ///< one scale for each output channel; else one for the tensor
  std::int64_t block_size = 0;    ///< this many products of a sum share a scale: a power of two of at least 16; 0: all
  std::vector<std::string>
      op_types;                      ///< operators whose weights are quantized, in the format's words; empty: the usual
  std::vector<std::string> exclude;  ///< names or glob patterns (* ?) of operators that stay as they are
  double min_sqnr_db = 0;            ///< with a weight below it nothing is written; 0: no limit
  bool fail_on_left = false;         ///< a float weight that has to be left is an error, not a row of the report
  ExternalData external_data = ExternalData::automatic;  ///< ONNX only
  int jobs = 0;                                          ///< threads; 0: the machine's
};

/// The code types that weights may take, by name: int8, uint8, int4, uint4.
/// Throws: bad_option for any other word (lists them).
DType weight_type(std::string_view word);

/// Throws: bad_option if options contradict each other or are out of their range (names the option).
void check(const WeightQuantizeOptions& options);

/// Why tables that are looked up along another axis than the first have one scale.
inline constexpr std::string_view kScalesOfLookUps =
    "OpenVINO 2026.4 computes something else from scales along any axis but the first";

enum class WeightOutcome : std::uint8_t {
  quantized,  ///< is an integer constant behind a dequantization now
  left,       ///< a float weight that stays as it was; `reason` says why
};

/// "quantized", "left".
std::string_view name_of(WeightOutcome outcome) noexcept;

/// What became of the float weight of one operator.
struct QuantizedWeight {
  std::string node;    ///< the operator's name, or its output's where it has none
  std::string op;      ///< e.g. "Conv"
  std::string weight;  ///< name of the stored constant
  WeightOutcome outcome = WeightOutcome::left;
  std::string reason;            ///< why it was left; empty otherwise
  std::string excluded_by;       ///< the pattern that names the operator, if that is why
  std::vector<std::string> via;  ///< nodes between constant and operator that were folded into the codes
  Shape shape;                   ///< of the weights as the operator sees them
  DType type_before = DType::other;
  DType type_after = DType::other;  ///< of the codes; type_before where it was left
  std::uint64_t bytes_before = 0;   ///< of the stored constant; 0 if an earlier row counts it
  std::uint64_t bytes_after = 0;    ///< codes, scales and zero points; 0 if an earlier row counts them
  std::string granularity;          ///< "per tensor", "per axis 0", "blocks of 32 along axis 0"; empty where left
  std::uint64_t n_scales = 0;
  std::string note;            ///< why the granularity is not the one that was asked for; empty if it is
  double sqnr_db = 0;          ///< signal power over the power of the quantization error; infinite where exact
  double worst_sqnr_db = 0;    ///< of the channel that lost most; as sqnr_db where there is one scale, or blocks
  double max_error_steps = 0;  ///< max |dequantized - weight| / |scale|
  std::vector<std::uint64_t> zero_channels;        ///< all weights are 0: scale 1, codes 0; of blocks none are named
  std::vector<std::uint64_t> negligible_channels;  ///< no float32 scale is small enough for them: the same
};

struct WeightQuantizeReport {
  std::string input;   ///< file names without folder
  std::string output;  ///< empty: nothing was written
  std::string format;  ///< "onnx" or "openvino"
  WeightQuantizeOptions options;
  std::uint64_t bytes_before = 0;  ///< all files of the model
  std::uint64_t bytes_after = 0;   ///< as written, or as they would be
  std::vector<QuantizedWeight> weights;
  std::size_t n_folded_chains = 0;  ///< constants that stood behind Constant, Cast, Identity or Transpose nodes
  std::vector<std::string> notes;   ///< sentences about the model as a whole

  std::size_t count(WeightOutcome outcome) const noexcept {
    std::size_t n = 0;
    for (const QuantizedWeight& weight : weights) n += weight.outcome == outcome ? 1 : 0;
    return n;
  }
  std::size_t count_below_min_sqnr() const noexcept {
    std::size_t n = 0;
    if (options.min_sqnr_db == 0) return n;
    for (const QuantizedWeight& weight : weights)
      n += weight.outcome == WeightOutcome::quantized && weight.sqnr_db < options.min_sqnr_db ? 1 : 0;
    return n;
  }
};

}  // namespace weightmill
