#include "diagnostic.h"

#include <array>
#include <cstddef>

namespace weightmill {
namespace {

struct Words {
  std::string_view name;
  std::string_view cause;
  std::string_view remedy;
};

/// One row for each DiagnosticCode, in its order.
constexpr std::array kWords{
    Words{"W_ALL_ZERO",
          "no weight of the layer reaches half a step of its scale",
          "check that the layer was trained; its output is its bias"},
    Words{"W_SOME_ZERO",
          "no weight of these channels reaches half a step of the scale",
          "none needed after pruning or weight decay; use per-channel scales if the weights matter"},
    Words{"W_OUTPUT_RESCALED",
          "a channel's gain from accumulator to output step is above 1, which a right shift cannot express",
          "use a mult31 mode, which can shift left, or a 16-bit input"},
    Words{"W_SHIFT_REDUCED",
          "the right shift reaches the length of the accumulator",
          "check the calibrated output range"},
    Words{"W_SHIFT_ZEROED",
          "the right shift is longer than the accumulator, so the channel adds less than one output step",
          "none needed where the channel is negligible; else check the calibrated output range"},
    Words{"W_ZP_REDUCED",
          "the output's zero point does not fit 32 bits at the accumulator's scale",
          "use a mode that adds the zero point after the shift (pow2_i8, mult7_i8, mult31_i8), or a symmetric output"},
    Words{"W_BIAS_REDUCED",
          "the bias does not fit 32 bits at the accumulator's scale, so the weight scale was coarsened",
          "equalize the layer with its neighbours, or clip the bias of channels with negligible weights"},
    Words{"X_BIAS_SATURATED",
          "the bias of a channel without weights lies outside what its accumulator holds and was clipped",
          "widen the calibrated output range or choose a mode with a shift"},
    Words{"X_ACC_RISK",
          "the sum of products can leave 32 bits for extreme inputs",
          "use 8-bit activations or fewer taps, or verify on data"},
    Words{"N_INTRINSIC",
          "channels use the high intrinsic shift of the 16-bit convolution",
          "none needed"},
    Words{"N_RELU_FALLBACK",
          "the threshold of the activation differs between channels before the shift",
          "none needed"},
    Words{"W_INT4_PER_TENSOR",
          "16 levels are shared by all channels",
          "use one scale per channel or per group"},
    Words{"W_ZERO_OUTPUT",
          "the calibrated output is zero everywhere",
          "check the calibration data, or remove the layer"},
    Words{"I_DEAD_CHANNELS",
          "all weights of these channels are zero or negligible; their bias is kept",
          "none needed"},
    Words{"I_SCALE_FOR_BIAS",
          "the weight scale was raised so that the bias stays below 2^30 steps",
          "equalize the layer with its neighbours"},
    Words{"I_SCALE_FOR_GAIN",
          "the weight scale was raised so that the gain is not below 2^-31",
          "none needed: the channel is negligible"},
};
static_assert(kWords.size() == static_cast<std::size_t>(DiagnosticCode::scale_for_gain) + 1);

const Words& words_of(DiagnosticCode code) { return kWords[static_cast<std::size_t>(code)]; }

}  // namespace

std::string_view name_of(DiagnosticCode code) noexcept { return words_of(code).name; }
std::string_view cause_of(DiagnosticCode code) noexcept { return words_of(code).cause; }
std::string_view remedy_of(DiagnosticCode code) noexcept { return words_of(code).remedy; }

}  // namespace weightmill
