"""Weight-only quantization of ONNX models: codes against a numpy twin, results in ONNX Runtime and OpenVINO."""

import itertools
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weightmill
from onnx_engine import LEVELS, outputs, random_inputs, session
from onnx_models import model, tensor, value
from openvino_engine import run_model
from weight_twin import assert_codes, assert_searched_codes, codes_of, spread, stored_weight

BUGS = pathlib.Path(__file__).parents[3] / "shared" / "bugs"
PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
needs_bugs = pytest.mark.skipif(not BUGS.is_dir(), reason="../shared/bugs is not there")


def quantized(made, **options):
    """The quantized ModelProto and the report."""
    report = weightmill.quantize(made, weights_only=True, **options)
    onnx.checker.check_model(report.model, full_check=True)
    return report.model, report


def with_float_weights(made):
    """The model with each DequantizeLinear over constants evaluated: what the quantized one means."""
    result = onnx.ModelProto()
    result.CopyFrom(made)
    graph = result.graph
    stored = {entry.name: entry for entry in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "DequantizeLinear"]:
        codes, scale = (numpy_helper.to_array(stored[name]) for name in node.input[:2])
        codes = codes.astype(np.int32)
        zero = numpy_helper.to_array(stored[node.input[2]]).astype(np.int32) if len(node.input) == 3 else np.zeros_like(scale, np.int32)
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        axis = attributes.get("axis") if scale.ndim else None
        block = attributes.get("block_size", 0)
        wide = [spread(values, codes.shape, axis, block) for values in (scale, zero)]
        weights = ((codes - wide[1]).astype(np.float32) * wide[0]).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
        graph.node.remove(node)
    return result


def assert_runs_as_it_means(made, inputs=None, rtol=2e-6):
    """ONNX Runtime and OpenVINO give what the dequantized weights give, but for the order of float sums."""
    want = outputs(with_float_weights(made), inputs, LEVELS.ORT_DISABLE_ALL)
    engine_inputs = inputs or random_inputs(session(made))
    for got in (outputs(made, inputs, LEVELS.ORT_DISABLE_ALL), run_model(made, engine_inputs)):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * max(1, np.abs(w).max()))


def conv_net(rng, opset=17, ir_version=8, data_type=TensorProto.FLOAT):
    """Convolutions of all kinds, and matrices in all orientations."""
    shapes = {
        "conv": (8, 3, 3, 3), "depthwise": (8, 1, 3, 3), "grouped": (8, 4, 1, 1), "up": (8, 6, 2, 2), "up_grouped": (6, 2, 2, 2),
        "fc": (4 * 256, 40), "fc_turned": (24, 40), "product": (24, 32),
    }
    weights = {name: (rng.normal(0, 1, shape) * np.exp(rng.normal(0, 1, shape[:1] + (1,) * (len(shape) - 1)))) for name, shape in shapes.items()}
    node = lambda op, name, inputs, output, **attributes: helper.make_node(op, inputs, [output], name=name, **attributes)
    nodes = [
        node("Conv", "conv", ["x", "conv_w"], "a", pads=[1, 1, 1, 1]),
        node("Conv", "depthwise", ["a", "depthwise_w"], "b", group=8, pads=[1, 1, 1, 1]),
        node("Conv", "grouped", ["b", "grouped_w"], "c", group=2),
        node("ConvTranspose", "up", ["c", "up_w"], "d", strides=[2, 2]),
        node("ConvTranspose", "up_grouped", ["d", "up_grouped_w"], "e", strides=[2, 2], group=2),
        node("Reshape", "reshape", ["e", "shape"], "f"),
        node("Gemm", "fc", ["f", "fc_w", "fc_b"], "g"),
        node("Gemm", "fc_turned", ["g", "fc_turned_w"], "h", transB=1),
        node("MatMul", "product", ["h", "product_w"], "y"),
    ]
    stored = [tensor(name + "_w", values, data_type) for name, values in weights.items()]
    stored += [tensor("fc_b", rng.normal(0, 1, 40), data_type), numpy_helper.from_array(np.array([1, -1]), "shape")]
    made = model(nodes, stored, [value("x", (1, 3, 4, 4), data_type)], [value("y", (1, 32), data_type)], opset, ir_version)
    return made, {name: numpy_helper.to_array(entry) for name, entry in zip(shapes, stored)}


AXES = {"conv": 0, "depthwise": 0, "grouped": 0, "up": 1, "up_grouped": None, "fc": 1, "fc_turned": 0, "product": 1}
MATRICES = ("fc", "fc_turned", "product")


@pytest.mark.parametrize("weight_type", ["int8", "uint8", "int4", "uint4"])
@pytest.mark.parametrize("opset", [17, 21])
def test_every_operator_keeps_its_axis(weight_type, opset):
    made, weights = conv_net(np.random.default_rng(1), opset, 8 if opset < 21 else 10)
    got, report = quantized(made, weight_type=weight_type, scale_method="minmax")
    for name, values in weights.items():
        code_type = weight_type if name in MATRICES else weight_type.replace("4", "8")
        assert_codes(got.graph, name, values, code_type, AXES[name])
    assert report.count("quantized") == len(weights)
    assert_runs_as_it_means(got)


def test_the_report_says_what_was_lost():
    made, weights = conv_net(np.random.default_rng(2))
    _, report = quantized(made)
    for row in report.weights:
        codes, scale, _ = codes_of(weights[row.node], "int8", AXES[row.node])
        back = codes.astype(np.float32) * spread(scale, codes.shape, AXES[row.node])
        noise = (back.astype(np.float64) - weights[row.node]) ** 2
        signal = weights[row.node].astype(np.float64) ** 2
        assert row.sqnr_db == pytest.approx(10 * np.log10(signal.sum() / noise.sum()), abs=1e-9)
        if AXES[row.node] is not None:
            others = tuple(i for i in range(codes.ndim) if i != AXES[row.node])
            worst = (10 * np.log10(signal.sum(others) / noise.sum(others))).min()
            assert row.worst_sqnr_db == pytest.approx(worst, abs=1e-9)
        assert 0.3 < row.max_error_steps <= 0.5 + 1e-5
        assert row.bytes_before == weights[row.node].nbytes
        assert row.bytes_after == codes.size + scale.nbytes
    assert next(row for row in report.weights if row.node == "up_grouped").note.startswith("the output channels of a grouped")


@pytest.mark.parametrize("weight_type", ["int8", "int4", "uint4"])
@pytest.mark.parametrize("block", [16, 32, 128])
def test_blocks_run_along_the_products(weight_type, block):
    rng = np.random.default_rng(3)
    weights = {"a": rng.normal(0, 1, (256, 48)), "b": rng.normal(0, 1, (20, 48)), "c": rng.normal(0, 1, (100, 20))}
    nodes = [
        helper.make_node("MatMul", ["x", "a_w"], ["p"], name="a"),
        helper.make_node("Gemm", ["p", "b_w"], ["q"], name="b", transB=1),
        helper.make_node("Gemm", ["q", "c_w"], ["y"], name="c", transB=1),
    ]
    made = model(nodes, [tensor(k + "_w", v) for k, v in weights.items()], [value("x", (3, 256))], [value("y", (3, 100))])
    got, report = quantized(made, weight_type=weight_type, block_size=block, scale_method="minmax")
    notes = {row.node: row.note for row in report.weights}
    assert_codes(got.graph, "a", weights["a"].astype(np.float32), weight_type, 0, block)
    if 48 % block == 0:
        assert_codes(got.graph, "b", weights["b"].astype(np.float32), weight_type, 1, block)
    else:
        assert_codes(got.graph, "b", weights["b"].astype(np.float32), weight_type, 0)
        assert notes["b"] == f"48 is no multiple of {block}"
    assert_codes(got.graph, "c", weights["c"].astype(np.float32), weight_type, 0)
    assert_runs_as_it_means(got)


@pytest.mark.parametrize("weight_type", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("block", [0, 16, 64])
@pytest.mark.parametrize("turned", [False, True])
def test_searched_scales_lose_least(weight_type, block, turned):
    rng = np.random.default_rng(block)
    weights = (rng.standard_t(4, (128, 600)) * np.exp(rng.normal(0, 1, 600))).astype(np.float32)
    stored, axes = (weights.T, (0, 1)) if turned else (weights, (1, 0))
    node = helper.make_node("Gemm", ["x", "w"], ["y"], name="product", transB=int(turned))
    made = model([node], [tensor("w", stored)], [value("x", (3, 128))], [value("y", (3, 600))])
    sqnr = {}
    for method in ("minmax", "mse"):
        got, report = quantized(made, weight_type=weight_type, block_size=block, scale_method=method)
        sqnr[method] = report.weights[0].sqnr_db
    assert_searched_codes(got.graph, "product", stored, weight_type, axes[1] if block else axes[0], block)
    assert sqnr["mse"] > sqnr["minmax"] + {"int4": 0.5, "uint4": 0.1}.get(weight_type, -1e-6)
    assert_runs_as_it_means(got)
    default, _ = quantized(made, weight_type=weight_type, block_size=block)
    minmax, _ = quantized(made, weight_type=weight_type, block_size=block, scale_method="minmax")
    assert default == (got if "4" in weight_type else minmax)


def test_blocks_need_operator_set_21():
    made, _ = conv_net(np.random.default_rng(1))
    with pytest.raises(weightmill.Error, match="blocks need operator set 21, and the model has 17") as error:
        quantized(made, block_size=16)
    assert error.value.code == "unsupported"


@pytest.mark.parametrize("opset", [9, 10, 12, 13])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("weight_type", ["int8", "uint8", "int4"])
def test_old_operator_sets(opset, per_channel, weight_type):
    """Where the model's own set has no such DequantizeLinear, that of com.microsoft takes its place."""
    weights = np.random.default_rng(4).normal(0, 1, (64, 24)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = model([node], [tensor("w", weights)], [value("x", (3, 64))], [value("y", (3, 24))], opset, 5)
    report = weightmill.quantize(made, weights_only=True, weight_type=weight_type, per_channel=per_channel, scale_method="minmax")
    assert_codes(report.model.graph, "product", weights, weight_type, 1 if per_channel else None)
    default_has_it = opset >= (13 if per_channel else 10) and "4" not in weight_type
    domains = {node.domain for node in report.model.graph.node if node.op_type == "DequantizeLinear"}
    assert domains == ({""} if default_has_it else {"com.microsoft"})
    imports = {entry.domain: entry.version for entry in report.model.opset_import}
    assert imports == ({"": opset} if default_has_it else {"": opset, "com.microsoft": 1})
    assert_runs_as_it_means(report.model)


@pytest.mark.parametrize("data_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_half_precision_operators_read_their_type(data_type):
    """Scales are float32; a Cast behind them gives the type that the operator reads."""
    weights = np.random.default_rng(5).normal(0, 1, (64, 24)).astype(np.float32)
    stored = helper.make_tensor("w", data_type, weights.shape, weights.ravel())
    exact = numpy_helper.to_array(stored).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = model([node], [stored], [value("x", (3, 64), data_type)], [value("y", (3, 24), data_type)], 17, 8)
    got, report = quantized(made)
    assert_codes(got.graph, "product", exact, "int8", 1)
    assert report.weights[0].type_before == ("float16" if data_type == TensorProto.FLOAT16 else "bfloat16")
    assert_left(got, "no operator with float weights")
    if data_type == TensorProto.FLOAT16:
        before, after = outputs(made)[0], outputs(got)[0]
        np.testing.assert_allclose(after, before, atol=0.3)


def test_engines_compute_with_the_codes():
    """A matrix in any of its forms becomes an integer kernel in ONNX Runtime (docs/weight-only.md §6)."""
    weights = np.random.default_rng(6).normal(0, 1, (64, 32)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = model([node], [tensor("w", weights)], [value("x", (3, 64))], [value("y", (3, 32))])
    import onnxruntime

    for weight_type, block in itertools.product(["int8", "uint8", "int4", "uint4"], [0, 32]):
        got, _ = quantized(made, weight_type=weight_type, block_size=block)
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = "optimized.onnx"
        with_file = pathlib.Path(options.optimized_model_filepath)
        try:
            onnxruntime.InferenceSession(got.SerializeToString(), options, providers=["CPUExecutionProvider"])
            assert [n.op_type for n in onnx.load(with_file).graph.node] == ["MatMulNBits"], (weight_type, block)
        finally:
            with_file.unlink(missing_ok=True)


@pytest.mark.parametrize("block", [0, 32])
def test_any_number_of_threads_gives_the_same_file(tmp_path, block):
    weights = np.random.default_rng(7).normal(0, 1, (640, 1100)).astype(np.float32)  # several blocks of work
    onnx.save(one_product(weights=weights), tmp_path / "in.onnx")
    for jobs in (1, 2, 5):
        weightmill.quantize(tmp_path / "in.onnx", tmp_path / f"{jobs}.onnx", weights_only=True, jobs=jobs,
                            weight_type="int4", block_size=block)
    files = [(tmp_path / f"{jobs}.onnx").read_bytes() for jobs in (1, 2, 5)]
    assert files[0] == files[1] == files[2]


# Where weights come from


def chain(rng, kinds, shape):
    """Nodes from a stored constant to `w`, and the weights that they give."""
    stored_type = TensorProto.FLOAT16 if "Cast" in kinds else TensorProto.FLOAT
    weights = rng.normal(0, 1, shape).astype(np.float16 if "Cast" in kinds else np.float32)
    nodes, initializers, last, values = [], [], "stored", weights
    if "Constant" in kinds:
        nodes.append(helper.make_node("Constant", [], ["stored"], value=tensor("", weights, stored_type)))
    else:
        initializers.append(tensor("stored", weights, stored_type))
    for i, kind in enumerate(kind for kind in kinds if kind != "Constant"):
        attributes = {"to": TensorProto.FLOAT} if kind == "Cast" else {}
        if kind == "Transpose":
            attributes["perm"] = list(rng.permutation(len(shape)))
            values = values.transpose(attributes["perm"])
        nodes.append(helper.make_node(kind, [last], [f"step{i}"], **attributes))
        last = f"step{i}"
    return nodes, initializers, last, values.astype(np.float32)


KINDS = [kinds for n in range(4) for kinds in itertools.permutations(["Constant", "Cast", "Identity", "Transpose"], n)]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_constants_behind_nodes_are_folded(kinds):
    rng = np.random.default_rng(len(kinds))
    nodes, stored, last, weights = chain(rng, kinds, (24, 16))
    nodes.append(helper.make_node("MatMul", ["x", last], ["y"], name="product"))
    made = model(nodes, stored, [value("x", (2, weights.shape[0]))], [value("y", (2, weights.shape[1]))])
    got, report = quantized(made)
    assert [node.op_type for node in got.graph.node] == ["DequantizeLinear", "MatMul"]
    assert_codes(got.graph, "product", weights, "int8", 1)
    assert len(got.graph.initializer) == 2
    assert report.folded_chains == (1 if kinds else 0)
    assert len(report.weights[0].via) == len(kinds)
    assert_runs_as_it_means(got)


def one_product(extra_nodes=(), extra_outputs=(), stored=(), weights=None, **options):
    weights = np.random.default_rng(8).normal(0, 1, (24, 16)).astype(np.float32) if weights is None else weights
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product"), *extra_nodes]
    outputs_ = [value("y", (2, weights.shape[1])), *extra_outputs]
    return model(nodes, [tensor("w", weights), *stored], [value("x", (2, weights.shape[0]))], outputs_, **options)


def assert_left(made, reason, **options):
    with pytest.raises(weightmill.Error, match=reason) as error:
        weightmill.quantize(made, weights_only=True, **options)
    assert error.value.code == "unsupported"


def test_a_weight_that_something_else_reads_stays():
    add = helper.make_node("Neg", ["w"], ["z"], name="other")
    assert_left(one_product([add], [value("z", (24, 16))]), "Neg other reads it too and keeps it in float")
    assert_left(one_product([], [value("w", (24, 16))]), "an output of the graph reads it too")
    behind = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("Neg", ["t"], ["z"], name="other")]
    assert_left(one_product(behind, [value("z", (16, 24))]), "Neg other reads it too")


def test_a_weight_computed_from_constants_stays():
    made = model(
        [helper.make_node("Mul", ["w", "w"], ["v"]), helper.make_node("MatMul", ["x", "v"], ["y"], name="product")],
        [tensor("w", np.ones((24, 16)))], [value("x", (2, 24))], [value("y", (2, 16))],
    )
    assert_left(made, "Mul computes it from constants: have them folded first")


def test_weights_that_are_inputs_too_become_constants():
    """Old exporters list all initialisers; engines then compute everything in float."""
    made = one_product()
    made.graph.input.append(value("w", (24, 16)))
    got, report = quantized(made)
    assert [entry.name for entry in got.graph.input] == ["x"]
    assert report.notes == ["weights that were inputs too, and that no caller can replace any more: 1"]
    assert_runs_as_it_means(got)
    made.ir_version = 3
    del made.opset_import[:]
    made.opset_import.append(helper.make_opsetid("", 13))
    got, report = quantized(made)
    assert [entry.name for entry in got.graph.input] == ["x", "w_quantized", "w_scale"] and report.notes == []
    assert_runs_as_it_means(got, {"x": np.ones((2, 24), np.float32)})


def test_weights_of_other_types_stay():
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [numpy_helper.from_array(np.ones((24, 16)), "w")],
                 [value("x", (2, 24), TensorProto.DOUBLE)], [value("y", (2, 16), TensorProto.DOUBLE)])
    assert_left(made, "its type is float64")


def test_nothing_to_quantize():
    made = model([helper.make_node("Neg", ["x"], ["y"])], [], [value("x", (2,))], [value("y", (2,))])
    assert_left(made, "no operator with float weights")
    again, _ = quantized(one_product())
    assert_left(again, "no operator with float weights")


def test_strict_refuses_what_is_left():
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="good"), helper.make_node("MatMul", ["x", "v"], ["z"], name="read_twice")],
        [tensor("w", np.ones((24, 8))), tensor("v", np.ones((24, 8)))], [value("x", (2, 24))],
        [value("y", (2, 8)), value("z", (2, 8)), value("v", (24, 8))],
    )
    assert quantized(made)[1].count("left") == 1
    assert_left(made, "1 of 2 float weights cannot be quantized; the first is v of MatMul read_twice", strict=True)


def test_operators_share_the_codes_of_a_shared_weight():
    rng = np.random.default_rng(9)
    weights = rng.normal(0, 1, (24, 24)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("MatMul", ["a", "w"], ["b"], name="second"),
        helper.make_node("Gemm", ["b", "w"], ["y"], name="turned", transB=1),
    ]
    made = model(nodes, [tensor("w", weights)], [value("x", (2, 24))], [value("y", (2, 24))])
    got, report = quantized(made)
    assert len([node for node in got.graph.node if node.op_type == "DequantizeLinear"]) == 2  # two axes
    assert_codes(got.graph, "first", weights, "int8", 1)
    assert_codes(got.graph, "second", weights, "int8", 1)
    assert_codes(got.graph, "turned", weights, "int8", 0)
    assert [row.bytes_before for row in report.weights] == [weights.nbytes, 0, 0]
    assert [row.bytes_after > 0 for row in report.weights] == [True, False, True]
    assert_runs_as_it_means(got)


def test_sub_graphs_keep_their_weights_inside():
    weights = np.random.default_rng(10).normal(0, 1, (24, 16)).astype(np.float32)
    branch = lambda name, op: helper.make_graph(
        [helper.make_node(op, ["x", "w"] if op == "MatMul" else ["zeros"], [name])], name, [], [value(name, None)])
    nodes = [helper.make_node("If", ["condition"], ["y"], then_branch=branch("a", "MatMul"), else_branch=branch("b", "Identity"))]
    made = model(nodes, [tensor("w", weights), tensor("zeros", np.zeros((2, 16)))],
                 [value("x", (2, 24)), value("condition", (), TensorProto.BOOL)], [value("y", (2, 16))])
    got, _ = quantized(made)
    inner = next(a.g for a in got.graph.node[0].attribute if a.name == "then_branch")
    assert [node.op_type for node in inner.node] == ["DequantizeLinear", "MatMul"]
    assert [entry.name for entry in inner.initializer] == ["w_quantized", "w_scale"]
    x = np.ones((2, 24), np.float32)
    got_y = outputs(got, {"x": x, "condition": np.array(True)})[0]
    codes, scale, _ = codes_of(weights, "int8", 1)
    np.testing.assert_allclose(got_y, x @ (codes * scale).astype(np.float32), rtol=1e-5, atol=1e-5)


def test_functions_hold_codes_in_constant_nodes():
    weights = np.random.default_rng(11).normal(0, 1, (24, 16)).astype(np.float32)
    body = [helper.make_node("Constant", [], ["w"], value=tensor("w", weights)), helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    function = helper.make_function("my", "Block", ["x"], ["y"], body, [helper.make_opsetid("", 12)])
    made = model([helper.make_node("Block", ["x"], ["y"], domain="my")], [], [value("x", (2, 24))], [value("y", (2, 16))],
                 12, 8, [function], ["my"])
    report = weightmill.quantize(made, weights_only=True)
    inner = report.model.functions[0]
    assert [node.op_type for node in inner.node] == ["Constant", "Constant", "DequantizeLinear", "MatMul"]
    assert ("com.microsoft", 1) in {(entry.domain, entry.version) for entry in inner.opset_import}
    codes, scale, _ = codes_of(weights, "int8", 1)
    x = np.ones((2, 24), np.float32)
    np.testing.assert_allclose(outputs(report.model, {"x": x})[0], x @ (codes * scale).astype(np.float32), rtol=1e-5, atol=1e-5)


def test_names_that_are_taken_are_not_taken_again():
    other = [tensor("w_quantized", np.ones(2)), tensor("w_scale", np.ones(2))]
    add = helper.make_node("Add", ["w_quantized", "w_scale"], ["w_dequantized"])
    got, _ = quantized(one_product([add], [value("w_dequantized", (2,))], other))
    assert_runs_as_it_means(got)
    assert {"w_quantized", "w_scale", "w_quantized_1", "w_scale_1"} == {entry.name for entry in got.graph.initializer}


def test_tables_are_quantized_when_asked_for():
    rng = np.random.default_rng(12)
    table = rng.normal(0, 1, (50, 32)).astype(np.float32)
    made = model([helper.make_node("Gather", ["table", "ids"], ["y"], name="look_up")], [tensor("table", table)],
                 [value("ids", (3,), TensorProto.INT64)], [value("y", (3, 32))])
    assert_left(made, "Gather is not among the operators to quantize")
    got, _ = quantized(made, op_types=["Gather"])
    assert_codes(got.graph, "look_up", table, "int8", 0, input_number=0)
    assert_runs_as_it_means(got, {"ids": np.array([0, 49, 7])})


def test_tables_looked_up_along_another_axis_have_one_scale():
    """OpenVINO 2026.4 computes something else from scales along that axis."""
    table = np.random.default_rng(12).normal(0, 1, (50, 32)).astype(np.float32)
    made = model([helper.make_node("Gather", ["table", "ids"], ["y"], name="look_up", axis=1)], [tensor("table", table)],
                 [value("ids", (3,), TensorProto.INT64)], [value("y", (50, 3))])
    got, report = quantized(made, op_types=["Gather"])
    assert_codes(got.graph, "look_up", table, "int8", None, input_number=0)
    assert "any axis but the first" in report.weights[0].note
    assert_runs_as_it_means(got, {"ids": np.array([0, 31, 7])})


@pytest.mark.parametrize("weight_type", ["int4", "uint4"])
def test_odd_numbers_of_products_keep_8_bits(weight_type):
    """OpenVINO 2026.4 computes something else from 4-bit codes then, with more than a few rows of activations."""
    weights = np.random.default_rng(12).normal(0, 1, (33, 7)).astype(np.float32)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [tensor("w", weights)], [value("x", (5, 33))], [value("y", (5, 7))])
    got, report = quantized(made, weight_type=weight_type)
    assert_codes(got.graph, "product", weights, weight_type.replace("4", "8"), 1)
    assert report.weights[0].note.startswith("33 is odd")
    assert_runs_as_it_means(got)


def test_constants_on_the_left_have_scales_for_rows():
    rng = np.random.default_rng(13)
    left = rng.normal(0, 1, (16, 24)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["w", "x"], ["a"], name="product"), helper.make_node("Gemm", ["v", "a"], ["y"], name="gemm", transA=1)]
    v = rng.normal(0, 1, (16, 20)).astype(np.float32)
    made = model(nodes, [tensor("w", left), tensor("v", v)], [value("x", (24, 5))], [value("y", (20, 5))])
    got, _ = quantized(made)
    assert_codes(got.graph, "product", left, "int8", 0, input_number=0)
    assert_codes(got.graph, "gemm", v, "int8", 1, input_number=0)
    assert_runs_as_it_means(got)


def test_batches_and_vectors():
    rng = np.random.default_rng(14)
    batch, vector = rng.normal(0, 1, (3, 24, 16)).astype(np.float32), rng.normal(0, 1, 16).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="batch"), helper.make_node("MatMul", ["a", "v"], ["y"], name="vector")]
    made = model(nodes, [tensor("w", batch), tensor("v", vector)], [value("x", (3, 2, 24))], [value("y", (3, 2))])
    got, _ = quantized(made)
    assert_codes(got.graph, "batch", batch, "int8", 2)
    assert_codes(got.graph, "vector", vector, "int8", None)
    assert_runs_as_it_means(got)


# Weights that are hard to quantize


def test_dead_channels():
    weights = np.random.default_rng(15).normal(0, 1, (24, 6)).astype(np.float32)
    alive, _ = quantized(one_product(weights=weights[:, [0, 1, 3, 5]]))
    weights[:, 2], weights[:, 4] = 0, 1e-39
    for weight_type in ("int8", "uint8", "int4", "uint4"):
        got, report = quantized(one_product(weights=weights), weight_type=weight_type)
        codes, scale, zero, _, _ = stored_weight(got.graph, "product")
        assert np.isfinite(scale).all() and (np.abs(scale) >= np.finfo(np.float32).tiny).all()
        assert weight_type == "int4" or (scale > 0).all()
        np.testing.assert_array_equal(codes[:, [2, 4]], 0 if zero is None else np.broadcast_to(zero[[2, 4]], (24, 2)))
        assert (report.weights[0].zero_channels, report.weights[0].negligible_channels) == ([2], [4])
        assert_runs_as_it_means(got)
        if weight_type == "int8":
            np.testing.assert_array_equal(codes[:, [0, 1, 3, 5]], stored_weight(alive.graph, "product")[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_must_be_finite(tmp_path, bad):
    weights = np.ones((24, 16), np.float32)
    weights[3, 5] = bad
    onnx.save(one_product(weights=weights), tmp_path / "in.onnx")
    with pytest.raises(weightmill.Error, match=r"tensor w: weight \[3, 5\] of \[24, 16\] is -?(nan|inf)") as error:
        weightmill.quantize(tmp_path / "in.onnx", tmp_path / "out.onnx", weights_only=True)
    assert error.value.code == "bad_file"
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


def test_extreme_weights():
    largest = np.finfo(np.float32).max
    weights = np.random.default_rng(16).normal(0, 1, (24, 4)).astype(np.float32)
    weights[:, 0] *= np.float32(1e-30)
    weights[0, 1], weights[1, 1] = largest, -largest
    weights[:, 2] = np.abs(weights[:, 2])
    weights[:, 3] = -np.abs(weights[:, 3])
    for weight_type in ("int8", "uint8", "int4", "uint4"):
        got, _ = quantized(one_product(weights=weights), weight_type=weight_type, scale_method="minmax")
        assert_codes(got.graph, "product", weights, weight_type, 1)
        stored = numpy_helper.to_array(with_float_weights(got).graph.initializer[-1])
        assert np.isfinite(stored).all()


def test_below_min_sqnr_nothing_is_written(tmp_path):
    onnx.save(one_product(), tmp_path / "in.onnx")
    report = weightmill.quantize(tmp_path / "in.onnx", tmp_path / "out.onnx", weights_only=True, min_sqnr_db=100)
    assert report.below_min_sqnr == 1 and report.output == "" and not (tmp_path / "out.onnx").exists()
    report = weightmill.quantize(tmp_path / "in.onnx", tmp_path / "out.onnx", weights_only=True, min_sqnr_db=30)
    assert report.below_min_sqnr == 0 and report.output == "out.onnx" and (tmp_path / "out.onnx").exists()


# The command line


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture
def model_file(tmp_path):
    made, _ = conv_net(np.random.default_rng(17))
    onnx.save(made, tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def test_the_verb_prints_a_table_and_json(model_file, tmp_path):
    done = run("quantize", model_file, "--weights-only", "-o", tmp_path / "out.onnx", "--exclude", "fc,up*", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "5 quantized, 3 left" in done.stdout and "left: excluded by 'up*'" in done.stdout
    done = run("quantize", model_file, "--weights-only", "--dry-run", "--json", "--weight-type", "int4")
    record = json.loads(done.stdout)
    assert (record["schema"], record["weight_type"], record["quantized"]) == ("weightmill.quantize/1", "int4", 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.onnx"]


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (["-o", "OUT"], 2, "--weights-only: is missing"),
        (["--weights-only"], 2, "--output: is missing"),
        (["--weights-only", "-o", "IN"], 2, "is a file of the input"),
        (["--weights-only", "-o", "OUT", "--weight-type", "int3"], 2, "int3"),
        (["--weights-only", "-o", "OUT", "--block-size", "24"], 2, "no power of two"),
        (["--weights-only", "-o", "OUT", "--block-size", "-16"], 2, "no power of two"),
        (["--weights-only", "-o", "OUT", "--block-size", "32", "--per-tensor"], 2, "blocks have scales of their own"),
        (["--weights-only", "-o", "OUT", "--block-size", "32"], 4, "operator set 21"),
        (["--weights-only", "-o", "OUT", "--exclude", "product_"], 2, "did you mean product?"),
        (["--weights-only", "-o", "OUT", "--exclude", "*"], 2, "leaves no weight to quantize"),
        (["--weights-only", "-o", "OUT", "--op-types", "Matmul"], 2, "did you mean MatMul?"),
        (["--weights-only", "-o", "OUT", "--min-sqnr", "nan"], 2, "nan"),
        (["--weights-only", "-o", "OUT", "--min-sqnr", "99"], 1, "8 weights are below 99 dB"),
        (["--weights-only", "-o", "OUT", "--weigths-only"], 2, "did you mean --weights-only?"),
    ],
)
def test_refusals_write_nothing(model_file, arguments, status, words):
    places = {"OUT": str(model_file.parent / "out.onnx"), "IN": str(model_file)}
    before = model_file.read_bytes()
    done = run("quantize", model_file, *(places.get(word, word) for word in arguments))
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert [path.name for path in model_file.parent.iterdir()] == ["in.onnx"]
    assert model_file.read_bytes() == before


def test_other_formats_are_named(tmp_path):
    (tmp_path / "a.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(24))
    (tmp_path / "b.onnx").write_bytes(b"no model at all")
    assert "TFLite model" in run("quantize", tmp_path / "a.tflite", "--weights-only", "--dry-run").stderr
    assert run("quantize", tmp_path / "a.tflite", "--weights-only", "--dry-run").returncode == 4
    assert run("quantize", tmp_path / "b.onnx", "--weights-only", "--dry-run").returncode == 3
    assert run("quantize", tmp_path / "none.onnx", "--weights-only", "--dry-run").returncode == 3


# Inputs that break other tools


def by_hand(made):
    """Constant, Cast, Identity and Transpose over constants evaluated with numpy."""
    result = onnx.ModelProto()
    result.CopyFrom(made)
    stored = {entry.name: numpy_helper.to_array(entry) for entry in result.graph.initializer}
    for node in list(result.graph.node):
        if node.op_type == "Constant":
            made_value = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type in ("Cast", "Identity", "Transpose") and node.input[0] in stored:
            attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            made_value = stored[node.input[0]]
            if node.op_type == "Cast":
                made_value = made_value.astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
            if node.op_type == "Transpose":
                made_value = made_value.transpose(attributes.get("perm"))
        else:
            continue
        stored[node.output[0]] = np.ascontiguousarray(made_value)
        result.graph.initializer.append(numpy_helper.from_array(stored[node.output[0]], node.output[0]))
        result.graph.node.remove(node)
    return result


@needs_bugs
def test_bug_04_weights_behind_nodes(tmp_path):
    source = BUGS / "04_weights_behind_nodes" / "model.onnx"
    done = run("quantize", source, "--weights-only", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0, done.stderr                                          # 1
    assert "folded 4 constant chains" in done.stderr                                  # 4
    got, made = onnx.load(tmp_path / "out.onnx"), onnx.load(source)
    hand, _ = quantized(by_hand(made))
    for name in ("conv_const", "conv_cast", "mm_identity", "mm_transpose"):           # 1, 2
        for ours, theirs in zip(stored_weight(got.graph, name)[:2], stored_weight(hand.graph, name)[:2]):
            np.testing.assert_array_equal(ours, theirs)
    assert stored_weight(got.graph, "mm_transpose")[1].shape == (5,)                  # 3
    assert not {"Constant", "Cast", "Identity"} & {node.op_type for node in got.graph.node}   # 4
    weight_readers = [node for node in made.graph.node if node.op_type == "Transpose"]
    assert len([node for node in got.graph.node if node.op_type == "Transpose"]) == len(weight_readers) - 1
    assert_runs_as_it_means(got)


@needs_bugs
def test_bugs_01_and_03_and_05(tmp_path):
    """What they ask of weights alone."""
    got, report = quantized(onnx.load(BUGS / "01_dead_channel" / "model.onnx"))
    row = next(row for row in report.weights if row.node == "conv0")
    assert (row.zero_channels, row.negligible_channels) == ([2], [4])
    made = onnx.load(BUGS / "03_convtranspose_axis" / "model.onnx")
    got, report = quantized(made)
    rows = {row.node: row for row in report.weights}
    assert rows["up0"].n_scales == 8 and rows["up0"].granularity == "per axis 1" and rows["up0"].worst_sqnr_db > 38
    assert rows["up1_grouped"].n_scales == 1 and "grouped" in rows["up1_grouped"].note
    assert_runs_as_it_means(got)
    got, report = quantized(onnx.load(BUGS / "05_shared_weight" / "model.onnx"))
    assert [row.bytes_after > 0 for row in report.weights] == [True, False]
    assert_runs_as_it_means(got)


@needs_bugs
def test_bug_06_nan_weight_is_named(tmp_path):
    source = BUGS / "06_nan_inf_calibration" / "model_nan_weight.onnx"
    done = run("quantize", source, "--weights-only", "-o", tmp_path / "out.onnx")
    assert done.returncode == 3
    assert "tensor w: weight [1, 0, 0, 0]" in done.stderr
    assert not list(tmp_path.iterdir())


@needs_bugs
def test_bug_09_a_typo_in_exclude(tmp_path):
    source = BUGS / "09_exclude_typo" / "model.onnx"
    for word in ("head.cls", "/head/cls/conv"):
        done = run("quantize", source, "--weights-only", "-o", tmp_path / "out.onnx", "--exclude", word)
        assert done.returncode == 2 and "/head/cls/Conv" in done.stderr
    done = run("quantize", source, "--weights-only", "-o", tmp_path / "out.onnx", "--exclude", "/head/cls/Conv")
    assert done.returncode == 0 and "2 quantized, 1 left" in done.stdout
