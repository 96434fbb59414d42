#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>
#include <weightmill/kernels/requantize.h>
#include <weightmill/simulate/simulate.h>

#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace weightmill;

namespace {

using Weights = nb::ndarray<const std::int16_t, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32}) {
    if (name_of(dtype) == name) return dtype;
  }
  fail(ErrorCode::unsupported, "dtype", fmt::format("'{}' is not one of: int8, uint8, int16, int32", name));
}

Rounding rule_named(const std::string& name) {
  const auto rule = rounding_named(name);
  if (!rule) {
    fail(ErrorCode::bad_option, "rounding",
         fmt::format("there is no rule '{}'; use one of: {}", name, fmt::join(rounding_names(), ", ")));
  }
  return *rule;
}

Activation activation_named(const std::string& name) {
  if (name == "none") return Activation::none;
  if (name == "relu") return Activation::relu;
  if (name == "relu6") return Activation::relu6;
  if (name == "relu_n1_to_1") return Activation::relu_n1_to_1;
  fail(ErrorCode::bad_option, "activation", fmt::format("'{}' is not one of: none, relu, relu6, relu_n1_to_1", name));
}

LimitRounding limits_named(const std::string& name) {
  if (name == "half_away") return LimitRounding::half_away;
  if (name == "half_even") return LimitRounding::half_even;
  fail(ErrorCode::bad_option, "activation_rounding", fmt::format("'{}' is not one of: half_away, half_even", name));
}

template <class T>
T get(const nb::dict& fields, const char* name) {
  return nb::cast<T>(fields[name]);
}

ConvGeometry geometry_of(const nb::dict& fields) {
  using Axis = std::vector<std::int64_t>;
  return {get<Axis>(fields, "stride"), get<Axis>(fields, "dilation"), get<Axis>(fields, "pad_before"),
          get<Axis>(fields, "pad_after"), get<bool>(fields, "transposed")};
}

/// Scales where there are any, else the multipliers, shifts or gains as they are.
void take_gains(IntegerLayer& layer, const nb::dict& fields) {
  const auto scale = get<std::vector<float>>(fields, "weight_scale");
  if (!scale.empty()) {
    return set_scales(layer, get<float>(fields, "input_scale"), scale, get<float>(fields, "output_scale"));
  }
  layer.multiplier = get<std::vector<std::int64_t>>(fields, "multiplier");
  layer.shift = get<std::vector<std::int32_t>>(fields, "shift");
  const auto gain = get<std::vector<double>>(fields, "gain");
  if (layer.rounding == Rounding::double_gain)
    layer.wide_gain = gain;
  else
    layer.gain.assign(gain.begin(), gain.end());
}

IntegerLayer layer_from(const nb::dict& fields) {
  IntegerLayer layer;
  layer.name = get<std::string>(fields, "name");
  layer.geometry = geometry_of(fields);
  const auto weights = get<Weights>(fields, "weights");
  for (std::size_t i = 0; i < weights.ndim(); ++i)
    layer.weight_shape.push_back(static_cast<std::int64_t>(weights.shape(i)));
  layer.weight.assign(weights.data(), weights.data() + weights.size());
  layer.bias = get<std::vector<std::int64_t>>(fields, "bias");
  layer.bias_form = get<bool>(fields, "bias_folded") ? BiasForm::folded : BiasForm::plain;
  layer.input_dtype = dtype_named(get<std::string>(fields, "input_dtype"));
  layer.input_zero_point = get<std::int64_t>(fields, "input_zero_point");
  layer.intrinsic_shift = get<std::vector<std::uint8_t>>(fields, "intrinsic_shift");
  const auto zero_point = get<std::int64_t>(fields, "output_zero_point");
  set_output(layer, dtype_named(get<std::string>(fields, "output_dtype")), zero_point);
  layer.rounding = rule_named(get<std::string>(fields, "rounding"));
  layer.accumulator_32_bit = get<bool>(fields, "accumulator_32_bit");
  const auto limits = limits_named(get<std::string>(fields, "activation_rounding"));
  set_activation(layer, activation_named(get<std::string>(fields, "activation")),
                 activation_codes(limits, get<float>(fields, "output_scale"), zero_point));
  take_gains(layer, fields);
  return layer;
}

DType dtype_of(const Codes& array) {
  if (array.dtype() == nb::dtype<std::int8_t>()) return DType::i8;
  if (array.dtype() == nb::dtype<std::uint8_t>()) return DType::u8;
  if (array.dtype() == nb::dtype<std::int16_t>()) return DType::i16;
  fail(ErrorCode::unsupported, "input", "the input's type is none of int8, uint8, int16");
}

ActivationView view_of(const Codes& array) {
  ActivationView view{dtype_of(array), {}, {static_cast<const std::uint8_t*>(array.data()), array.nbytes()}};
  for (std::size_t i = 0; i < array.ndim(); ++i) view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  return view;
}

/// A layer, checked and with its weights packed.
Simulator make_simulator(IntegerLayer layer) {
  const nb::gil_scoped_release release;
  return Simulator(std::move(layer));
}

/// (uint8 bytes, name of the type, shape, saturated outputs, wide accumulators)
nb::tuple run(const Simulator& simulator, const Codes& input, unsigned jobs) {
  const ActivationView view = view_of(input);
  Simulation result;
  {
    const nb::gil_scoped_release release;
    result = simulator.run(view, jobs);
  }
  const std::string dtype(name_of(result.dtype));
  return nb::make_tuple(to_numpy(std::move(result.bytes)), dtype, result.shape, result.counts.saturated,
                        result.counts.wide);
}

Simulator simulator_of_layer(const nb::dict& fields) { return make_simulator(layer_from(fields)); }

/// Of `fields` only what is not in the plan.
nb::tuple simulate_plan(const QuantizedConv& plan, const nb::dict& fields, const Codes& input, unsigned jobs) {
  return run(
      make_simulator(layer_of(plan, geometry_of(fields), activation_named(get<std::string>(fields, "activation")),
                              rule_named(get<std::string>(fields, "rounding")))),
      input, jobs);
}

}  // namespace

void bind_simulate(nb::module_& m) {
  nb::class_<Simulator>(m, "Simulator")
      .def("run", &run, nb::arg("input").noconvert(), nb::arg("jobs"),
           "Codes -> (bytes, dtype, shape, saturated, wide). Raises Error.");
  m.def("simulator_of_layer", &simulator_of_layer, nb::arg("fields"),
        "Fields of weightmill.Layer -> Simulator. Raises Error.");
  m.def("simulate_plan", &simulate_plan, nb::arg("plan"), nb::arg("fields"), nb::arg("input").noconvert(),
        nb::arg("jobs"), "QuantizedConv, geometry, codes -> as Simulator.run. Raises Error.");
  m.def(
      "rounding_rules",
      [] {
        const auto names = rounding_names();
        return std::vector<std::string>(names.begin(), names.end());
      },
      "() -> list of str.");
}
