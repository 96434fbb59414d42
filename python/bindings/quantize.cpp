#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/quantize/conv_plan.h>
#include <weightmill/quantize/conv_search.h>
#include <weightmill/quantize/engine_view.h>
#include <weightmill/quantize/weight_layout.h>
#include <weightmill/quantize/weight_plan.h>
#include <weightmill/verify/agreement.h>
#include <weightmill/verify/plan_invariants.h>

#include "arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace weightmill;

namespace {

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Codes32 = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;

template <class T>
T get(const nb::dict& fields, const char* name) {
  return nb::cast<T>(fields[name]);
}

std::span<const float> floats_of(const Floats& array) { return {array.data(), array.size()}; }

Shape shape_of(const Floats& array) {
  Shape shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  return shape;
}

/// A request and the arrays and strings it refers to.
struct HeldRequest {
  std::string name;
  Floats weights;
  std::optional<Floats> bias, input_mean, input_square;
  ConvRequest request;

  explicit HeldRequest(const nb::dict& fields)
      : name(get<std::string>(fields, "name")),
        weights(get<Floats>(fields, "weights")),
        bias(get<std::optional<Floats>>(fields, "bias")),
        input_mean(get<std::optional<Floats>>(fields, "input_mean")),
        input_square(get<std::optional<Floats>>(fields, "input_square")) {
    request.name = name;
    request.weight = floats_of(weights);
    request.weight_shape = shape_of(weights);
    if (bias) request.bias = floats_of(*bias);
    if (input_mean) request.input_mean = floats_of(*input_mean);
    request.input = {get<double>(fields, "input_steps_per_unit"), get<std::int64_t>(fields, "input_zero_point")};
    request.output = {get<double>(fields, "output_low"), get<double>(fields, "output_high")};
    request.mode = conv_mode_of(get<std::string>(fields, "mode"));
    request.policy = policy_named(get<std::string>(fields, "policy"));
    request.multiplier = multiplier_named(get<std::string>(fields, "multiplier"));
    request.per_channel = get<bool>(fields, "per_channel");
    request.asymmetric = get<bool>(fields, "asymmetric");
    request.int16_input = get<bool>(fields, "int16_input");
    request.relu_workaround = get<bool>(fields, "relu_workaround");
    request.allow_int32 = get<bool>(fields, "allow_int32");
    request.allow_zero_output = get<bool>(fields, "allow_zero_output");
  }

  static PlanPolicy policy_named(const std::string& policy) {
    if (policy == "fixed") return PlanPolicy::fixed;
    if (policy == "classic") return PlanPolicy::classic;
    fail(ErrorCode::bad_option, "policy", "there is no policy '" + policy + "'; use fixed or classic");
  }

  static MultiplierRule multiplier_named(const std::string& rule) {
    if (rule == "by_policy") return MultiplierRule::by_policy;
    if (rule == "exact") return MultiplierRule::exact;
    if (rule == "nearest") return MultiplierRule::nearest;
    fail(ErrorCode::bad_option, "multiplier", "there is no rule '" + rule + "'; use by_policy, exact or nearest");
  }
};

QuantizedConv plan_held(const nb::dict& fields) {
  const HeldRequest held(fields);
  const nb::gil_scoped_release release;
  return plan_conv(held.request);
}

/// The callable runs with the lock that this thread has given back.
std::function<double(const QuantizedConv&)> noise_of(const std::optional<nb::callable>& measured_noise) {
  if (!measured_noise) return {};
  return [&](const QuantizedConv& plan) {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<double>((*measured_noise)(nb::cast(plan)));
  };
}

nb::tuple search_held(const nb::dict& fields, unsigned n_candidates, bool try_multipliers,
                      const std::optional<nb::callable>& measured_noise) {
  const HeldRequest held(fields);
  ScaleChoice choice;
  {
    const nb::gil_scoped_release release;
    ScaleSearch search{.n_candidates = n_candidates,
                       .try_multipliers = try_multipliers,
                       .measured_noise = noise_of(measured_noise)};
    if (held.input_square) search.input_square = floats_of(*held.input_square);
    choice = search_output_scale(held.request, search);
  }
  return nb::make_tuple(std::move(choice.plan), choice.range_factor, choice.noise, choice.noise_without);
}

/// [(code, cause, remedy, [(channel, bits lost)])]
nb::list diagnostics_of(const std::vector<Diagnostic>& diagnostics) {
  nb::list result;
  for (const Diagnostic& diagnostic : diagnostics) {
    nb::list channels;
    for (const ChannelEffect& effect : diagnostic.channels) {
      channels.append(nb::make_tuple(effect.channel, effect.bits_lost));
    }
    result.append(nb::make_tuple(std::string(name_of(diagnostic.code)), std::string(cause_of(diagnostic.code)),
                                 std::string(remedy_of(diagnostic.code)), channels));
  }
  return result;
}

nb::dict fields_of(const QuantizedConv& plan) {
  std::vector<std::int32_t> multiplier, shift;
  for (const FixedPoint& gain : plan.gain) {
    multiplier.push_back(static_cast<std::int32_t>(gain.multiplier));
    shift.push_back(gain.shift);
  }
  nb::dict fields;
  fields["mode"] = std::string(name_of(plan.mode));
  fields["requant"] = std::string(name_of(plan.requant));
  fields["per_channel"] = plan.per_channel;
  fields["exact_gain"] = plan.exact_gain;
  fields["input_dtype"] = std::string(name_of(plan.input_dtype));
  fields["output_dtype"] = std::string(name_of(plan.output_dtype));
  fields["input"] = nb::make_tuple(plan.input.steps_per_unit, plan.input.zero_point);
  fields["output"] = nb::make_tuple(plan.output.steps_per_unit, plan.output.zero_point);
  fields["weight_shape"] = plan.weight_shape;
  fields["weights"] = to_numpy(plan.weight);
  fields["bias"] = to_numpy(plan.bias);
  fields["real_bias"] = to_numpy(plan.real_bias);
  fields["multiplier"] = to_numpy(std::move(multiplier));
  fields["shift"] = to_numpy(std::move(shift));
  fields["intrinsic_shift"] = to_numpy(plan.intrinsic_shift);
  fields["weight_steps_per_unit"] = to_numpy(plan.weight_steps_per_unit);
  fields["bias_steps_per_unit"] = to_numpy(plan.bias_steps_per_unit);
  fields["weight_scale"] = to_numpy(plan.weight_scale);
  fields["weight_drop"] = to_numpy(std::vector<std::int32_t>(plan.weight_drop.begin(), plan.weight_drop.end()));
  fields["attempts"] = plan.attempts;
  return fields;
}

nb::tuple view_of(const QuantizedConv& plan, bool snap_gain) {
  EngineView view = engine_view(plan, snap_gain);
  return nb::make_tuple(view.input_scale, to_numpy(std::move(view.weight_scale)), view.output_scale,
                        to_numpy(std::move(view.bias)));
}

nb::dict plan_weights_held(const Floats& weights, const std::string& name, unsigned bits, bool per_channel,
                           std::size_t group_size) {
  QuantizedWeights plan = plan_weights({name, floats_of(weights), shape_of(weights), bits, per_channel, group_size});
  nb::dict fields;
  fields["bits"] = plan.bits;
  fields["group_size"] = plan.group_size;
  fields["per_channel"] = plan.per_channel;
  fields["weight_shape"] = plan.weight_shape;
  fields["weights"] = to_numpy(std::move(plan.weight));
  fields["steps_per_unit"] = to_numpy(std::move(plan.steps_per_unit));
  fields["renorm"] = to_numpy(std::move(plan.renorm));
  fields["diagnostics"] = diagnostics_of(plan.diagnostics);
  return fields;
}

WeightLayout layout_named(const std::string& name) {
  const std::vector<std::pair<std::string, WeightLayout>> layouts{
      {"ohwi", WeightLayout::ohwi}, {"hwc_depthwise", WeightLayout::hwc_depthwise}, {"dhwio", WeightLayout::dhwio},
      {"oi", WeightLayout::oi},     {"io", WeightLayout::io},                       {"oihw", WeightLayout::oihw},
      {"iohw", WeightLayout::iohw}};
  std::string known;
  for (const auto& [word, layout] : layouts) {
    if (word == name) return layout;
    known += (known.empty() ? "" : ", ") + word;
  }
  fail(ErrorCode::bad_option, "layout", "there is no layout '" + name + "'; use one of " + known);
}

nb::tuple order_of(const std::string& layout, const Shape& shape, std::int64_t n_groups, std::size_t n_weights) {
  WeightOrder order = weight_order(layout_named(layout), shape, n_groups, n_weights, "weights");
  return nb::make_tuple(order.shape, to_numpy(std::vector<std::uint64_t>(order.source.begin(), order.source.end())));
}

nb::list agreement_of(const Floats& reference, const Codes32& codes, double steps_per_unit, std::int64_t zero_point,
                      std::size_t n_channels) {
  nb::list result;
  for (const Agreement& a : channel_agreement(floats_of(reference), {codes.data(), codes.size()},
                                              {steps_per_unit, zero_point}, n_channels)) {
    result.append(nb::make_tuple(a.sqnr_db, a.max_error_steps, a.cosine, a.count));
  }
  return result;
}

}  // namespace

void bind_quantize(nb::module_& m) {
  nb::class_<QuantizedConv>(m, "QuantizedConv")
      .def("fields", &fields_of, "() -> dict of the record's fields, arrays flat.")
      .def("diagnostics", [](const QuantizedConv& plan) { return diagnostics_of(plan.diagnostics); },
           "() -> [(code, cause, remedy, [(channel, bits lost)])].")
      .def("verify", [](const QuantizedConv& plan) { return verify_plan(plan); },
           "() -> list of str, the broken promises.")
      .def("engine_view", &view_of, nb::arg("snap_gain"),
           "bool -> (input scale, weight scales, output scale, int64 bias).");
  m.def("plan_conv", &plan_held, nb::arg("fields"), "Fields of a request -> QuantizedConv. Raises Error.");
  m.def("search_output_scale", &search_held, nb::arg("fields"), nb::arg("n_candidates"),
        nb::arg("try_multipliers"), nb::arg("measured_noise").none(),
        "Fields of a request -> (QuantizedConv, range factor, noise, noise without search). Raises Error.");
  m.def("plan_weights", &plan_weights_held, nb::arg("weights").noconvert(), nb::arg("name"), nb::arg("bits"),
        nb::arg("per_channel"), nb::arg("group_size"), "float32 [.., I, G, O] -> dict. Raises Error.");
  m.def("weight_order", &order_of, nb::arg("layout"), nb::arg("shape"), nb::arg("n_groups"), nb::arg("n_weights"),
        "-> (planner's shape, uint64 index in the model's order of each weight). Raises Error.");
  m.def("agreement", &agreement_of, nb::arg("reference").noconvert(), nb::arg("codes").noconvert(),
        nb::arg("steps_per_unit"), nb::arg("zero_point"), nb::arg("n_channels"),
        "float32 and int32 of one length -> [(SQNR dB, largest error in steps, cosine, count)]. Raises Error.");
}
