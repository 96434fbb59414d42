"""Multiplier, shift and bias of every layer of real models: ours against what both of Vela's cores write."""

import dataclasses

import numpy as np
import pytest

import weightmill

pytest.importorskip("ai_edge_litert")

import tflite_layers
from scale_records import npu_operations, record_of
from vela_tool import VELA, compile_with_vela

MODELS = ["kws_dscnn_int8", "resnet8_int8", "ad01_int8", "vww_96_int8", "openmv_fomo_face_int8",
          "seanet_conv4_16x8"]
TARGETS = [("regor", "ethos-u55-128"), ("legacy", "ethos-u55-128"), ("regor", "ethos-u85-256")]

pytestmark = [
    pytest.mark.skipif(VELA is None, reason="vela is not installed: requirements/test.txt"),
    pytest.mark.skipif(not tflite_layers.MODELS.exists(), reason="models not installed: set WEIGHTMILL_MODELS_DIR"),
]


def our_records(op: tflite_layers.Operator, core: str, accelerator: str) -> list[tuple[int, int, int]]:
    layer = op.layer
    n_channels = layer.weights.shape[-2] * layer.weights.shape[-1]
    biases = np.zeros(n_channels, np.int32) if layer.bias is None else layer.bias
    packed = weightmill.pack_scales(
        biases.tolist(), layer.input_scale, layer.output_scale, layer.weight_scale, accelerator=accelerator,
        ifm_dtype=layer.input_dtype, scaling={"legacy": "vela5", "regor": "regor"}[core],
        fully_connected=op.kind == "fully_connected", bias_is_64_bit=biases.dtype == np.int64)
    data = packed.compressed_values[0]
    return [record_of(data[10 * c:10 * c + 10], accelerator.startswith("ethos-u85")) for c in range(n_channels)]


def place_of(records, layers):
    """(layer, first channel) whose records these are, in a row."""
    for i, wanted in enumerate(layers):
        for first in range(len(wanted) - len(records) + 1):
            if wanted[first:first + len(records)] == records:
                return i, first
    return None


@pytest.mark.parametrize("core, accelerator", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_records_of_every_layer_are_velas(name, core, accelerator, tmp_path):
    source = tflite_layers.MODELS / f"{name}.tflite"
    model = tflite_layers.read(source)
    weighted = [i for i, op in enumerate(tflite_layers.operator_names(model)) if op in tflite_layers.KINDS]
    layers = [our_records(tflite_layers.operator(model, i), core, accelerator) for i in weighted]
    written = npu_operations(compile_with_vela(source, tmp_path, accelerator, "Performance", "Sram_Only", core))
    found = set()
    for operation in written:
        place = place_of(operation.records, layers)
        assert place is not None, f"no layer has the records {operation.records[:3]}..."
        found |= {(place[0], place[1] + c) for c in range(len(operation.records))}
    everything = {(i, c) for i, records in enumerate(layers) for c in range(len(records))}
    equal_layers = {i for i, records in enumerate(layers) if layers.index(records) != i}  # found as their first twin
    assert {entry for entry in everything - found if entry[0] not in equal_layers} == set()


@pytest.mark.parametrize("name", ["kws_dscnn_int8", "seanet_conv4_16x8"])
def test_the_npu_rule_on_velas_records_gives_the_reference_codes(name, tmp_path):
    """Vela asks U55 for double rounding of int8 layers and one rounding of int16 layers: with its records these are the
    codes of TFLM and of LiteRT's reference convolutions."""
    source = tflite_layers.MODELS / f"{name}.tflite"
    model = tflite_layers.read(source)
    written = npu_operations(compile_with_vela(source, tmp_path, "ethos-u55-128", "Performance", "Sram_Only", "regor"))
    rng = np.random.default_rng(3)
    for i, node in enumerate(tflite_layers.operator_names(model)):
        if node not in tflite_layers.KINDS:
            continue
        op = tflite_layers.operator(model, i)
        records = our_records(op, "regor", "ethos-u55-128")
        rounding = next(operation.rounding for operation in written if operation.records == records)
        assert rounding == (2 if op.dtype == "int16" else 0)
        on_npu = dataclasses.replace(op.layer, weight_scale=None, multiplier=[m for _, m, _ in records],
                                     shift=[s for _, _, s in records], accumulator_bits=64,
                                     rounding="ethos_u_natural" if rounding == 2 else "ethos_u_double")
        shape = model.subgraphs[0].tensors[op.input].shape
        limits = np.iinfo(op.dtype)
        codes = rng.integers(limits.min, limits.max + 1, [int(n) for n in shape]).astype(op.dtype)
        reference = weightmill.simulate(op.layer, codes, "int16x8" if op.dtype == "int16" else "gemmlowp_double")
        np.testing.assert_array_equal(weightmill.simulate(on_npu, codes), reference, f"{name} operator {i}")
