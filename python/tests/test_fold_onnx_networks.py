"""Real networks, quantized here by ONNX Runtime and by NNCF with their weights left in float, folded and run.

Judges: onnx.checker, and ONNX Runtime, which must give the same bits before and after.
"""

import logging
import os
import pathlib

import numpy as np
import onnx
import pytest

import weightmill
from onnx_engine import assert_same_results, random_inputs, session

SHARED = pathlib.Path(__file__).parents[3] / "shared"
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR", SHARED / "models"))

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="models not installed: set WEIGHTMILL_MODELS_DIR")


class RandomReader:
    """Two random samples; accuracy does not matter here."""

    def __init__(self, inputs):
        self.samples = iter(inputs)

    def get_next(self):
        return next(self.samples, None)


def samples(path):
    engine = session(path)
    return [random_inputs(engine, seed, free_extent=1) for seed in (1, 2)]


def quantize_with_onnx_runtime(source, target, weight_type, per_channel):
    quantization = pytest.importorskip("onnxruntime.quantization")
    quantization.quantize_static(
        source,
        target,
        RandomReader(samples(source)),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=per_channel,
        weight_type=getattr(quantization.QuantType, weight_type),
        activation_type=quantization.QuantType.QUInt8,
        extra_options={"AddQDQPairToWeight": True},
    )


def quantize_with_nncf(source, target):
    nncf = pytest.importorskip("nncf")
    nncf.set_log_level(logging.ERROR)
    data = nncf.Dataset(samples(source), lambda sample: sample)
    keep_float = nncf.AdvancedQuantizationParameters(backend_params={"compress_weights": False})
    onnx.save(nncf.quantize(onnx.load(source), data, subset_size=2, advanced_parameters=keep_float), target)


def float_weights_behind_quantize(made):
    stored = {entry.name for entry in made.graph.initializer}
    stored |= {node.output[0] for node in made.graph.node if node.op_type == "Constant"}
    return [node for node in made.graph.node if node.op_type == "QuantizeLinear" and node.input[0] in stored]


def check(quantized, folded):
    before = onnx.load(quantized)
    n_weights = len(float_weights_behind_quantize(before))
    report = weightmill.fold(quantized, folded, strict=True)
    after = onnx.load(folded)
    assert report.count("folded") == n_weights > 0
    assert float_weights_behind_quantize(after) == []
    assert folded.stat().st_size < 0.6 * quantized.stat().st_size
    onnx.checker.check_model(str(folded), full_check=True)
    assert_same_results(quantized, folded, random_inputs(session(quantized), 3, free_extent=1))


@pytest.mark.parametrize(
    "name, weight_type, per_channel",
    [
        ("kws_dscnn_float", "QInt8", True),
        ("resnet8_float", "QInt8", False),
        ("ad01_float", "QUInt8", False),
        ("vww_96_float", "QInt8", False),
        ("mobilenet_v1_025_224_imagenet", "QInt16", False),
        ("ppocr_v2_cls", "QInt8", True),
        ("ad01_float", "QInt4", False),
    ],
)
def test_quantized_by_onnx_runtime(tmp_path, name, weight_type, per_channel):
    source = MODELS / f"{name}.onnx"
    if not source.exists():
        pytest.skip(f"{source} is not there")
    quantized = tmp_path / "quantized.onnx"
    quantize_with_onnx_runtime(source, quantized, weight_type, per_channel)
    check(quantized, tmp_path / "folded.onnx")


@pytest.mark.parametrize("name", ["kws_dscnn_float", "resnet8_float"])
def test_quantized_by_nncf(tmp_path, name):
    source = MODELS / f"{name}.onnx"
    if not source.exists():
        pytest.skip(f"{source} is not there")
    quantized = tmp_path / "quantized.onnx"
    quantize_with_nncf(source, quantized)
    check(quantized, tmp_path / "folded.onnx")
