"""weightmill.simulate(): plans, chains, counts, prepared layers, and what is refused."""

import dataclasses

import numpy as np
import pytest

import weightmill


def small_layer(**fields) -> weightmill.Layer:
    weights = np.random.default_rng(1).integers(-127, 128, (3, 3, 4, 1, 6)).astype(np.int8)
    scales = {"input_scale": 0.05, "weight_scale": 0.01, "output_scale": 0.5}
    return weightmill.Layer(weights, **({"padding": 1} | scales | fields))


CODES = np.random.default_rng(2).integers(-128, 128, (2, 5, 7, 4)).astype(np.int8)


def test_every_rule_runs_and_stays_within_one_step_of_the_others():
    rules = set(weightmill.rounding_rules()) - {"folded", "after_shift", "ethos_u_double", "ethos_u_natural"}
    codes = {rule: weightmill.simulate(small_layer(), CODES, rule).astype(int) for rule in rules}
    for rule in rules:
        assert np.abs(codes[rule] - codes["half_even"]).max() <= 1, rule


def test_a_prepared_layer_gives_what_simulate_gives():
    simulator = weightmill.Simulator(small_layer(), "float_gain")
    for jobs in (1, 2):
        np.testing.assert_array_equal(simulator.run(CODES, jobs=jobs),
                                      weightmill.simulate(small_layer(), CODES, "float_gain"))


def test_a_chain_hands_codes_on():
    first = small_layer()
    second = weightmill.Layer(np.ones((1, 1, 6, 1, 2), np.int8), input_scale=0.5, weight_scale=0.1, output_scale=1.0)
    codes, counts = weightmill.simulate([first, second], CODES, "half_even", counts=True)
    np.testing.assert_array_equal(
        codes, weightmill.simulate(second, weightmill.simulate(first, CODES, "half_even"), "half_even"))
    assert len(counts) == 2


def test_saturated_outputs_are_counted():
    codes, counts = weightmill.simulate(small_layer(output_scale=0.01), CODES, counts=True)
    at_limits = np.count_nonzero((codes == -128) | (codes == 127))
    assert 0 < counts.saturated <= at_limits and counts.wide == 0


@pytest.mark.parametrize("mode", ["mult31_i8", "mult7_i8", "pow2_i8", "pow2_folded_i8"])
def test_a_plan_runs_near_its_float_layer(mode):
    rng = np.random.default_rng(3)
    weights = rng.normal(0, 0.1, (3, 3, 4, 1, 6)).astype(np.float32)
    real = (CODES.astype(np.float64) + 3) * 0.05
    padded = np.pad(real, ((0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(padded[:, y:y + 5, x:x + 7] @ weights[y, x, :, 0].astype(np.float64) for y in range(3) for x in range(3))
    plan = weightmill.plan_conv(weights, None, (0.05, -3), (wanted.min(), wanted.max()), mode)
    codes = weightmill.simulate(plan, CODES, "gemmlowp_double", padding=1)
    found = (codes.astype(int) - plan.output.zero_point) * plan.output.scale
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)


BAD_FIELDS = {
    "weights": np.ones((3, 3, 4), np.int8), "bias": [1, 2], "rounding": "half_down", "input_zero_point": 128,
    "output_zero_point": -129, "output_dtype": "int64", "input_dtype": "float32", "stride": (1, 2, 3), "dilation": 0,
    "activation": "tanh", "activation_rounding": "up", "input_scale": None, "output_scale": float("nan"),
    "weight_scale": [0.1, 0.2], "weight_zero_point": [1, 2], "padding": -9, "accumulator_bits": 48,
}


@pytest.mark.parametrize("field", BAD_FIELDS)
def test_a_layer_that_contradicts_itself_is_refused(field):
    with pytest.raises(weightmill.Error):
        weightmill.simulate(dataclasses.replace(small_layer(), **{field: BAD_FIELDS[field]}), CODES)


@pytest.mark.parametrize("codes", [CODES.astype(np.uint8), CODES.astype(np.float32), CODES[..., :3], CODES[0], CODES[:0]],
                         ids=["type", "float", "channels", "rank", "empty"])
def test_codes_that_do_not_fit_are_refused(codes):
    with pytest.raises(weightmill.Error):
        weightmill.simulate(small_layer(), codes)


def test_float_weights_and_an_empty_chain_are_refused():
    with pytest.raises(weightmill.Error, match="integers"):
        weightmill.simulate(weightmill.Layer(np.ones((1, 1, 4, 1, 2))), CODES)
    with pytest.raises(weightmill.Error, match="chain"):
        weightmill.simulate([], CODES)
