#include "weight_choice.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>
#include <weightmill/base/names.h>

namespace weightmill {
namespace {

std::string suggestion(const std::optional<std::string>& meant) {
  return meant ? fmt::format("; did you mean {}?", *meant) : std::string();
}

void check_types(const std::vector<std::string>& wanted, const std::vector<std::string>& known) {
  for (const std::string& type : wanted) {
    if (std::ranges::find(known, type) != known.end()) continue;
    fail(ErrorCode::bad_option, "op-types",
         fmt::format("'{}' is none of {}{}", type, fmt::join(known, ", "), suggestion(nearest(type, known))));
  }
}

void check_patterns(const std::vector<std::string>& patterns, const std::vector<std::string>& names) {
  for (const std::string& pattern : patterns) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return matches_pattern(name, pattern); })) continue;
    fail(ErrorCode::bad_option, "exclude",
         fmt::format("'{}' matches none of the {} operators with float weights{}", pattern, names.size(),
                     suggestion(nearest_name(pattern, names))));
  }
}

}  // namespace

WeightChoice::WeightChoice(const WeightQuantizeOptions& options, const std::vector<std::string>& known,
                           const std::vector<std::string>& usual, const std::vector<std::string>& names)
    : options_(options), types_(options.op_types.empty() ? usual : options.op_types) {
  check_types(options.op_types, known);
  check_patterns(options.exclude, names);
}

void WeightChoice::judge(QuantizedWeight& weight) const {
  const auto matches = [&](const std::string& pattern) { return matches_pattern(weight.node, pattern); };
  if (const auto hit = std::ranges::find_if(options_.exclude, matches); hit != options_.exclude.end()) {
    weight.excluded_by = *hit;
    weight.reason = fmt::format("excluded by '{}'", *hit);
  } else if (std::ranges::find(types_, weight.op) == types_.end()) {
    weight.reason = fmt::format("{} is not among the operators to quantize ({})", weight.op, fmt::join(types_, ", "));
  }
}

namespace {

[[noreturn]] void refuse_nothing(const WeightQuantizeReport& report, const std::string& model) {
  if (report.weights.empty())
    fail(ErrorCode::unsupported, model, "has no operator with float weights: there is nothing to quantize");
  const auto excludes = [](const QuantizedWeight& weight) { return !weight.excluded_by.empty(); };
  if (std::ranges::all_of(report.weights, excludes))
    fail(ErrorCode::bad_option, "exclude",
         "leaves no weight to quantize: every operator with float weights is excluded");
  const QuantizedWeight& first = report.weights.front();
  fail(ErrorCode::unsupported, model,
       fmt::format("none of its {} float weights can be quantized; the first, {} of {} {}: {}", report.weights.size(),
                   first.weight, first.op, first.node, first.reason));
}

}  // namespace

void conclude(WeightQuantizeReport& report, const std::string& model) {
  if (report.count(WeightOutcome::quantized) == 0) refuse_nothing(report, model);
  const auto left = std::ranges::find(report.weights, WeightOutcome::left, &QuantizedWeight::outcome);
  if (report.options.fail_on_left && left != report.weights.end()) {
    fail(ErrorCode::unsupported, model,
         fmt::format("{} of {} float weights cannot be quantized; the first is {} of {} {}: {}",
                     report.count(WeightOutcome::left), report.weights.size(), left->weight, left->op, left->node,
                     left->reason));
  }
  if (report.n_folded_chains > 0)
    report.notes.push_back(fmt::format("folded {} constant chains", report.n_folded_chains));
}

}  // namespace weightmill
