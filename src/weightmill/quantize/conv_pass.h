#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lane_weights.h"
#include "layer.h"

namespace weightmill {

/// What a pass may change before it asks for another one.
struct Knobs {
  ConvMode mode;
  std::optional<ConvMode> relu_fallback;  ///< taken if the activation cannot be expressed before the shift
  std::vector<char> high_shift;           ///< lanes; int16 input: intrinsic shift 8 instead of 1
  std::vector<int> drop;                  ///< lanes; weight bits given up for the bias
  bool bias_reduced = false;              ///< the last pass gave up weight bits

  static Knobs of(const Layer& layer);
};

/// One lane of a pass.
struct Lane {
  double steps_per_unit = 0;  ///< of the weights; 0: dead
  double gain = 1;            ///< accumulator to output steps
  int multiplier = 1;
  int shift = 0;              ///< gain ~ multiplier * 2^-shift
  int intrinsic = 0;

  bool dead() const noexcept { return steps_per_unit == 0; }
  void scale_gain(int exponent);  ///< gain *= 2^exponent
  void kill();                    ///< no weights; a gain of 1 keeps the bias representable
};

/// One pass of the planner: the steps of docs/quantization.md §4, in their order. `weights` keeps its content between
/// the passes of one request.
class ConvPass {
 public:
  ConvPass(const Layer& layer, Knobs& knobs, LaneWeights& weights);

  /// True: take_plan() has the plan. False: a knob has changed and another pass is due.
  /// Throws: bad_request, E_ZERO_OUTPUT.
  bool run();
  QuantizedConv take_plan() &&;

 private:
  void choose_ideal_scales();
  Lane ideal_lane(double peak) const;
  void apply_knobs();
  void kill_vanishing_lanes();
  bool make_shifts_legal();
  void rescale_output();
  void shorten_shifts(const std::vector<std::size_t>& too_long, int hard_limit);
  bool raise_intrinsic_shift(const std::vector<std::size_t>& lanes);
  bool fit_zero_point();
  void choose_output();
  bool fit_bias();
  void compute_wanted_bias();
  bool overflows(std::size_t channel) const;
  std::vector<std::size_t> overflowing_lanes() const;
  void round_bias();
  bool check_accumulator();
  std::vector<std::size_t> channels_at_risk() const;
  bool relu_is_expressible() const;
  bool fall_back();
  void note_bias_reduced();
  void note_choices();

  void note(DiagnosticCode code, std::vector<ChannelEffect> channels = {});
  std::int64_t channel_name(std::size_t lane) const noexcept;
  bool fixed() const noexcept { return layer_.request.policy == PlanPolicy::fixed; }
  bool exact_gain() const noexcept;

  const Layer& layer_;
  Knobs& knobs_;
  LaneWeights& weights_;
  const ModeTraits& traits_;
  Grid output_;
  double output_zero_;              ///< an integer
  DType output_dtype_ = DType::i8;
  std::vector<Lane> lanes_;
  std::vector<double> bias_steps_;  ///< lanes
  std::vector<double> real_bias_;   ///< C; real units
  std::vector<double> wanted_;      ///< C; bias before rounding
  std::vector<std::int32_t> bias_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace weightmill
