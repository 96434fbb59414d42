"""The planner against a second one, written in numpy from the document alone: strange requests, equal plans."""

import pathlib
import sys

import numpy as np
import pytest

import weightmill

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import numpy_planner  # noqa: E402


def random_request(rng: np.random.Generator) -> numpy_planner.Request:
    mode = str(rng.choice(list(numpy_planner.MODES)))
    int16 = bool(rng.random() < 0.4)
    shape = tuple(rng.integers(1, [4, 4, 7, 4, 6]))
    channels = shape[-2] * shape[-1]
    size = 10.0 ** (rng.uniform(-0.5, 0.5, channels) * rng.choice([0, 2, 12, 50]))
    size[rng.random(channels) < 0.1] = 0
    limit = 32768 if int16 else 128
    width = 10.0 ** (rng.uniform(-0.5, 0.5) * rng.choice([6, 6, 30]))
    low = 0.0 if rng.random() < 0.4 else -rng.random() * width
    bias = rng.normal(size=channels) * width * 10.0 ** (rng.uniform(-0.5, 0.5, channels) * rng.choice([4, 4, 40]))
    return numpy_planner.Request(
        weights=(rng.normal(size=shape) * size.reshape(shape[-2:])).astype(np.float32),
        bias=None if rng.random() < 0.2 else bias.astype(np.float32),
        input_steps=100 * 10.0 ** rng.uniform(-2, 2),
        input_zero=int(rng.choice([0, -limit, rng.integers(-limit, limit)])),
        output_range=(low, low + width * (0.01 + rng.random())),
        mode=mode,
        policy=str(rng.choice(["classic", "fixed"])),
        per_channel=bool(rng.random() < 0.6),
        asymmetric=bool(rng.random() < 0.6),
        int16_input=int16,
        relu_workaround=bool(mode in ("pow2_folded_i8", "pow2_folded_i16") and rng.random() < 0.3),
        allow_int32=bool(rng.random() < 0.3),
        input_mean=rng.normal(size=shape[-3] * shape[-2]).astype(np.float32) if rng.random() < 0.2 else None,
    )


def ours(request: numpy_planner.Request) -> weightmill.ConvPlan:
    options = {name: getattr(request, name) for name in ("policy", "per_channel", "asymmetric", "int16_input", "relu_workaround",
                                                         "allow_int32", "input_mean")}
    grid = weightmill.Grid(request.input_steps, request.input_zero)
    return weightmill.plan_conv(request.weights, request.bias, grid, request.output_range, request.mode, **options)


@pytest.mark.parametrize("block", range(10))
def test_strange_requests_have_equal_plans(block):
    for seed in range(block * 200, block * 200 + 200):
        request = random_request(np.random.default_rng(seed))
        try:
            wanted = numpy_planner.plan(request)
        except numpy_planner.NoPlan:
            with pytest.raises(weightmill.Error, match="E_NO_PLAN"):
                ours(request)
            continue
        plan = ours(request)
        message = f"seed {seed}"
        assert (plan.mode, plan.attempts, plan.log) == (wanted["mode"], wanted["attempts"], wanted["log"]), message
        assert (plan.output.steps_per_unit, plan.output.zero_point) == wanted["output"], message
        np.testing.assert_array_equal(plan.weights, wanted["weights"], message)
        np.testing.assert_array_equal(plan.shift, wanted["shift"], message)
        np.testing.assert_array_equal(plan.multiplier, wanted["multiplier"], message)
        np.testing.assert_array_equal(plan.intrinsic_shift, wanted["intrinsic"], message)
        np.testing.assert_array_equal(plan.weight_drop, wanted["drop"], message)
        np.testing.assert_array_equal(plan.weight_steps_per_unit, wanted["weight_steps"], message)
        np.testing.assert_array_equal(plan.bias_steps_per_unit, wanted["bias_steps"], message)
        tolerance = 0 if request.input_mean is None else 1  # a sum of doubles, in another order
        assert np.abs(plan.bias.astype(np.int64) - wanted["bias"]).max() <= tolerance, message
