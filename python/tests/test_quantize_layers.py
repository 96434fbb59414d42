"""Every mode on every kind of layer: the plan, run in integers, is near the real layer."""

import numpy as np
import pytest

import weightmill
from real_layers import real_layer

MODES = ["mult31_i8", "mult31_i16", "mult7_i8", "mult7_i16", "pow2_i8", "pow2_i16", "pow2_folded_i8", "pow2_folded_i16",
         "pow2_folded_i32"]

# kind: (weight shape in the planner's order, input shape, geometry)
LAYERS = {
    "2d": ((3, 3, 4, 1, 6), (2, 7, 8, 4), dict(stride=(1, 2), padding=[(1, 0), (1, 1)])),
    "dilated": ((3, 2, 4, 1, 5), (1, 9, 8, 4), dict(dilation=(2, 3), padding=1)),
    "grouped": ((3, 3, 2, 3, 2), (1, 6, 6, 6), dict(padding=1)),
    "depthwise": ((3, 3, 1, 8, 1), (1, 6, 6, 8), dict(padding=1)),
    "depthwise with multiplier": ((3, 3, 1, 4, 3), (1, 6, 6, 4), dict(stride=2)),
    "3d": ((2, 3, 3, 3, 1, 4), (1, 4, 5, 5, 3), dict(padding=[(0, 1), (1, 1), (1, 1)])),
    "3d grouped": ((2, 2, 2, 2, 2, 2), (1, 4, 4, 4, 4), dict(stride=(1, 2, 1))),
    "transposed": ((3, 3, 4, 1, 5), (1, 4, 5, 4), dict(stride=2, padding=1, transposed=True)),
    "dense": ((1, 1, 30, 1, 7), (5, 30), dict()),
    "one channel": ((1, 1, 12, 1, 1), (9, 12), dict()),
}


def input_of(mode: str, int16: bool) -> tuple[weightmill.Grid, np.dtype]:
    if mode == "mult31_i16":
        return weightmill.Grid(8000.0), np.dtype(np.int16)
    int16 = int16 and mode != "mult31_i8"
    return (weightmill.Grid(8000.0, -700), np.dtype(np.int16)) if int16 else (weightmill.Grid(30.0, -5), np.dtype(np.int8))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_plan_computes_its_layer(kind, mode):
    shape, input_shape, geometry = LAYERS[kind]
    rng = np.random.default_rng(11)
    weights = (rng.normal(size=shape) * rng.uniform(0.02, 0.3, shape[-2:])).astype(np.float32)
    bias = rng.normal(size=shape[-2] * shape[-1]).astype(np.float32)
    for int16 in (False, True):
        for per_channel in (False, True):
            grid, dtype = input_of(mode, int16)
            info = np.iinfo(dtype)
            codes = rng.integers(info.min, info.max + 1, input_shape).astype(dtype)
            wanted = real_layer((codes.astype(float) - grid.zero_point) / grid.steps_per_unit, weights, **geometry) + bias
            plan = weightmill.plan_conv(weights, bias, grid, (wanted.min(), wanted.max()), mode, int16_input=int16,
                                        per_channel=per_channel)
            assert plan.verify() == []
            rounding = "int16x8" if mode == "mult31_i16" else "gemmlowp_double"
            found = plan.simulate(codes, rounding=rounding, **geometry)
            agreement = weightmill.agreement(wanted.astype(np.float32), found, plan.output)
            assert agreement.sqnr_db > (30 if per_channel else 24), (int16, per_channel)
            each = weightmill.channel_agreement(wanted.astype(np.float32), found, plan.output)
            assert len(each) == bias.size and min(a.cosine for a in each) > 0.98


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1)])
def test_the_smallest_layers_have_plans(mode, shape):
    for value in (0.0, 1e-42, -3e38, 1.0):
        plan = weightmill.plan_conv(np.full(shape, value, np.float32), None, (0.05, 0), (-4.0, 4.0), mode)
        assert plan.verify() == [] and plan.weights.shape == shape


@pytest.mark.parametrize("shape", [(0, 3, 3, 1, 2), (3, 3, 0, 1, 2), (3, 3, 2, 0, 2), (3, 3, 2, 1, 0), (0, 0, 0, 0, 0)])
def test_empty_weights_are_refused(shape):
    with pytest.raises(weightmill.Error, match="E_SHAPE"):
        weightmill.plan_conv(np.zeros(shape, np.float32), None, (0.05, 0), (-4.0, 4.0))
    with pytest.raises(weightmill.Error, match="E_SHAPE"):
        weightmill.plan_weights(np.zeros(shape, np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", MODES)
def test_numbers_that_are_none_are_refused_in_every_mode(mode, value):
    weights, bias, mean = (np.ones(shape, np.float32) for shape in ((1, 1, 2, 1, 3), 3, 2))
    sound = dict(weights=weights, bias=bias, input_quant=(0.05, 0), output_range=(-4.0, 4.0), mode=mode, input_mean=mean)
    for field in ("weights", "bias", "input_mean"):
        broken = sound[field].copy()
        broken.flat[-1] = value
        with pytest.raises(weightmill.Error, match="E_NOT_FINITE"):
            weightmill.plan_conv(**(sound | {field: broken}))
    for output_range in ((-4.0, value), (value, 4.0)):
        with pytest.raises(weightmill.Error, match="E_NOT_FINITE"):
            weightmill.plan_conv(**(sound | {"output_range": output_range}))


@pytest.mark.parametrize("mode", MODES)
def test_a_zero_output_is_refused_or_planned_with_a_warning(mode):
    request = dict(weights=np.ones((1, 1, 2, 1, 3), np.float32), bias=None, input_quant=(0.05, 0), output_range=(0, 0), mode=mode)
    with pytest.raises(weightmill.Error, match="E_ZERO_OUTPUT"):
        weightmill.plan_conv(**request)
    plan = weightmill.plan_conv(**request, allow_zero_output=True)
    assert plan.log[-1] == "W_ZERO_OUTPUT" and plan.verify() == []


def test_a_mean_input_moves_the_bias_by_what_rounding_took():
    rng = np.random.default_rng(5)
    weights, mean = rng.normal(size=(3, 3, 6, 1, 4)).astype(np.float32), rng.uniform(1, 3, 6).astype(np.float32)
    x = np.abs(rng.normal(mean, 0.3, (1, 20, 20, 6)))
    codes = np.clip(np.rint(x * 50) - 128, -128, 127).astype(np.int8)
    wanted = real_layer((codes + 128.0) / 50, weights)
    errors = []
    for input_mean in (None, mean):
        plan = weightmill.plan_conv(weights, None, weightmill.Grid(50.0, -128), (wanted.min(), wanted.max()),
                                    "pow2_i16", per_channel=False, input_mean=input_mean)
        found = (plan.simulate(codes) - float(plan.output.zero_point)) * plan.output.scale
        errors.append(np.abs((found - wanted).mean((0, 1, 2))).mean())
    assert errors[1] < errors[0] / 4
