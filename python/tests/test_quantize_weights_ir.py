"""Weight-only quantization of OpenVINO IR: codes against a numpy twin, results in OpenVINO."""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import weightmill

ov = pytest.importorskip("openvino")
from openvino import opset13 as op  # noqa: E402

import test_quantize_weights as of_onnx  # noqa: E402
from test_quantize_weights_external import measured  # noqa: E402
from weight_ir import (  # noqa: E402
    COMPRESSED, CORE, LAYERS, MATRICES, assert_runs_as_it_means, layer, model_of, operator, outputs, quantized,
    random_inputs, stored, weight_types, weights_for,
)
from weight_twin import LIMITS, candidates, codes_of, squared_errors  # noqa: E402

MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR") or pathlib.Path(__file__).parents[3] / "shared" / "models")
PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
IR_TYPES = {"int8": "i8", "uint8": "u8", "int4": "i4", "uint4": "u4"}


def channels_first(values, shape, axes):
    """[channels, rest] of an array that broadcasts to `shape`, whose channels are along `axes`."""
    values = np.broadcast_to(values, shape)
    return np.moveaxis(values, axes, range(len(axes))).reshape(int(np.prod([shape[i] for i in axes])), -1)


def assert_channel_codes(got, weights, weight_type, axes):
    """Codes, scales and zero points are the twin's, bit for bit."""
    assert got.kind == IR_TYPES[weight_type] and got.scale.dtype == np.float32
    assert got.scale.shape == tuple(extent if i in axes else 1 for i, extent in enumerate(weights.shape))
    flat = channels_first(weights, weights.shape, axes)
    codes, scale, zero = codes_of(flat, weight_type, 0)
    np.testing.assert_array_equal(channels_first(got.codes, weights.shape, axes), codes)
    np.testing.assert_array_equal(channels_first(got.scale, weights.shape, axes)[:, 0], scale)
    assert (got.zero is None) == (LIMITS[weight_type][0] < 0)
    if got.zero is not None:
        np.testing.assert_array_equal(channels_first(got.zero, weights.shape, axes)[:, 0], zero)


def assert_block_codes(got, weights, weight_type, axis, block):
    assert got.kind == IR_TYPES[weight_type] and got.shape == weights.shape
    codes, scale, zero = codes_of(weights, weight_type, axis, block)
    np.testing.assert_array_equal(got.codes.reshape(weights.shape), codes)
    np.testing.assert_array_equal(np.squeeze(got.scale, axis + 1), scale)
    assert (got.zero is None) == (LIMITS[weight_type][0] < 0)
    if got.zero is not None:
        np.testing.assert_array_equal(np.squeeze(got.zero, axis + 1), zero)


# Operators, types and options


@pytest.mark.parametrize("method", ["minmax", "auto"])
@pytest.mark.parametrize("weight_type", IR_TYPES)
def test_every_operator_keeps_its_axes(tmp_path, weight_type, method):
    made, weights = model_of(LAYERS)
    got, report = quantized(made, tmp_path, weight_type=weight_type, scale_method=method)
    assert report.format == "openvino" and report.count("quantized") == len(LAYERS)
    for name, (kind, _, _, _, axes) in LAYERS.items():
        code_type = weight_type if name in MATRICES else weight_type.replace("4", "8")
        found = stored(operator(got, name), 0 if kind == "left" else 1)
        if "4" not in code_type or method == "minmax":
            assert_channel_codes(found, weights[name], code_type, axes)
        else:
            assert_searched(found, weights[name], code_type, axes)
    assert_runs_as_it_means(got)


def assert_searched(got, weights, weight_type, axes):
    flat, codes, scale = (channels_first(x, weights.shape, axes) for x in (weights, got.codes, got.scale))
    zero = np.zeros(scale.shape, np.int32) if got.zero is None else channels_first(got.zero, weights.shape, axes)
    errors, want = squared_errors(flat, scale[:, 0], zero[:, 0], weight_type, 0, 0)
    np.testing.assert_array_equal(codes, want)
    known = np.zeros(len(flat), bool)
    for candidate, candidate_zero in candidates(flat, weight_type, 0, 0):
        assert (errors <= squared_errors(flat, candidate, candidate_zero, weight_type, 0, 0)[0] * (1 + 1e-5)).all()
        known |= (scale[:, 0] == candidate) & (zero[:, 0] == candidate_zero)
    assert known.all()


@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("weight_type", IR_TYPES)
def test_blocks_run_along_the_products(tmp_path, weight_type, block):
    made, weights = model_of(MATRICES)
    got, report = quantized(made, tmp_path, weight_type=weight_type, block_size=block, scale_method="minmax")
    for name in MATRICES:
        rank, axis = weights[name].ndim, LAYERS[name][4][0]
        found = stored(operator(got, name), 0 if LAYERS[name][0] == "left" else 1)
        assert_block_codes(found, weights[name], weight_type, 2 * rank - 3 - axis, block)
    assert {row.granularity.split(" along")[0] for row in report.weights} == {f"blocks of {block}"}
    assert_runs_as_it_means(got)


def test_all_options_run_as_they_mean(tmp_path):
    made, _ = model_of(["conv", "up_grouped_points", "product", "turned", "batch", "left"])
    for weight_type, (per_channel, block), method in itertools.product(
        IR_TYPES, [(True, 0), (False, 0), (True, 16), (True, 128)], ["auto", "minmax", "mse"]
    ):
        got, report = quantized(
            made, tmp_path, weight_type=weight_type, per_channel=per_channel, block_size=block, scale_method=method
        )
        assert report.count("quantized") == 6 and 5 < min(row.sqnr_db for row in report.weights)
        files = [tmp_path / "out.xml", tmp_path / "out.bin"]
        assert report.bytes_after == sum(path.stat().st_size for path in files)
        assert_runs_as_it_means(got)
        if not per_channel:
            assert {row.n_scales for row in report.weights} == {1}


def test_any_size_runs_as_it_means(tmp_path):
    """4-bit codes of an odd number of products come out wrong in OpenVINO: they keep 8 bits."""
    random = np.random.default_rng(5)
    for i in range(40):
        k, n, m, turned = int(random.integers(1, 130)), int(random.integers(1, 70)), int(random.integers(1, 9)), bool(i % 2)
        x = op.parameter([m, k], np.float32)
        node = layer("matmul", "product", random.normal(0, 1, (n, k) if turned else (k, n)), x, b=turned)
        weight_type = ["int4", "uint4", "int8", "uint8"][i // 2 % 4]
        got, report = quantized(ov.Model([op.result(node)], [x]), tmp_path, weight_type=weight_type)
        assert_runs_as_it_means(got)
        if "4" in weight_type and k % 2:
            assert report.weights[0].type_after == weight_type.replace("4", "8") and f"{k} is odd" in report.weights[0].note


@pytest.mark.parametrize("reads, kept", [("f32", "f16"), ("f32", "bf16"), ("f16", "f16")])
@pytest.mark.parametrize("block", [0, 16])
def test_half_precision(tmp_path, reads, kept, block):
    """Scales are float32; a Convert behind them gives float16 where the operator reads that."""
    names = ["conv", "grouped", "product", "turned", "batch"]
    made, weights = model_of(names, reads, kept)
    got, report = quantized(made, tmp_path, weight_type="uint8", block_size=block)
    for name in names:
        found = stored(operator(got, name))
        assert found.reads == reads
        if block == 0:
            assert_channel_codes(found, weights[name], "uint8", LAYERS[name][4])
    assert {row.type_before for row in report.weights} == {"float16" if kept == "f16" else "bfloat16"}
    assert report.folded_chains == (len(names) if kept != reads else 0)
    assert_runs_as_it_means(got, rtol=3e-6 if reads == "f32" else 2e-3)


@pytest.mark.parametrize("reads", ["f32", "f16"])
@pytest.mark.parametrize("block", [0, 16, 32])
@pytest.mark.parametrize("weight_type", IR_TYPES)
def test_matrices_become_compressed_layers(tmp_path, weight_type, block, reads):
    names = [name for name in COMPRESSED if not (block and name == "batch_of_one")]
    made, _ = model_of(names, reads)
    got, _ = quantized(made, tmp_path, weight_type=weight_type, block_size=block)
    assert weight_types(got) == [IR_TYPES[weight_type]] * len(names)


# Whole networks


def converted(tmp_path, half):
    onnx = pytest.importorskip("onnx")
    made, _ = of_onnx.conv_net(np.random.default_rng(1))
    onnx.save(made, tmp_path / "net.onnx")
    ov.save_model(ov.convert_model(tmp_path / "net.onnx"), tmp_path / "net.xml", compress_to_fp16=half)
    return tmp_path / "net.xml"


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("weight_type", IR_TYPES)
def test_a_converted_network(tmp_path, weight_type, half):
    source = converted(tmp_path, half)
    got, report = quantized(source, tmp_path, weight_type=weight_type, strict=True)
    kinds = [row.op for row in report.weights]
    assert sorted(set(kinds)) == ["Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul"]
    assert len(kinds) == 8
    assert_runs_as_it_means(got, rtol=1e-5)
    again = weightmill.fold(tmp_path / "out.xml", tmp_path / "folded.xml")
    assert again.count("folded") == 0 and (tmp_path / "folded.bin").read_bytes() == (tmp_path / "out.bin").read_bytes()
    listed = subprocess.run([PROGRAM, "inspect", tmp_path / "out.xml"], capture_output=True, text=True)
    assert listed.returncode == 0 and listed.stdout.count("int8") + listed.stdout.count("int4") == 8


NETWORKS = ["kws_dscnn_float.onnx", "resnet8_float.onnx", "ad01_float.onnx", "vww_96_float.onnx", "ppocr_v2_cls.onnx",
            "mltk_kws_alexa_float.tflite", "kws_dscnn_float_fp16_ir.xml", "ultraface_rfb320_fp16_ir.xml"]


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_real_networks(tmp_path, name, half):
    if not (MODELS / name).exists():
        pytest.skip("../shared/models is not there")
    model = ov.convert_model(MODELS / name) if name.endswith(".onnx") else CORE.read_model(MODELS / name)
    model.reshape({port: [1 if d.is_dynamic and i == 0 else 64 if d.is_dynamic else d.get_length() for i, d in enumerate(port.partial_shape)] for port in model.inputs})
    ov.save_model(model, tmp_path / "net.xml", compress_to_fp16=half)
    before = CORE.read_model(tmp_path / "net.xml")
    got, report = quantized(tmp_path / "net.xml", tmp_path)
    assert report.count("quantized") > 0
    assert all(row.outcome == "quantized" or row.reason.startswith("ShapeOf") for row in report.weights)
    inputs = random_inputs(before)
    for want, ours in zip(outputs(before, inputs), outputs(got, inputs), strict=True):
        assert np.linalg.norm(ours - want) <= 0.25 * max(np.linalg.norm(want), 1e-3)
    assert_runs_as_it_means(got, inputs, rtol=1e-4)


def test_models_in_memory():
    made, _ = model_of(["product"])
    report = weightmill.quantize(made, weights_only=True)
    assert stored(operator(report.model, "product")).kind == "i8"
    assert weightmill.quantize(made, weights_only=True, min_sqnr_db=99).model is None


# What shares, what stays


def test_tables_are_quantized_when_asked_for(tmp_path):
    random = np.random.default_rng(12)
    table, ids = op.constant(random.normal(0, 1, (50, 32)).astype(np.float32)), op.parameter([3], np.int64)
    looks = [op.gather(table, ids, op.constant(np.int64(axis))) for axis in (0, 1)]
    looks[0].set_friendly_name("rows"), looks[1].set_friendly_name("columns")
    made = ov.Model([op.result(look) for look in looks], [ids])
    with pytest.raises(weightmill.Error, match="Gather is not among the operators to quantize"):
        quantized(made, tmp_path)
    got, report = quantized(made, tmp_path, op_types=["Gather"], weight_type="uint4")
    rows = {row.node: row for row in report.weights}
    assert [(rows[name].granularity, rows[name].type_after) for name in ("rows", "columns")] == [("per axis 0", "uint8"), ("per tensor", "uint8")]
    assert "any axis but the first" in rows["columns"].note and rows["rows"].note == "blocks and 4-bit codes are for matrices"
    assert_channel_codes(stored(operator(got, "rows"), 0), table.get_data(), "uint8", (0,))
    assert_runs_as_it_means(got)


def test_operators_share_the_codes_of_a_shared_weight(tmp_path):
    x = op.parameter([2, 64], np.float32)
    w = op.constant(weights_for("square"))
    first, again = op.matmul(x, w, False, True), op.matmul(op.relu(x), w, False, True)
    turned = op.matmul(x, w, False, False)
    got, report = quantized(ov.Model([op.result(node) for node in (first, again, turned)], [x]), tmp_path)
    assert [row.bytes_before > 0 for row in report.weights] == [True, False, False]
    assert sum(row.bytes_after > 0 for row in report.weights) == 2  # two axes
    assert sum(node.get_type_name() == "Multiply" for node in got.get_ops()) == 2
    names = [node.get_friendly_name() for node in got.get_ops() if node.get_friendly_name().endswith("/codes")]
    assert len(names) == len(set(names)) == 2
    assert_runs_as_it_means(got)


def test_equal_constants_are_stored_once(tmp_path):
    xs = [op.parameter([2, 64], np.float32) for _ in range(2)]
    values = weights_for("square")
    made = ov.Model([op.result(layer("matmul", f"m{i}", values, x)) for i, x in enumerate(xs)], xs)
    got, report = quantized(made, tmp_path)
    assert report.count("quantized") == 2 and (tmp_path / "out.bin").stat().st_size < values.size + 64 * 4 + 64
    assert_runs_as_it_means(got)


def test_a_weight_that_something_else_reads_stays(tmp_path):
    x = op.parameter([2, 64], np.float32)
    w = op.constant(weights_for("square"))
    other = op.abs(w)
    other.set_friendly_name("other")
    product, sound = op.matmul(x, w, False, False), layer("matmul", "sound", weights_for("product"), x)
    made = ov.Model([op.result(node) for node in (product, sound, op.add(other, op.constant(np.float32(1))))], [x])
    got, report = quantized(made, tmp_path)
    assert [row.reason for row in report.weights if row.outcome == "left"] == ["Abs other reads it too and keeps it in float"]
    assert_runs_as_it_means(got)
    with pytest.raises(weightmill.Error, match="1 of 2 float weights cannot be quantized"):
        quantized(made, tmp_path, strict=True)
    read_out = ov.Model([op.result(product), op.result(w)], [x])
    with pytest.raises(weightmill.Error, match="an output of the graph reads it too"):
        quantized(read_out, tmp_path)


def test_weights_behind_nodes(tmp_path):
    """Convert and Reshape are folded; what computes is left; what is quantized already is no float weight."""
    x = op.parameter([1, 8, 6, 6], np.float32)
    flat = weights_for("grouped").reshape(6, 4, 3, 3).astype(np.float16)
    shaped = op.reshape(op.convert(op.constant(flat), "f32"), op.constant(np.array([2, -1, 4, 3, 3])), False)
    grouped = op.group_convolution(x, shaped, [1, 1], [1, 1], [1, 1], [1, 1])
    grouped.set_friendly_name("grouped")
    y = op.parameter([2, 24], np.float32)
    turned = op.matmul(y, op.transpose(op.constant(weights_for("product")), op.constant(np.array([1, 0]))), False, False)
    integers = op.multiply(op.convert(op.constant(np.ones((24, 8), np.int8)), "f32"), op.constant(np.float32(0.5)))
    fake = op.fake_quantize(op.constant(np.ones((24, 8), np.float32)), *[op.constant(np.float32(v)) for v in (-1, 1, -1, 1)], 255)
    results = [op.result(node) for node in (grouped, turned, op.matmul(y, integers, False, False), op.matmul(y, fake, False, False))]
    got, report = quantized(ov.Model(results, [x, y]), tmp_path)
    assert [(row.outcome, row.reason) for row in sorted(report.weights, key=lambda row: row.op)] == [
        ("quantized", ""), ("left", "Transpose computes it from constants: have them folded first")]
    assert_channel_codes(stored(operator(got, "grouped")), flat.astype(np.float32).reshape(2, 3, 4, 3, 3), "int8", (0, 1))
    assert len(report.weights[0].via + report.weights[1].via) == 2
    assert_runs_as_it_means(got)


def test_sub_graphs_keep_their_weights_inside(tmp_path):
    condition, x = op.parameter([], bool), op.parameter([2, 64], np.float32)
    inner = [op.parameter([2, 64], np.float32) for _ in range(2)]
    then_body = ov.Model([op.result(layer("matmul", "inside", weights_for("product"), inner[0]))], [inner[0]])
    else_body = ov.Model([op.result(op.relu(op.slice(inner[1], *[op.constant(np.array(v)) for v in ([0], [24], [1], [1])])))], [inner[1]])
    branch = op.if_op(condition)
    branch.set_then_body(then_body), branch.set_else_body(else_body)
    branch.set_input(x.output(0), inner[0], inner[1])
    result = branch.set_output(then_body.results[0], else_body.results[0])
    made = ov.Model([op.result(result)], [condition, x])
    got, report = quantized(made, tmp_path)
    assert [row.node for row in report.weights] == ["inside"]
    body = next(node for node in got.get_ops() if node.get_type_name() == "If").get_function(0)
    assert_channel_codes(stored(operator(body, "inside")), weights_for("product"), "int8", (1,))
    values = np.ones((2, 64), np.float32)
    want = values @ stored(operator(body, "inside")).values()
    np.testing.assert_allclose(outputs(got, [np.array(True), values])[0], want, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(outputs(got, [np.array(False), values])[0], values[:, :24])


def test_recurrent_weights_stay(tmp_path):
    random = np.random.default_rng(3)
    x, state = op.parameter([1, 8], np.float32), op.parameter([1, 4], np.float32)
    make = lambda *shape: op.constant(random.normal(0, 1, shape).astype(np.float32))
    cell = op.gru_cell(x, state, make(12, 8), make(12, 4), make(12), 4)
    with pytest.raises(weightmill.Error, match="weights of GRUCell are not quantized"):
        quantized(ov.Model([op.result(cell)], [x, state]), tmp_path)


def test_dead_channels(tmp_path):
    weights = weights_for("product")
    weights[:, 2], weights[:, 4] = 0, 1e-39
    x = op.parameter([5, 64], np.float32)
    made = ov.Model([op.result(layer("matmul", "product", weights, x))], [x])
    for weight_type in IR_TYPES:
        got, report = quantized(made, tmp_path, weight_type=weight_type)
        assert (report.weights[0].zero_channels, report.weights[0].negligible_channels) == ([2], [4])
        assert not stored(operator(got, "product")).values()[:, [2, 4]].any()
        assert_runs_as_it_means(got)


def test_names_that_are_taken_are_not_taken_again(tmp_path):
    x = op.parameter([5, 64], np.float32)
    taken = op.relu(x)
    taken.set_friendly_name("product_w/codes")
    got, _ = quantized(ov.Model([op.result(layer("matmul", "product", weights_for("product"), taken))], [x]), tmp_path)
    assert {"product_w/codes", "product_w_1/codes"} <= {node.get_friendly_name() for node in got.get_ops()}


# Files


def test_any_number_of_threads_gives_the_same_files(tmp_path):
    random = np.random.default_rng(7)
    x = op.parameter([1, 1024], np.float32)
    node = layer("matmul", "b", random.normal(0, 1, (700, 1024)), layer("matmul", "a", random.normal(0, 1, (1024, 1024)), x), b=True)
    ov.serialize(ov.Model([op.result(node)], [x]), str(tmp_path / "in.xml"))
    for options in (dict(), dict(weight_type="uint4", block_size=32), dict(weight_type="int4")):
        files = []
        for jobs in (1, 2, 5):
            weightmill.quantize(tmp_path / "in.xml", tmp_path / "out.xml", weights_only=True, jobs=jobs, **options)
            files.append([(tmp_path / f"out.{suffix}").read_bytes() for suffix in ("xml", "bin")])
        assert files[0] == files[1] == files[2]


def big_model(folder, n, extent, rows):
    """n matrices in a .bin that is sparse but for so many rows of each."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    from big_ir import _Xml

    xml, size, shape = _Xml(), extent * extent * 4, (extent, extent)
    last, port = xml.layer("x", "Parameter", f'shape="1,{extent}" element_type="f32"', [], ("FP32", (1, extent))), 0
    with open(folder / "in.bin", "wb") as file:
        file.truncate(n * size)
        for i in range(n):
            file.seek(i * size)
            file.write(np.random.default_rng(i).normal(0, 1, (rows, extent)).astype(np.float32).tobytes())
            where = f'element_type="f32" shape="{extent}, {extent}" offset="{i * size}" size="{size}"'
            w = xml.layer(f"w{i}", "Const", where, [], ("FP32", shape))
            product = xml.layer(f"mm{i}", "MatMul", 'transpose_a="false" transpose_b="true"', [("FP32", (1, extent)), ("FP32", shape)], ("FP32", (1, extent)))
            xml.edge(last, port, product, 0)
            xml.edge(w, 0, product, 1)
            last, port = product, 2
    xml.edge(last, port, xml.layer("y", "Result", "", [("FP32", (1, extent))], None), 0)
    (folder / "in.xml").write_text(xml.text("big"))
    return folder / "in.xml"


@pytest.mark.parametrize("n, rows, options", [(8, 4, {}), (3, 4096, dict(weight_type="int4", block_size=32))], ids=["int8", "int4_blocks"])
def test_memory_does_not_grow_with_the_model(tmp_path, n, rows, options):
    """0.5 GiB of weights; in blocks, of which the report names the dead ones, weights that are none."""
    if shutil.disk_usage(tmp_path).free < 1 << 30:
        pytest.skip("needs 1 GiB of disk")
    result = measured(big_model(tmp_path, n, 4096, rows), tmp_path / "out.xml", **options)
    assert result["quantized"] == n and result["peak_rss"] < 128 << 20


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture
def model_files(tmp_path):
    made, _ = model_of(["conv", "up_grouped", "product", "turned"])
    ov.serialize(made, str(tmp_path / "in.xml"))
    return tmp_path / "in.xml"


def test_the_verb_prints_a_table_and_json(model_files, tmp_path):
    done = run("quantize", model_files, "--weights-only", "-o", tmp_path / "out.xml", "--exclude", "up*", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "3 quantized, 1 left" in done.stdout and "left: excluded by 'up*'" in done.stdout
    record = json.loads(run("quantize", model_files, "--weights-only", "--dry-run", "--json", "--op-types", "MatMul").stdout)
    assert (record["schema"], record["format"], record["quantized"]) == ("weightmill.quantize/1", "openvino", 2)
    again = run("quantize", tmp_path / "out.xml", "--weights-only", "-o", tmp_path / "again.xml", "--exclude", "up*")
    assert again.returncode == 2 and "leaves no weight to quantize" in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.bin", "in.xml", "out.bin", "out.xml"]


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (["-o", "OUT"], 2, "--weights-only: is missing"),
        (["--weights-only"], 2, "--output: is missing"),
        (["--weights-only", "-o", "IN"], 2, "is the input, which is only read"),
        (["--weights-only", "-o", "NO_XML"], 2, "ends in .xml"),
        (["--weights-only", "-o", "OUT", "--block-size", "24"], 2, "no power of two"),
        (["--weights-only", "-o", "OUT", "--exclude", "product_"], 2, "did you mean product?"),
        (["--weights-only", "-o", "OUT", "--exclude", "*"], 2, "leaves no weight to quantize"),
        (["--weights-only", "-o", "OUT", "--op-types", "Matmul"], 2, "did you mean MatMul"),
        (["--weights-only", "-o", "OUT", "--min-sqnr", "99"], 1, "4 weights are below 99 dB"),
        (["--weights-only", "-o", "OUT", "--op-types", "Gather", "--strict"], 4, "none of its 4 float weights"),
    ],
)
def test_refusals_write_nothing(model_files, arguments, status, words):
    folder = model_files.parent
    places = {"OUT": str(folder / "out.xml"), "IN": str(model_files), "NO_XML": str(folder / "out.onnx")}
    before = [(folder / name).read_bytes() for name in ("in.xml", "in.bin")]
    done = run("quantize", model_files, *(places.get(word, word) for word in arguments))
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["in.bin", "in.xml"]
    assert [(folder / name).read_bytes() for name in ("in.xml", "in.bin")] == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_must_be_finite(tmp_path, bad):
    weights = weights_for("product")
    weights[3, 5] = bad
    x = op.parameter([5, 64], np.float32)
    made = ov.Model([op.result(layer("matmul", "product", weights, x))], [x])
    with pytest.raises(weightmill.Error, match=r"constant product_w: weight \[3, 5\] of \[64, 24\] is -?(nan|inf)") as error:
        quantized(made, tmp_path)
    assert error.value.code == "bad_file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.bin", "in.xml"]


def test_broken_files_write_nothing(model_files):
    folder = model_files.parent
    os.truncate(folder / "in.bin", 100)
    done = run("quantize", model_files, "--weights-only", "-o", folder / "out.xml")
    assert done.returncode == 3 and "in.bin has 100" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["in.bin", "in.xml"]
