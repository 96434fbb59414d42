#include "verify.h"

#include <atomic>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>

#include "findings.h"
#include "layer_check.h"
#include "model_weights.h"
#include "record_check.h"
#include "stream_check.h"

namespace weightmill {
namespace {

using verify::Findings;

/// The layer whose blob holds this layer's streams; nullptr and a finding where that is no earlier layer of its own.
const PackedLayer* holder_of(const Packed& packed, std::size_t index, Findings& findings) {
  const PackedLayer& layer = packed.layers[index];
  if (layer.same_as < 0) return &layer;
  const auto other = static_cast<std::size_t>(layer.same_as);
  if (other < index && packed.layers[other].same_as < 0) return &packed.layers[other];
  findings.add("", fmt::format("weights said to be those of layer {}", other),
               "an earlier layer that has weights of its own");
  return nullptr;
}

struct LayerOutcome {
  LayerCheck check;
  std::vector<Finding> findings;
};

LayerOutcome check_layer(const Packed& packed, std::size_t index, const Model* model) {
  const PackedLayer& layer = packed.layers[index];
  LayerOutcome outcome;
  Findings findings(static_cast<int>(index), fmt::format("layer {} ({} {})", index, layer.op_name, layer.weights_name));
  if (const PackedLayer* holder = holder_of(packed, index, findings)) {
    verify::ModelWeights weights;
    if (model != nullptr) weights = verify::weights_of(layer, *model);
    if (!weights.problem.empty()) findings.add("", weights.problem, "the weights that were packed");
    const bool comparable = model != nullptr && weights.problem.empty();
    verify::check_streams(layer, holder->weights, comparable ? &weights : nullptr, outcome.check, findings);
  }
  if (model != nullptr) verify::check_against_node(layer, *model, findings);
  verify::check_records(layer, model, outcome.check, findings);
  outcome.check.n_findings = findings.count();
  outcome.findings = findings.release();
  return outcome;
}

VerifyReport check_all(const Packed& packed, const Model* model, const VerifyOptions& options) {
  std::vector<LayerOutcome> outcomes(packed.layers.size());
  std::atomic<std::size_t> n_done{0};
  parallel_for(outcomes.size(), options.jobs, [&](std::size_t i) {
    outcomes[i] = check_layer(packed, i, model);
    if (options.progress) options.progress("verifying", ++n_done, outcomes.size());
  });
  VerifyReport report;
  if (model != nullptr) report.findings = verify::check_completeness(packed, *model);
  report.n_findings = report.findings.size();
  for (LayerOutcome& outcome : outcomes) {
    report.n_findings += outcome.check.n_findings;
    report.layers.push_back(outcome.check);
    for (Finding& finding : outcome.findings) report.findings.push_back(std::move(finding));
  }
  return report;
}

}  // namespace

VerifyReport verify_packed(const Packed& packed, const Model& model, const VerifyOptions& options) {
  return check_all(packed, &model, options);
}

VerifyReport verify_packed(const Packed& packed, const VerifyOptions& options) {
  return check_all(packed, nullptr, options);
}

}  // namespace weightmill
