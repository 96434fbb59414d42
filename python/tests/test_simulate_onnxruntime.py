"""The simulator against ONNX Runtime's integer kernels on the CPU, live and recorded, bit for bit under float_gain."""

import json
import os

import numpy as np
import pytest

import weightmill

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import qdq_graphs
import qdq_samples
from tflite_layers import GOLDEN

# Of each kind. WEIGHTMILL_LONG=1 runs ten times as many.
N_SAMPLES = 10_000 if os.environ.get("WEIGHTMILL_LONG") else 1_000
N_AT_ONCE = 100
SET = GOLDEN / "qdq"


@pytest.mark.parametrize("kind", qdq_samples.KINDS)
def test_simulation_is_onnxruntime_bit_for_bit(kind, tmp_path):
    optimized = str(tmp_path / "optimized.onnx")
    for first in range(0, N_SAMPLES, N_AT_ONCE):
        samples = [qdq_samples.draw(kind, seed) for seed in range(first, first + N_AT_ONCE)]
        model = qdq_samples.onnx_model(samples)
        outputs = qdq_samples.run_onnxruntime(model, [sample.input for sample in samples], optimized)
        kernels = [node.op_type for node in onnx.load(optimized).graph.node if node.op_type != "Transpose"]
        assert kernels == [samples[0].kernel] * N_AT_ONCE, "every layer must run in its integer kernel"
        for k, sample in enumerate(samples):
            np.testing.assert_array_equal(qdq_samples.simulate(sample), outputs[k], f"seed {first + k}")


def exception_for(model) -> str | None:
    """Why ONNX Runtime computes something else than the graph says, or nothing that has codes."""
    dequantized = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    quantized = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    if any(node.input[0] in dequantized for node in quantized):
        return "two QuantizeLinear in a row are merged into one"
    weighted = [node for node in model.graph.node if node.op_type in qdq_graphs.WEIGHTED]
    read = {name for node in model.graph.node for name in node.input}
    if any(node.output[0] not in read for node in weighted):
        return "the layer's output stays float"
    return None


def recorded_output(case: dict) -> str:
    key = "ort_all"
    while case[key].startswith("same as "):
        key = case[key].removeprefix("same as ")
    return key


@pytest.mark.skipif(not (SET / "index.json").exists(), reason="qdq not installed: set WEIGHTMILL_GOLDEN_DIR")
def test_all_weighted_integer_layers_are_the_recorded_numbers():
    arrays, n_equal, exceptions = np.load(SET / "vectors.npz"), 0, []
    for name, case in json.loads((SET / "index.json").read_text()).items():
        if case["format"] != "onnx" or case["ort_integer"] != "yes":
            continue
        if not set(case["ort_kernels"]) <= {"Transpose", "QLinearConv", "QGemm", "QLinearMatMul"}:
            continue
        model = onnx.load(SET / f"{name}.onnx")
        operators = {node.op_type for node in model.graph.node}
        if not operators & qdq_graphs.WEIGHTED or operators - qdq_graphs.OPERATORS:
            continue
        reason = exception_for(model)
        if reason:
            exceptions.append((name, reason))
            continue
        inputs = {graph_input: arrays[key] for graph_input, key in case["inputs"].items()}
        for i, output in enumerate(qdq_graphs.Graph(model, inputs).run()):
            np.testing.assert_array_equal(output, arrays[f"{name}/{recorded_output(case)}/{i}"], name)
            n_equal += 1
    assert n_equal > 0
    assert len(exceptions) <= 0.1 * n_equal, exceptions
    print(f"{n_equal} outputs equal; not compared: {exceptions}")


def test_half_even_on_a_31_bit_multiplier_is_not_the_float_rule():
    """The two rules meet on nearly all codes; one sum where float32 rounds the other way tells them apart."""
    layer = weightmill.Layer(
        np.ones((1, 1, 1, 1, 1), np.int8),
        bias=[(1 << 25) + 1],
        input_scale=1.0,
        weight_scale=1.0,
        output_scale=float(1 << 26),
    )
    codes = np.zeros((1, 1), np.int8)
    assert weightmill.simulate(layer, codes, "half_even")[0, 0] == 1
    assert weightmill.simulate(layer, codes, "float_gain")[0, 0] == 0
