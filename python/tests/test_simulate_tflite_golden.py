"""The simulator against recorded outputs of LiteRT's three kernel paths and of TFLM: all weighted layers of a set."""

import json

import numpy as np
import pytest

import weightmill

pytest.importorskip("ai_edge_litert")

import tflite_layers
from engine_rules import litert_rule

SET = tflite_layers.GOLDEN / "tflops"
pytestmark = pytest.mark.skipif(not (SET / "index.json").exists(),
                                reason="tflops not installed: set WEIGHTMILL_GOLDEN_DIR")


def weighted_cases() -> list[str]:
    names = []
    for name in json.loads((SET / "index.json").read_text()):
        model = tflite_layers.read(SET / f"{name}.tflite")
        if set(tflite_layers.operator_names(model)) <= set(tflite_layers.KINDS):
            names.append(name)
    return names


def exception_for(op: tflite_layers.Operator, engine: str) -> str | None:
    """Why an engine's output is not what the layer says, where that cannot be computed from the layer."""
    reads_int64 = op.kind == "transposed" if engine == "tflm" else op.kind != "fully_connected"
    if op.bias32 and not op.bias32_declared and reads_int64:
        return "the kernel reads the int32 bias as int64, past its end"
    limits = np.iinfo(op.layer.input_dtype)
    if not limits.min <= op.layer.input_zero_point <= limits.max:
        return "the input's zero point is no code"
    return None


def as_engine_reads(op: tflite_layers.Operator, engine: str) -> weightmill.Layer:
    """TFLM checks neither that int16 has zero point 0 nor the type of an int8 layer's bias."""
    layer = op.layer
    if engine == "tflm" and op.dtype == "int16" and op.kind != "fully_connected":
        layer.input_zero_point = layer.output_zero_point = 0
    if op.dtype == "int8" and layer.bias is not None and layer.bias.dtype == np.int64:
        layer.bias = layer.bias.view(np.int32)[:layer.bias.size]
    return layer


def run(model, inputs: list[np.ndarray], engine: str, delegated: bool) -> list[np.ndarray] | str:
    graph = model.subgraphs[0]
    values = dict(zip((int(i) for i in graph.inputs), inputs, strict=True))
    for op in tflite_layers.operators(model):
        reason = exception_for(op, engine)
        if reason:
            return reason
        rule = litert_rule(engine, op.kind, op.dtype, grouped=op.grouped, delegated=delegated, bias32=op.bias32)
        values[op.output] = weightmill.simulate(as_engine_reads(op, engine), values[op.input], rule)
    return [values[int(i)] for i in graph.outputs]


def test_all_weighted_layers_are_the_recorded_codes():
    n_equal, exceptions = 0, []
    index = json.loads((SET / "index.json").read_text())
    for name in weighted_cases():
        model = tflite_layers.read(SET / f"{name}.tflite")
        arrays = np.load(SET / f"{name}.npz")
        inputs = [arrays[f"s0_in{k}"] for k in range(len(model.subgraphs[0].inputs))]
        for engine, record in index[name]["engines"].items():
            if record["status"] != "ok":
                continue
            try:
                outputs = run(model, inputs, engine, record.get("xnnpack_delegated", True))
            except tflite_layers.NotUnderstood as reason:
                outputs = str(reason)
            if isinstance(outputs, str):
                exceptions.append((name, engine, outputs))
                continue
            for k, codes in enumerate(outputs):
                np.testing.assert_array_equal(codes, arrays[f"s0_{record['outputs']}_out{k}"], f"{name}, {engine}")
                n_equal += 1
    assert n_equal > 0
    assert all(index[name]["kind"] in ("bad", "model") for name, _, _ in exceptions), exceptions
    print(f"{n_equal} outputs equal; not compared: {exceptions}")
