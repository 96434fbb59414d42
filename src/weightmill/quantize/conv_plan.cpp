#include "conv_plan.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "conv_pass.h"
#include "lane_weights.h"
#include "layer.h"
#include "mult31_plan.h"

namespace weightmill {
namespace {

/// A lane gives up at most 8 weight bits and raises its intrinsic shift once, all lanes that need it in the same pass;
/// a fallback starts anew. 100 000 adversarial requests needed 25 passes at most.  [docs/quantization.md §4]
constexpr int kFixedPasses = 64;
constexpr int kClassicPasses = 18;

}  // namespace

QuantizedConv plan_conv(const ConvRequest& request) {
  const Layer layer = check_request(request);
  if (is_mult31(request.mode)) return plan_mult31(layer);
  Knobs knobs = Knobs::of(layer);
  LaneWeights weights(layer);
  const int n_passes = request.policy == PlanPolicy::fixed ? kFixedPasses : kClassicPasses;
  for (int attempt = 1; attempt <= n_passes; ++attempt) {
    ConvPass pass(layer, knobs, weights);
    if (!pass.run()) continue;
    QuantizedConv plan = std::move(pass).take_plan();
    plan.attempts = attempt;
    return plan;
  }
  fail(ErrorCode::unsupported, request.name,
       fmt::format("E_NO_PLAN: no plan after {} passes; a channel without weights has a bias beyond the accumulator: "
                   "use the fixed policy",
                   n_passes));
}

}  // namespace weightmill
