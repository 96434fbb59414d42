"""The simulator against LiteRT's three kernel paths, live, bit for bit."""

import os

import numpy as np
import pytest

import weightmill

pytest.importorskip("ai_edge_litert")

import layer_samples
from engine_rules import ENGINES, litert_rule

# Of each kind and type. WEIGHTMILL_LONG=1 runs ten times as many.
N_SAMPLES = 10_000 if os.environ.get("WEIGHTMILL_LONG") else 1_000
N_AT_ONCE = 100


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("kind", layer_samples.KINDS)
def test_simulation_is_litert_bit_for_bit(kind, dtype):
    n_compared, rules_told_apart = 0, 0
    for first in range(0, N_SAMPLES, N_AT_ONCE):
        samples = [layer_samples.draw(kind, dtype, seed) for seed in range(first, first + N_AT_ONCE)]
        model = layer_samples.tflite_model(samples)
        inputs = [sample.input for sample in samples]
        outputs = {engine: layer_samples.run_litert(model, engine, inputs) for engine in ENGINES}
        for k, sample in enumerate(samples):
            for engine in ENGINES:
                rule = litert_rule(engine, kind, dtype, grouped=sample.grouped, delegated=sample.delegated)
                simulated = weightmill.simulate(layer_samples.layer_of(sample, rule), sample.input)
                np.testing.assert_array_equal(simulated, outputs[engine][k], f"seed {first + k}, {engine}, {rule}")
                n_compared += 1
            rules_told_apart += not np.array_equal(outputs["ref"][k], outputs["xnn"][k])
    assert n_compared == 3 * N_SAMPLES
    if dtype == "int8":
        assert rules_told_apart > 0, "the samples must be able to tell the rules apart"


def test_fully_connected_gains_are_doubles_not_31_bit_multipliers():
    """4 million sums near each other: a 31-bit multiplier is wrong on a handful of them, a float64 gain on none."""
    rng = np.random.default_rng(5)
    codes = np.arange(-32768, 32768).astype(np.int16).reshape(-1, 1)
    sample = layer_samples.Sample(
        "fully_connected", "int16", rng.integers(100, 127, (64, 1)).astype(np.int8), rng.integers(-2**20, 2**20, 64),
        codes, np.float32(0.013), 0, rng.uniform(0.0101, 0.0102, 64).astype(np.float32), np.float32(0.0131), 0,
        (65536, 64))
    model = layer_samples.tflite_model([sample])
    for engine in ENGINES:
        output = layer_samples.run_litert(model, engine, [codes])[0]
        np.testing.assert_array_equal(weightmill.simulate(layer_samples.layer_of(sample, "double_gain"), codes), output)
        half_away = weightmill.simulate(layer_samples.layer_of(sample, "half_away"), codes)
        assert 0 < np.count_nonzero(half_away != output) < 100


def test_threads_change_nothing():
    for seed in range(20):
        sample = layer_samples.draw("convolution", "int8", seed)
        layer = layer_samples.layer_of(sample, "float_gain")
        np.testing.assert_array_equal(weightmill.simulate(layer, sample.input, jobs=1),
                                      weightmill.simulate(layer, sample.input, jobs=3))
