"""The planner through Python: golden plans and what they compute, refusals, layouts, the plan in engines' words."""

import json
import os
import pathlib

import numpy as np
import pytest

import weightmill

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path(os.environ.get("WEIGHTMILL_GOLDEN_DIR") or ROOT.parent / "shared" / "golden") / "convq"
CASES = json.loads((GOLDEN / "convq.json").read_text())["cases"] if (GOLDEN / "convq.json").exists() else []
needs_golden = pytest.mark.skipif(not CASES, reason="convq not installed: set WEIGHTMILL_GOLDEN_DIR")


@pytest.fixture(scope="module")
def arrays():
    return np.load(GOLDEN / "convq.npz")


def cases_of(*categories, others=False):
    chosen = [c for c in CASES if (c["category"] in categories) != others and not c["category"].startswith("unit_")]
    return pytest.mark.parametrize("case", chosen, ids=lambda c: f"{c['id']}_{c['category']}")


def request_of(case, arrays):
    array = lambda name: arrays[f"{case['id']}_{name}"] if f"{case['id']}_{name}" in arrays else None
    options = {name: case[name] for name in ("per_channel", "asymmetric", "policy", "relu_workaround", "allow_int32") if name in case}
    mode = case.get("mode") or f"mult31_i{case['bits']}"
    return dict(
        weights=np.ascontiguousarray(array("w")),
        bias=array("b"),
        input_quant=weightmill.Grid(case["input_scale"], case["input_zero"]),
        output_range=(float(case["out_lo"]), float(case["out_hi"])),
        mode=mode,
        input_mean=array("mean"),
        int16_input=case.get("int15", False),
        **options,
    )


def geometry_of(case):
    return dict(stride=case["stride"], dilation=case["dilation"], padding=case["pad"], activation=case["activation"])


@needs_golden
@cases_of("mult31", "bf16", others=True)
def test_golden_plans_and_their_outputs(case, arrays):
    if "expect_error" in case:
        with pytest.raises(weightmill.Error, match=case["expect_error"]):
            weightmill.plan_conv(**request_of(case, arrays))
        return
    plan = weightmill.plan_conv(**request_of(case, arrays))
    expect = case["expect"]
    assert plan.log == expect["log"]
    assert (plan.mode, plan.attempts) == (expect["mode"], expect["attempts"])
    assert (plan.output.steps_per_unit, plan.output.zero_point) == (expect["output_scale"], expect["output_zero"])
    assert plan.shift.tolist() == expect["shift"]
    assert plan.multiplier.tolist() == expect["multiplier"]
    assert plan.intrinsic_shift.tolist() == expect["intrinsic"]
    assert plan.weight_drop.tolist() == expect["weight_drop"]
    np.testing.assert_array_equal(plan.weights, arrays[f"{case['id']}_qw"])
    np.testing.assert_array_equal(plan.weight_steps_per_unit, arrays[f"{case['id']}_sw"])
    np.testing.assert_array_equal(plan.bias_steps_per_unit, arrays[f"{case['id']}_bscale"])
    bias = arrays[f"{case['id']}_qb"]
    assert np.abs(plan.bias.astype(np.int64) - bias).max() <= case["bias_tol"]
    assert plan.verify() == []
    if (plan.bias == bias).all():
        codes = plan.simulate(arrays[f"{case['id']}_x"], **geometry_of(case))
        np.testing.assert_array_equal(codes, arrays[f"{case['id']}_y"])


@needs_golden
@cases_of("mult31")
def test_golden_engine_native_plans_and_their_outputs(case, arrays):
    plan = weightmill.plan_conv(**request_of(case, arrays))
    assert (plan.input.scale, plan.output.scale) == (case["expect"]["in_scale"], case["expect"]["out_scale"])
    assert plan.output.zero_point == case["expect"]["out_zero"]
    np.testing.assert_array_equal(plan.weights, arrays[f"{case['id']}_qw"])
    np.testing.assert_array_equal(plan.weight_scale, arrays[f"{case['id']}_w_scale"])
    np.testing.assert_array_equal(plan.bias, arrays[f"{case['id']}_bias"])
    assert plan.verify() == []
    for variant, rounding in {"y_double": "gemmlowp_double", "y_single": "half_up", "y_int16": "int16x8"}.items():
        if f"{case['id']}_{variant}" not in arrays:
            continue
        codes = plan.simulate(arrays[f"{case['id']}_x"], rounding=rounding, **geometry_of(case))
        np.testing.assert_array_equal(codes, arrays[f"{case['id']}_{variant}"], err_msg=rounding)


def to_bf16(x):
    """float32 to bfloat16 bit patterns, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_convolution(x, weights, stride, dilation, pad):
    """Sums of products, [N, spatial.., C] in double, of real x and [taps.., I, G, O] weights."""
    x = np.pad(x, [(0, 0), *pad, (0, 0)])
    *taps, n_in, groups, n_out = weights.shape
    extents = [(e - (k - 1) * d - 1) // s + 1 for e, k, d, s in zip(x.shape[1:-1], taps, dilation, stride)]
    y = np.zeros((x.shape[0], *extents, groups, n_out))
    for tap in np.ndindex(*taps):
        at = tuple(slice(t * d, t * d + (e - 1) * s + 1, s) for t, d, e, s in zip(tap, dilation, extents, stride))
        part = x[(slice(None), *at)].reshape(x.shape[0], *extents, groups, n_in)
        y += np.einsum("...gi,igo->...go", part, weights[tap])
    return y.reshape(*y.shape[:-2], -1)


@needs_golden
@cases_of("bf16")
def test_golden_weights_for_bfloat16_activations(case, arrays):
    array = lambda name: arrays[f"{case['id']}_{name}"]
    plan = weightmill.plan_weights(np.ascontiguousarray(array("w")), bits=case["bits"], per_channel=case["per_channel"])
    np.testing.assert_array_equal(plan.weights, array("qw"))
    np.testing.assert_array_equal(plan.steps_per_unit.reshape(-1), array("sw"))
    np.testing.assert_array_equal(plan.renorm.reshape(-1), array("renorm"))
    x = (array("x").astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    y = bf16_convolution(x, plan.weights.astype(np.float64), case["stride"], case["dilation"], case["pad"])
    y = y.astype(np.float32) * plan.renorm.reshape(-1) + (array("b") if case["has_bias"] else np.float32(0))
    ordered = lambda bits: np.where(bits & 0x8000, -(bits & 0x7FFF).astype(np.int64), bits.astype(np.int64))
    assert np.abs(ordered(to_bf16(y)) - ordered(array("y"))).max() <= case["y_tol_bf16_ulp"]


RNG = np.random.default_rng(7)
WEIGHTS = RNG.normal(size=(3, 3, 4, 1, 6)).astype(np.float32)
BIAS = RNG.normal(size=6).astype(np.float32)


@pytest.mark.parametrize(
    "change, code",
    [
        (dict(mode="int7"), "E_MODE"),
        (dict(weights=WEIGHTS[0]), "E_SHAPE"),
        (dict(bias=BIAS[:5]), "E_SHAPE"),
        (dict(bias=BIAS * np.float32(np.inf)), "E_NOT_FINITE"),
        (dict(output_range=(1.0, -1.0)), "E_RANGE"),
        (dict(input_quant=(0.0, 0)), "E_INPUT_SCALE"),
        (dict(input_quant=(np.inf, 0)), "E_INPUT_SCALE"),
        (dict(input_quant=(0.1, 200)), "E_INPUT_ZERO"),
        (dict(relu_workaround=True), "E_RELU_MODE"),
        (dict(output_range=(0.0, 0.0)), "E_ZERO_OUTPUT"),
        (dict(policy="best"), "policy"),
        (dict(multiplier="best"), "multiplier"),
        (dict(weights=WEIGHTS.astype(np.float64)), "float64"),
    ],
)
def test_refusals_have_names(change, code):
    request = dict(weights=WEIGHTS, bias=BIAS, input_quant=(0.05, 3), output_range=(-4.0, 4.0)) | change
    with pytest.raises(weightmill.Error, match=code):
        weightmill.plan_conv(**request)


def test_dead_and_denormal_channels_keep_bias_and_a_normal_scale():
    weights = WEIGHTS.copy()
    weights[..., 2] = 0
    weights[..., 4] = np.float32(1e-39)
    plan = weightmill.plan_conv(weights, BIAS, (0.05, 3), (-4.0, 4.0))
    assert (plan.weight_scale >= np.finfo(np.float32).tiny).all() and np.isfinite(plan.weight_scale).all()
    assert not plan.weights[..., [2, 4]].any()
    real = plan.bias * (np.float64(plan.input.scale) * plan.weight_scale)
    assert np.abs(real - BIAS)[[2, 4]].max() <= 4.0 / 127
    assert [c for c, _ in next(d for d in plan.diagnostics if d.code == "I_DEAD_CHANNELS").channels] == [2, 4]
    alive = [0, 1, 3, 5]
    apart = weightmill.plan_conv(np.ascontiguousarray(weights[..., alive]), BIAS[alive], (0.05, 3), (-4.0, 4.0))
    np.testing.assert_array_equal(plan.weights[..., alive], apart.weights)
    np.testing.assert_array_equal(plan.bias[alive], apart.bias)


def test_a_bias_that_fits_nowhere_widens_its_channel_alone():
    weights = WEIGHTS.copy()
    weights[..., [0, 2]] *= np.float32(1e-8)
    bias = np.float32([5, 0.1, 3, 0.1, 0.1, 0.1])
    plan = weightmill.plan_conv(weights, bias, (0.05, 3), (-8.0, 8.0))
    real = plan.bias * (np.float64(plan.input.scale) * plan.weight_scale)
    np.testing.assert_allclose(real, bias, atol=1e-4, rtol=2**-8)
    usual = weightmill.plan_conv(WEIGHTS, bias, (0.05, 3), (-8.0, 8.0))
    np.testing.assert_array_equal(plan.weight_scale[[1, 3, 4, 5]], usual.weight_scale[[1, 3, 4, 5]])
    assert [c for c, _ in next(d for d in plan.diagnostics if d.code == "I_SCALE_FOR_BIAS").channels] == [0, 2]


def test_shared_weights_have_a_bias_for_each_input():
    coarse = weightmill.plan_conv(WEIGHTS, BIAS, (0.5, 0), (-40.0, 40.0))
    fine = weightmill.plan_conv(WEIGHTS, BIAS, (0.01, 0), (-4.0, 4.0))
    np.testing.assert_array_equal(coarse.weights, fine.weights)
    for plan in (coarse, fine):
        step = np.float64(plan.input.scale) * plan.weight_scale
        assert (np.abs(plan.bias * step - BIAS) <= step).all()


def test_int16_activations_are_symmetric_with_int8_weights_per_channel():
    plan = weightmill.plan_conv(WEIGHTS, BIAS, (0.001, 0), (-1.0, 4.0), mode="mult31_i16")
    assert (plan.weights.dtype, plan.input_dtype, plan.output_dtype) == (np.int8, "int16", "int16")
    assert plan.output.zero_point == 0 and plan.weight_scale.shape == (6,)
    with pytest.raises(weightmill.Error, match="E_INPUT_ZERO"):
        weightmill.plan_conv(WEIGHTS, BIAS, (0.001, 5), (-1.0, 4.0), mode="mult31_i16")


@pytest.mark.parametrize("layout, shape, groups", [("ohwi", (8, 3, 3, 2), 2), ("oihw", (8, 2, 3, 3, 3), 2), ("iohw", (6, 5, 2, 2), 3),
                                                   ("hwc_depthwise", (1, 3, 3, 8), 4), ("oi", (5, 7), 1), ("dhwio", (2, 2, 2, 3, 4), 1)])
def test_layouts_go_there_and_back(layout, shape, groups):
    weights = RNG.normal(size=shape).astype(np.float32)
    planned = weightmill.planner_weights(weights, layout, groups)
    assert planned.ndim in (5, 6) and planned.shape[-2] == groups
    np.testing.assert_array_equal(weightmill.model_weights(planned, layout, shape, groups), weights)


def test_grouped_onnx_weights_stand_where_the_group_is():
    weights = RNG.normal(size=(6, 2, 3, 3)).astype(np.float32)
    planned = weightmill.planner_weights(weights, "oihw", 3)
    np.testing.assert_array_equal(planned, weights.reshape(3, 2, 2, 3, 3).transpose(3, 4, 2, 0, 1))


def test_engine_view_keeps_the_planned_gain():
    plan = weightmill.plan_conv(WEIGHTS, BIAS, (0.05, 3), (-4.0, 4.0), mode="pow2_i8")
    view = plan.engine_view()
    gain = np.float32(np.float32(view.input_scale) * view.weight_scale) / np.float32(view.output_scale)
    np.testing.assert_allclose(gain, 2.0 ** -plan.shift, rtol=1e-6)
    assert (gain == np.float32(2.0) ** -plan.shift).mean() > 0.5


def test_search_expects_no_more_noise_than_without():
    choice = weightmill.search_output_scale(WEIGHTS, BIAS, (0.05, 3), (-4.0, 4.0), mode="pow2_i16")
    assert choice.noise <= choice.noise_without
    assert 1 <= choice.range_factor < 2
    assert choice.plan.verify() == []


def test_search_keeps_the_better_multiplier():
    request = dict(weights=WEIGHTS, bias=BIAS, input_quant=(0.05, 3), output_range=(-4.0, 4.0), mode="mult7_i16")
    gains = lambda plan: plan.multiplier * 2.0**-plan.shift
    exact, nearest = (weightmill.plan_conv(**request, multiplier=rule) for rule in ("exact", "nearest"))
    assert exact.exact_gain and not nearest.exact_gain
    assert np.abs(nearest.weights).max((0, 1, 2, 3)).min() == 127
    np.testing.assert_allclose(gains(nearest) * nearest.input.steps_per_unit * nearest.weight_steps_per_unit,
                               nearest.output.steps_per_unit, rtol=2**-7)
    for wanted in (exact, nearest):
        noise = lambda plan: float(plan.exact_gain != wanted.exact_gain)
        choice = weightmill.search_output_scale(**request, n_candidates=1, measured_noise=noise)
        np.testing.assert_array_equal(choice.plan.weights, wanted.weights)


def test_search_takes_the_plan_that_measures_best():
    seen = []
    measure = lambda plan: seen.append(plan.output.steps_per_unit) or len(seen) == 1
    choice = weightmill.search_output_scale(WEIGHTS, BIAS, (0.05, 3), (-4.0, 4.0), n_candidates=4, measured_noise=measure)
    assert len(seen) == 4
    assert choice.plan.output.steps_per_unit == seen[1]
    assert (choice.noise, choice.noise_without) == (0.0, 1.0)


def test_agreement_says_decibels_and_steps():
    reference = np.float32([[3, 4]])
    result = weightmill.agreement(reference, np.array([[6, 9]]), weightmill.Grid(2.0))
    assert (result.sqnr_db, result.max_error_steps, result.count) == (pytest.approx(20), 1.0, 2)
    assert [a.max_error_steps for a in weightmill.channel_agreement(reference, np.array([[6, 9]]), weightmill.Grid(2.0))] == [0, 1]


def test_weights_of_int4_take_a_group_scale_and_warn_per_tensor():
    weights = RNG.normal(size=(1, 1, 64, 1, 3)).astype(np.float32)
    plan = weightmill.plan_weights(weights, bits=4, group_size=32)
    assert plan.renorm.shape == (2, 3) and np.abs(plan.weights).max() == 7
    warned = weightmill.plan_weights(weights, bits=4, per_channel=False)
    assert [d.code for d in warned.diagnostics] == ["W_INT4_PER_TENSOR"]
