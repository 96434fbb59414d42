#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/external_data.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Whose codes a fold gives.  [docs/folding.md §2]
enum class FoldSemantics : std::uint8_t {
  strict,    ///< FakeQuantize as its definition says, in float32; what would change a value is left as it was
  openvino,  ///< OpenVINO 2026.4 bit for bit, its defects included where they are defined behaviour
  mo2021,    ///< the Python pass of the 2021.4 Model Optimizer: signed codes, ties upwards, first nibble high
};

/// "strict", "openvino", "mo2021".
std::string_view name_of(FoldSemantics semantics) noexcept;
/// Throws: bad_option for any other word (lists them).
FoldSemantics fold_semantics(std::string_view word);

struct FoldOptions {
  FoldSemantics semantics = FoldSemantics::strict;
  bool fail_on_left = false;   ///< a weight that had to be left as it was is an error, not a row of the report
  bool fold_16_bit = false;    ///< also fold to 16-bit codes, which plug-ins handle badly
  bool zero_points_of_chains = false;  ///< also drop zero points of integer constants that are dequantized already;
                                       ///< always on in mo2021
  bool compress_weights = true;  ///< off: mo2021's --disable_weights_compression; the model is copied as it is
  ExternalData external_data = ExternalData::automatic;  ///< ONNX only
  int jobs = 0;                  ///< threads; 0: the machine's
};

enum class FoldOutcome : std::uint8_t {
  folded,       ///< is an integer constant now
  zero_point,   ///< was an integer constant before; its zero point went into the codes
  left,         ///< a quantized weight that stays as it was; `reason` says why
};

std::string_view name_of(FoldOutcome outcome) noexcept;

/// What became of one quantized weight.
struct FoldedTensor {
  std::string name;      ///< the FakeQuantize's, or the QuantizeLinear's output
  std::string constant;  ///< the float constant's
  FoldOutcome outcome = FoldOutcome::left;
  std::string reason;    ///< why it was left; empty otherwise
  Shape shape;           ///< of the weights
  DType type_before = DType::other;
  DType type_after = DType::other;  ///< of the codes; type_before where it was left
  std::uint64_t bytes_before = 0;   ///< weights alone, without limits and scales
  std::uint64_t bytes_after = 0;
  double max_error_steps = 0;       ///< max |dequantized - quantizer's own output| / |scale|; 0 where it was left
  double bound_steps = 0;           ///< what max_error_steps may be at most  [docs/folding.md §5]
  bool zero_point_dropped = false;  ///< an integral zero point went into the codes
  bool zero_point_kept = false;     ///< the dequantization subtracts one
};

struct FoldReport {
  std::string input;   ///< file names without folder
  std::string output;  ///< empty: nothing was written
  std::string format;  ///< "openvino" or "onnx"
  FoldSemantics semantics = FoldSemantics::strict;
  std::uint64_t bytes_before = 0;  ///< all files of the model
  std::uint64_t bytes_after = 0;   ///< as written, or as they would be
  std::vector<FoldedTensor> tensors;
  std::vector<std::string> notes;  ///< sentences about the model as a whole

  std::size_t count(FoldOutcome outcome) const noexcept {
    std::size_t n = 0;
    for (const FoldedTensor& tensor : tensors) n += tensor.outcome == outcome ? 1 : 0;
    return n;
  }
};

}  // namespace weightmill
