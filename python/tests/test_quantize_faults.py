"""Faults that quantizers are known for, on the models that show them: dead channels, biases that do not fit, weights shared
by layers of unlike input, int16 activations with int8 weights. The planner's share of what is right."""

import pathlib
import warnings

import numpy as np
import pytest

import weightmill
from real_layers import real_layer

onnx = pytest.importorskip("onnx")

FAULTS = pathlib.Path(__file__).parents[3] / "shared" / "bugs"
pytestmark = pytest.mark.skipif(not FAULTS.is_dir(), reason="../shared/bugs is not installed")
SAME = dict(padding=1)


def case(name: str):
    """(constants by name, weights in the planner's order, calibration data as [N, h, w, channels])."""
    model = onnx.load(FAULTS / name / "model.onnx")
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    weights = weightmill.planner_weights(constants["w"], "oihw")
    return constants, np.ascontiguousarray(weights), np.load(FAULTS / name / "calib.npy").transpose(0, 2, 3, 1).astype(float)


def int8_grid(values: np.ndarray) -> weightmill.Grid:
    low, high = min(values.min(), 0), max(values.max(), 0)
    steps = 255 / (high - low)
    return weightmill.Grid(steps, int(np.rint(-128 - low * steps)))


def int16_grid(values: np.ndarray) -> weightmill.Grid:
    return weightmill.Grid(32767 / np.abs(values).max())


def codes_of(values: np.ndarray, grid: weightmill.Grid, dtype=np.int8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(np.rint(values * grid.steps_per_unit) + grid.zero_point, info.min, info.max).astype(dtype)


def sqnr(wanted: np.ndarray, codes: np.ndarray, grid: weightmill.Grid) -> float:
    return weightmill.agreement(wanted.astype(np.float32), codes, grid).sqnr_db


def range_of(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def real_bias(plan) -> np.ndarray:
    return plan.bias * (np.float64(plan.input.scale) * plan.weight_scale)


def channels(plan, code: str) -> list[int]:
    return [channel for d in plan.diagnostics if d.code == code for channel, _ in d.channels]


def test_dead_channels():
    constants, weights, x = case("01_dead_channel")
    bias, y = constants["b"], real_layer(x, weights, **SAME) + constants["b"]
    request = dict(input_quant=int8_grid(x), output_range=range_of(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = weightmill.plan_conv(weights, bias, **request, name="conv0")
        codes = plan.simulate(codes_of(x, plan.input), **SAME)
    scales = plan.weight_scale
    assert np.isfinite(scales).all() and (scales >= np.finfo(np.float32).tiny).all()
    assert not plan.weights[..., [2, 4]].any()
    np.testing.assert_allclose(real_bias(plan)[[2, 4]], bias[[2, 4]], atol=max(1e-3, plan.output.scale / 2))
    assert channels(plan, "I_DEAD_CHANNELS") == [2, 4]
    assert np.abs((codes[..., [2, 4]] - plan.output.zero_point) * plan.output.scale - bias[[2, 4]]).max() <= plan.output.scale
    alive = [0, 1, 3, 5]
    without = weightmill.plan_conv(np.ascontiguousarray(weights[..., alive]), bias[alive], **request)
    np.testing.assert_array_equal(plan.weights[..., alive], without.weights)
    np.testing.assert_array_equal(plan.weight_scale[alive], without.weight_scale)
    np.testing.assert_array_equal(plan.bias[alive], without.bias)


@pytest.mark.parametrize("mode", ["mult31_i8", "mult31_i16"])
def test_biases_far_beyond_their_weights(mode):
    constants, weights, x = case("02_bias_overflow")
    bias, y = constants["b"], real_layer(x, weights) + constants["b"]
    grid, dtype = (int8_grid(x), np.int8) if mode == "mult31_i8" else (int16_grid(x), np.int16)
    plan = weightmill.plan_conv(weights, bias, grid, range_of(y), mode, name="tiny_w")
    assert (np.abs(real_bias(plan) - bias) <= np.maximum(1e-4, 2**-8 * np.abs(bias))).all()
    most = 2**30 + 2**7  # a float32 scale is rounded by up to 2**-24 of it
    assert (np.abs(plan.bias.astype(np.int64)) <= most).all(), "the limit of both types, which leaves room to the sums"
    assert channels(plan, "I_SCALE_FOR_BIAS") == [0, 2]
    ideal = (np.abs(weights.reshape(-1, 4).astype(float)).max(0) / 127).astype(np.float32)
    np.testing.assert_array_equal(plan.weight_scale[[1, 3]], ideal[[1, 3]])
    lost = {c: bits for d in plan.diagnostics if d.code == "I_SCALE_FOR_BIAS" for c, bits in d.channels}
    for c in (0, 2):  # what the note says leads from the old scale to the new one
        np.testing.assert_allclose(plan.weight_scale[c], ideal[c] * 2.0 ** lost[c], rtol=1e-6)
    found = plan.simulate(codes_of(x, grid, dtype), rounding="int16x8" if dtype == np.int16 else "gemmlowp_double")
    distance = (found.astype(float) - plan.output.zero_point) * plan.output.scale - y
    step = plan.output.scale if mode == "mult31_i8" else int8_grid(y).scale  # int8 weights bound what int16 can show
    assert np.abs(distance).max() <= step


def test_weights_shared_by_layers_of_unlike_input():
    constants, weights, x = case("05_shared_weight")
    bias, k = constants["b"], float(constants["k"].reshape(()))
    a = real_layer(x, weights, **SAME) + bias
    y = real_layer(a * k, weights, **SAME) + bias
    first = weightmill.plan_conv(weights, bias, int8_grid(x), range_of(a))
    amplified = weightmill.Grid(first.output.steps_per_unit / k, first.output.zero_point)
    second = weightmill.plan_conv(weights, bias, amplified, range_of(y))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.weight_scale, second.weight_scale)
    assert (first.bias != second.bias).any()
    for plan in (first, second):
        assert (np.abs(real_bias(plan) - bias) <= plan.input.scale * plan.weight_scale).all()
    codes = second.simulate(first.simulate(codes_of(x, first.input), **SAME), **SAME)
    assert sqnr(y, codes, second.output) > 30


def test_int16_activations_with_int8_weights():
    constants, weights, x = case("10_a16w8_per_channel_type")
    y = np.maximum(real_layer(x, weights, **SAME) + constants["b"], 0)
    plan = weightmill.plan_conv(weights, constants["b"], int16_grid(x), range_of(y), "mult31_i16")
    assert (plan.weights.dtype, plan.weight_scale.shape) == (np.int8, (8,))
    assert (plan.input_dtype, plan.output_dtype, plan.output.zero_point) == ("int16", "int16", 0)
    codes = codes_of(x, plan.input, np.int16)
    found = plan.simulate(codes, activation="relu", rounding="int16x8", **SAME)
    assert sqnr(y, found, plan.output) >= 45
    coarse = weightmill.plan_conv(weights, constants["b"], int8_grid(x), range_of(y))
    assert sqnr(y, coarse.simulate(codes_of(x, coarse.input), activation="relu", **SAME), coarse.output) < 45
    with pytest.raises(weightmill.Error, match="E_INPUT_ZERO"):
        weightmill.plan_conv(weights, None, weightmill.Grid(100.0, 3), range_of(y), "mult31_i16")
    litert_equals(plan, weights, codes, found)


def litert_equals(plan, weights, codes, found):
    pytest.importorskip("ai_edge_litert")
    import layer_samples

    view = plan.engine_view()
    sample = layer_samples.Sample(
        "convolution", "int16", weightmill.model_weights(plan.weights, "ohwi", (8, 3, 3, 3)), view.bias, codes,
        view.input_scale, 0, view.weight_scale, view.output_scale, 0, found.shape, activation="relu", same=True, padding=((1, 1), (1, 1)))
    model = layer_samples.tflite_model([sample])
    for engine in ("ref", "opt", "xnn"):
        np.testing.assert_array_equal(layer_samples.run_litert(model, engine, [codes])[0], found, engine)
