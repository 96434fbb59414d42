"""Folding of OpenVINO IR, with OpenVINO as judge."""

import json
import os
import pathlib

import numpy as np
import pytest

import weightmill

ov = pytest.importorskip("openvino")
from openvino import opset8 as op  # noqa: E402
from openvino._offline_transformations import compress_quantize_weights_transformation  # noqa: E402

import ir_models  # noqa: E402

SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared"
GOLDEN = pathlib.Path(os.environ.get("WEIGHTMILL_GOLDEN_DIR") or SHARED / "golden") / "fold" / "ir"
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR") or SHARED / "models")
BUGS = SHARED / "bugs" / "11_fakequant_fold"
CORE = ov.Core()

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def folded(model, path, **options):
    """`model` saved, folded and read again; and the report."""
    ov.serialize(model, str(path / "in.xml"))
    report = weightmill.fold(path / "in.xml", path / "out.xml", **options)
    return CORE.read_model(path / "out.xml"), report


def folded_by_openvino(path):
    model = CORE.read_model(path)
    compress_quantize_weights_transformation(model)
    return model


@pytest.mark.parametrize("batch", range(10))
def test_openvino_semantics_is_openvinos_fold_on_random_constants(tmp_path, batch):
    """500 a batch; every code, scale and zero point bit for bit, special values included."""
    random = np.random.default_rng(1000 + batch)
    cases = [ir_models.random_case(random, special=batch % 2 == 1) for _ in range(500)]
    names = [f"fq{i}" for i in range(500)]
    model = ir_models.model_of([ir_models.quantize_node(case) for case in cases], names)
    ours, report = folded(model, tmp_path, semantics="openvino")
    want = ir_models.dequantizations(folded_by_openvino(tmp_path / "in.xml"))
    got = ir_models.dequantizations(ours)
    assert set(got) == set(want) == set(names)
    for name in names:
        assert got[name] == want[name], (batch, name)
    assert report.count("folded") == 500


@pytest.mark.parametrize("batch", range(5))
def test_openvino_semantics_is_openvinos_fold_on_chains(tmp_path, batch):
    random = np.random.default_rng(77 + batch)
    names = [f"chain{i}" for i in range(200)]
    ours, _ = folded(
        ir_models.model_of([ir_models.random_chain(random) for _ in names], names), tmp_path, semantics="openvino"
    )
    assert ir_models.dequantizations(ours) == ir_models.dequantizations(folded_by_openvino(tmp_path / "in.xml"))


@pytest.mark.parametrize("batch", range(10))
def test_strict_semantics_is_the_definition_within_half_a_step(tmp_path, batch):
    """500 a batch, against FakeQuantize in float64 without its rounding."""
    random = np.random.default_rng(5000 + batch)
    cases = [{**ir_models.random_case(random), "dtype": "f32"} for _ in range(500)]
    names = [f"fq{i}" for i in range(500)]
    model, report = folded(ir_models.model_of([ir_models.quantize_node(case) for case in cases], names), tmp_path)
    found = ir_models.dequantizations(model)
    left = {tensor.name for tensor in report.tensors if tensor.outcome == "left"}
    assert len(left) < 25 and left.isdisjoint(found) and left | set(found) == set(names)
    for name, case in zip(names, cases, strict=True):
        if name in left:
            continue
        _, shape, codes, (scale_shape, scale), zero = found[name]
        scale = np.frombuffer(scale, np.float32).astype(np.float64).reshape(scale_shape)
        zero = 0.0 if zero is None else np.frombuffer(zero[1], np.float32).astype(np.float64).reshape(zero[0])
        value = (np.array(codes, np.float64).reshape(shape) - zero) * scale
        il, ih, ol, oh = (np.asarray(x, np.float64) for x in case["limits"])
        weights = case["weights"].astype(np.float64)
        position = np.clip((weights - il) / (ih - il), 0, 1)
        wanted = position * (oh - ol) + ol
        if (ih < il).any():  # inverted: outliers go to the side that they are on
            low, high = np.minimum(il, ih), np.maximum(il, ih)
            wanted = np.where(weights <= low, ol, np.where(weights > high, oh, wanted))
        slack = np.abs(scale) * 0.501 + 3e-7 * (np.abs(ol) + np.abs(oh) + np.abs(zero * scale))
        assert (np.abs(value - wanted) <= slack).all(), (batch, name)


def outputs(model, inputs):
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    return [np.array(value) for value in compiled(inputs).values()]


def random_inputs(model, seed=3):
    random = np.random.default_rng(seed)
    shapes = [[d.get_length() if d.is_static else 1 for d in port.get_partial_shape()] for port in model.inputs]
    return [random.normal(0, 1, shape).astype(np.float32) for shape in shapes]


def assert_same_results(before, after):
    inputs = random_inputs(before)
    for want, got in zip(outputs(before, inputs), outputs(after, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("real_*")) or ["none"])
def test_real_golden_models_run_the_same(tmp_path, name):
    if name == "none":
        pytest.skip("golden set fold/ir is not installed: set WEIGHTMILL_GOLDEN_DIR")
    expect = json.loads((GOLDEN / name / "expect.json").read_text())
    report = weightmill.fold(GOLDEN / name / "in.xml", tmp_path / "out.xml")
    assert report.count("folded") == expect["folded"]
    after = CORE.read_model(tmp_path / "out.xml")
    assert ir_models.count(after, "FakeQuantize") == expect["fq_after"]
    assert (tmp_path / "out.bin").stat().st_size <= expect["ov_bin"]
    inputs = [np.fromfile(GOLDEN / name / "x.f32", np.float32).reshape(expect["input_shape"])]
    want = np.fromfile(GOLDEN / name / "y_pre.f32", np.float32).reshape(expect["output_shape"])
    np.testing.assert_array_equal(outputs(after, inputs)[0], want)


NETWORKS = [
    "kws_dscnn_float_fp16_ir.xml",
    "resnet8_float_fp32_ir.xml",
    "ad01_float.tflite",
    "vww_96_float.tflite",
    "mltk_kws_alexa_float.tflite",
    "ppocr_v2_cls.onnx",
    "mobilenet_v1_025_224_imagenet_fp32_ir.xml",
]


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_that_nncf_quantized_run_the_same(tmp_path, network, half):
    nncf = pytest.importorskip("nncf")
    if not (MODELS / network).exists():
        pytest.skip(f"{network} is not installed: set WEIGHTMILL_MODELS_DIR")
    source = CORE.read_model(MODELS / network)
    if any(port.get_partial_shape().is_dynamic for port in source.inputs):
        source.reshape(
            {
                port: [
                    d.get_length() if d.is_static else (1 if i == 0 else 96)
                    for i, d in enumerate(port.get_partial_shape())
                ]
                for port in source.inputs
            }
        )
    data = nncf.Dataset([random_inputs(source, seed)[0] for seed in range(4)])
    parameters = nncf.AdvancedQuantizationParameters(
        backend_params={"compress_weights": False}, disable_bias_correction=True
    )
    quantized = nncf.quantize(source, data, subset_size=4, advanced_parameters=parameters)
    ov.save_model(quantized, tmp_path / "in.xml", compress_to_fp16=half)
    before = CORE.read_model(tmp_path / "in.xml")
    report = weightmill.fold(tmp_path / "in.xml", tmp_path / "out.xml")
    assert report.count("folded") > 0
    reasons = {tensor.reason for tensor in report.tensors if tensor.outcome == "left"}
    assert reasons <= {"its data comes through Reshape, not straight from a constant"}
    assert report.bytes_after < report.bytes_before
    assert all(tensor.max_error_steps <= tensor.bound_steps for tensor in report.tensors)
    assert_same_results(before, CORE.read_model(tmp_path / "out.xml"))
    again = weightmill.fold(tmp_path / "out.xml", tmp_path / "again.xml")
    assert again.count("folded") == 0 and (tmp_path / "again.xml").read_bytes() == (tmp_path / "out.xml").read_bytes()


def test_model_objects_fold_and_stay_as_they_were():
    case = ir_models.random_case(np.random.default_rng(1))
    model = ir_models.model_of([ir_models.quantize_node({**case, "dtype": "f32"})], ["fq"])
    report = weightmill.fold(model)
    assert report.format == "openvino" and report.count("folded") == 1
    assert ir_models.count(model, "FakeQuantize") == 1
    assert ir_models.count(report.model, "FakeQuantize") == 0
    assert list(ir_models.dequantizations(report.model)) == ["fq"]


def test_what_is_left_is_named_or_refused(tmp_path):
    nodes = [
        ir_models.quantize_node(dict(dtype="f32", levels=255, weights=w, limits=[-1, 1, -1, 1]))
        for w in ([0.5], [np.nan])
    ]
    ov.serialize(ir_models.model_of(nodes, ["good", "bad"]), str(tmp_path / "in.xml"))
    report = weightmill.fold(tmp_path / "in.xml", tmp_path / "out.xml")
    assert [(t.name, t.reason) for t in report.tensors if t.outcome == "left"] == [("bad", "NaN in weights")]
    with pytest.raises(weightmill.Error, match="bad: NaN in weights") as refused:
        weightmill.fold(tmp_path / "in.xml", tmp_path / "strict.xml", strict=True)
    assert refused.value.code == "unsupported"
    assert not list(tmp_path.glob("*strict*"))


def test_a_state_is_no_constant(tmp_path):
    zeros = op.constant(np.zeros((1, 4), np.float32))
    state = op.read_value(zeros, "state", ov.Type.f32, ov.PartialShape([1, 4]))
    quantized = op.fake_quantize(state, *[op.constant(np.float32(x)) for x in (-1, 1, -1, 1)], 256)
    store = op.assign(op.add(quantized, op.parameter([1, 4], name="x")), "state")
    x = store.input_value(0).get_node().input_value(1).get_node()
    ov.serialize(ov.Model([op.result(quantized)], [store], [x]), str(tmp_path / "in.xml"))
    assert weightmill.fold(tmp_path / "in.xml", tmp_path / "out.xml", strict=True).tensors == []


def fake_quantize(weights, limits, levels):
    """The definition in float64; and the number of the step, from 0."""
    il, ih, ol, oh = limits
    steps = np.rint((np.clip(weights, il, ih) - il) / (ih - il) * (levels - 1))
    return steps / (levels - 1) * (oh - ol) + ol, steps


def weight_quantizer(model):
    """The FakeQuantize over a constant: its levels, and the five constants in float64."""
    (node,) = [
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "FakeQuantize" and node.input_value(0).get_node().get_type_name() == "Constant"
    ]
    values = [source.get_node().get_data().astype(np.float64) for source in node.input_values()]
    return int(node.get_attributes()["levels"]), values[0], values[1:]


@pytest.mark.parametrize("name", ["levels255", "levels256", "asym"])
def test_bug_report_of_float_weights_in_an_int8_model(tmp_path, name):
    """Line by line of the report's right behaviour."""
    if not BUGS.exists():
        pytest.skip("bug reports are not installed beside the checkout")
    source = BUGS / f"{name}.xml"
    before = CORE.read_model(source)
    report = weightmill.fold(source, tmp_path / "out.xml", strict=True)
    after = CORE.read_model(tmp_path / "out.xml")
    ((kind, shape, codes, (scale_shape, scale), zero),) = ir_models.dequantizations(after).values()
    # 1: the very integers of FakeQuantize, and its output within 1e-6.
    levels, weights, limits = weight_quantizer(before)
    wanted, steps = fake_quantize(weights, limits, levels)
    codes = np.array(codes).reshape(shape)
    np.testing.assert_array_equal(codes, steps - (0 if name == "asym" else levels // 2))
    values = codes.astype(np.float32) * np.frombuffer(scale, np.float32).reshape(scale_shape)
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    # 2: no zero points, and the code -128 only where there are 256 levels.
    assert zero is None and kind == ("u8" if name == "asym" else "i8")
    assert (codes.min() >= 0) if name == "asym" else (codes.min() == -(levels // 2))
    # 3: exact, and the report says so.
    assert report.tensors[0].max_error_steps < 1e-4 and not report.tensors[0].zero_point_kept
    # 4: a quarter of the bytes, and nothing left for a second pass.
    n_weights = codes.size
    assert report.tensors[0].bytes_after == n_weights and report.tensors[0].bytes_before == 4 * n_weights
    assert (tmp_path / "out.bin").stat().st_size <= source.with_suffix(".bin").stat().st_size / 3.5
    weightmill.fold(tmp_path / "out.xml", tmp_path / "again.xml")
    for suffix in (".xml", ".bin"):
        assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"out{suffix}").read_bytes()
    # The whole model gives the same; the plug-in multiplies uint8 weights in another order than float ones.
    shape = list(before.inputs[0].shape)
    x = np.resize(np.load(BUGS / "x.npy").astype(np.float32), shape)
    np.testing.assert_allclose(outputs(after, [x])[0], outputs(before, [x])[0], rtol=1e-6, atol=1e-6)
