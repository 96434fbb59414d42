"""The simulator on recorded plans: planned layers, engine-native layers, and the requantization units."""


import numpy as np
import pytest

import weightmill
from convq_golden import SET, arrays_of, cases, padding_of

pytestmark = pytest.mark.skipif(not (SET / "convq.json").exists(),
                                reason="convq not installed: set WEIGHTMILL_GOLDEN_DIR")

DTYPES = {8: "int8", 16: "int16", 32: "int32"}


def planned_layer(case: dict, arrays: dict) -> weightmill.Layer:
    """The layer of a recorded plan: its own multipliers, shifts and intrinsic shifts, zero points inside the bias."""
    expect = case["expect"]
    n_channels = int(np.prod(case["weight_shape"][-2:]))
    folded = expect["kind"] == "folded"
    return weightmill.Layer(
        arrays["qw"], arrays["qb"], input_dtype=str(arrays["x"].dtype), input_zero_point=case["input_zero"],
        output_dtype=DTYPES[expect["out_bits"]], output_zero_point=0 if folded else expect["output_zero"],
        rounding="folded" if folded else "after_shift", multiplier=for_each_channel(expect["multiplier"], n_channels),
        shift=for_each_channel(expect["shift"], n_channels), stride=case["stride"], dilation=case["dilation"],
        padding=padding_of(case), bias_folded=True,
        intrinsic_shift=for_each_channel(expect["intrinsic"], n_channels) if case["int15"] else ())


def for_each_channel(lanes, n_channels: int) -> list:
    return list(lanes) if len(lanes) == n_channels else list(lanes) * n_channels


def activated(codes: np.ndarray, activation: str, steps_per_unit: float, zero_point: int) -> np.ndarray:
    """ReLU and ReLU6 of a plan on its output codes: the six is rounded half to even."""
    if activation == "none":
        return codes
    codes = np.maximum(codes.astype(np.int64), zero_point)
    return codes if activation == "relu" else np.minimum(codes, int(np.rint(6 * steps_per_unit)) + zero_point)


def test_recorded_plans_give_the_recorded_codes():
    n_equal = n_wide = 0
    for case in cases():
        if "expect" not in case or case["category"] == "mult31":
            continue
        arrays = arrays_of(case)
        expect = case["expect"]
        codes, counts = weightmill.simulate(planned_layer(case, arrays), arrays["x"], counts=True)
        codes = activated(codes, case["activation"], expect["output_scale"], expect["output_zero"])
        np.testing.assert_array_equal(codes, arrays["y"], case["id"])
        assert (counts.wide > 0) == (case["acc_overflow"] > 0), case["id"]
        n_equal += 1
        n_wide += counts.wide > 0
    assert n_equal > 0
    print(f"{n_equal} layers equal, {n_wide} of them with accumulators beyond 32 bits")


RULES = {"y_double": "gemmlowp_double", "y_single": "half_up", "y_int16": "int16x8"}


def test_engine_native_layers_give_the_recorded_codes_of_each_rule():
    n_equal = 0
    for case in cases():
        if case["category"] != "mult31":
            continue
        arrays, expect = arrays_of(case), case["expect"]
        dtype = DTYPES[case["bits"]]
        layer = weightmill.Layer(
            arrays["qw"], arrays.get("bias") if case["has_bias"] else None, input_dtype=dtype,
            input_zero_point=case["input_zero"], output_dtype=dtype, output_zero_point=expect["out_zero"],
            input_scale=expect["in_scale"], weight_scale=arrays["w_scale"], output_scale=expect["out_scale"],
            stride=case["stride"], dilation=case["dilation"], padding=padding_of(case))
        for name, rule in RULES.items():
            if name in arrays:
                codes = weightmill.simulate(layer, arrays["x"], rule)
                codes = activated(codes, case["activation"], 1 / expect["out_scale"], expect["out_zero"])
                np.testing.assert_array_equal(codes, arrays[name], f"{case['id']} {rule}")
                n_equal += 1
    assert n_equal > 0


def unit_layer(acc, out_bits, **gains) -> weightmill.Layer:
    """A dense layer whose accumulators for input 0 are `acc`, one output channel each."""
    weights = np.zeros((1, 1, 1, 1, acc.size), np.int8)
    return weightmill.Layer(weights, acc, bias_folded=True, output_dtype=DTYPES[out_bits], **gains)


def test_requantization_units():
    n_equal, zero = 0, np.zeros((1, 1), np.int8)
    for case in cases():
        arrays = arrays_of(case)
        if case["category"] == "unit_folded_requant":
            layer = unit_layer(arrays["acc"], case["out_bits"], rounding="folded", shift=arrays["shift"].tolist())
            np.testing.assert_array_equal(weightmill.simulate(layer, zero)[0], arrays["y"])
            n_equal += arrays["y"].size
        if case["category"] == "unit_tflite_requant":
            for zero_point in np.unique(arrays["zero"]):
                of = arrays["zero"] == zero_point
                gains = {"multiplier": arrays["mult"][of].tolist(), "shift": arrays["shift"][of].tolist()}
                layer = unit_layer(arrays["acc"][of], case["out_bits"], rounding="after_shift",
                                   output_zero_point=zero_point, **gains)
                np.testing.assert_array_equal(weightmill.simulate(layer, zero)[0], arrays["y"][of])
                n_equal += int(of.sum())
    assert n_equal > 0
