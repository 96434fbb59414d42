"""Folding QuantizeLinear over constants of ONNX models; judges are onnx.checker and ONNX Runtime."""

import json
import os
import pathlib
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weightmill
from big_onnx import measured_fold
from onnx_engine import LEVELS, assert_same_results, outputs, session
from onnx_models import CODES, dequantized, model, tensor, value

SHARED = pathlib.Path(__file__).parents[3] / "shared"
GOLDEN = pathlib.Path(os.environ.get("WEIGHTMILL_GOLDEN_DIR", SHARED / "golden")) / "fold" / "onnx"
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR", SHARED / "models"))


def fold(tmp_path, made, **options):
    """Writes a ModelProto, folds it, and has the result checked; returns it with the report and its path."""
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    onnx.save(made, source)
    report = weightmill.fold(source, target, **options)
    onnx.checker.check_model(str(target), full_check=True)
    return onnx.load(target), report, target


def initializers(made):
    return {entry.name: entry for entry in made.graph.initializer}


def op_types(nodes):
    return sorted(node.op_type for node in nodes)


def added(names):
    """y = the sum of all `names`."""
    nodes, last = [], names[0]
    for i, name in enumerate(names[1:]):
        nodes.append(helper.make_node("Add", [last, name], [f"sum_{i}"]))
        last = f"sum_{i}"
    return [*nodes, helper.make_node("Identity", [last], ["y"])]


# Golden cases


def golden_cases():
    return sorted(path.parent.name for path in GOLDEN.glob("*/expect.json"))


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="fold/onnx not installed: set WEIGHTMILL_GOLDEN_DIR")
@pytest.mark.parametrize("name", golden_cases())
def test_golden_case_folds_as_expected(tmp_path, name):
    expect = json.loads((GOLDEN / name / "expect.json").read_text())
    target = tmp_path / "folded.onnx"
    report = weightmill.fold(GOLDEN / name / "in.onnx", target, strict=True)
    folded = onnx.load(target)
    assert op_types(folded.graph.node) == sorted(expect["ort_basic_nodes"])
    stored = initializers(folded)
    for initializer, want in expect["folded_initializers"].items():
        got = stored[initializer]
        assert TensorProto.DataType.Name(got.data_type) == want["dtype"] and list(got.dims) == want["dims"]
        assert numpy_helper.to_array(got).astype(np.float64).ravel().tolist() == want["values"]
        assert not want["raw_hex"] or got.raw_data.hex() == want["raw_hex"]
    x = np.linspace(-1, 1, int(np.prod(expect["x_shape"]))).astype(np.float32).reshape(expect["x_shape"])
    for got, want in zip(outputs(target, {"x": x}), expect["y"], strict=True):
        assert got.ravel().tolist() == np.float32(np.ravel(want)).tolist()
    assert all(entry.max_error_steps <= entry.bound_steps for entry in report.tensors)


# Real models


def real_models():
    return sorted(path.name for path in MODELS.glob("*.onnx")) if MODELS.is_dir() else []


@pytest.mark.skipif(not MODELS.is_dir(), reason="models not installed: set WEIGHTMILL_MODELS_DIR")
@pytest.mark.parametrize("name", real_models())
def test_real_model_gives_the_same_bits(tmp_path, name):
    target = tmp_path / name
    weightmill.fold(MODELS / name, target)
    made = onnx.load(target)
    if len(made.graph.node) == 0:
        pytest.skip("a model without nodes")
    onnx.checker.check_model(str(target))
    assert_same_results(MODELS / name, target, inputs_of(name))


def inputs_of(name):
    """Inputs that the model's shapes ask for; None: random_inputs() finds them."""
    rng = np.random.default_rng(3)
    if name.startswith("ppocr"):
        return {"x": rng.normal(0, 1, (1, 3, 48, 64) if "det" not in name else (1, 3, 64, 64)).astype(np.float32)}
    if name.startswith("silero"):
        return {
            "input": rng.normal(0, 0.1, (1, 576)).astype(np.float32),
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(16000, np.int64),
        }
    return None


# Every kind of QuantizeLinear


def kinds():
    for code in CODES:
        for granularity in ("tensor", "axis", "block"):
            for zero_point in (True, False):
                yield code, granularity, zero_point


@pytest.mark.parametrize("code, granularity, zero_point", list(kinds()))
def test_codes_equal_onnx_runtime(tmp_path, code, granularity, zero_point):
    rng = np.random.default_rng(sum(map(ord, code + granularity)))
    since = CODES[code][3]
    opset = max(since, {"tensor": 10, "axis": 13, "block": 21}[granularity], 11)
    if not zero_point and opset < 21 and code != "uint8":
        opset = 21  # before, codes without a zero point are uint8
    names, nodes, stored = [], [], []
    for axis in (0, 1, 2, -1):
        name = f"w{axis}".replace("-", "m")
        more_nodes, more_stored = dequantized(rng, name, (3, 5, 7), code, granularity, axis, 3, zero_point, opset)
        names, nodes, stored = names + [name], nodes + more_nodes, stored + more_stored
    made = model(nodes + added(names), stored, [], [value("y", (3, 5, 7))], opset, 10 if opset < 24 else 12)
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 4
    assert "QuantizeLinear" not in op_types(folded.graph.node)
    assert all(entry.data_type == CODES[code][0] for name, entry in initializers(folded).items() if name.endswith("_q"))
    assert_same_results(tmp_path / "model.onnx", target, {})


@pytest.mark.parametrize("opset", range(10, 26))
def test_every_operator_set(tmp_path, opset):
    rng = np.random.default_rng(opset)
    nodes, stored = dequantized(rng, "w", (4, 6), "int8", "axis" if opset >= 13 else "tensor", axis=-1, opset=opset)
    made = model(
        nodes + [helper.make_node("MatMul", ["x", "w"], ["y"])],
        stored,
        [value("x", (2, 4))],
        [value("y", (2, 6))],
        opset,
        10 if opset < 24 else 12,
    )
    _, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 1
    assert_same_results(tmp_path / "model.onnx", target)


@pytest.mark.parametrize("code", ["int8", "uint8", "int16", "uint16", "int4", "uint4"])
def test_microsoft_domain(tmp_path, code):
    rng = np.random.default_rng(1)
    nodes, stored = dequantized(rng, "w", (4, 6), code, "axis", axis=1)
    for node in nodes:
        node.domain = "com.microsoft"
    made = model(
        nodes + [helper.make_node("MatMul", ["x", "w"], ["y"])],
        stored,
        [value("x", (2, 4))],
        [value("y", (2, 6))],
        17,
        10,
        domains=["com.microsoft"],
    )
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    onnx.save(made, source)
    assert weightmill.fold(source, target, strict=True).count("folded") == 1
    assert_same_results(source, target)


@pytest.mark.parametrize("granularity", ["tensor", "axis", "block"])
def test_float16_weights(tmp_path, granularity):
    rng = np.random.default_rng(2)
    nodes, stored = dequantized(rng, "w", (40, 60), "int8", granularity, 1, 16, data_type=TensorProto.FLOAT16, opset=21)
    made = model(
        nodes + [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], stored, [], [value("y", (40, 60))]
    )
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.tensors[0].type_before == "float16"
    assert_same_results(tmp_path / "model.onnx", target, {})


@pytest.mark.parametrize("granularity", ["tensor", "axis", "block"])
@pytest.mark.parametrize(
    "opset, precision",
    [(21, None), *((opset, p) for opset in (23, 24, 25) for p in (None, TensorProto.FLOAT, TensorProto.FLOAT16))],
)
def test_float16_quotients_equal_onnx_runtime(tmp_path, opset, precision, granularity):
    """From operator set 23 on the quotient is rounded to float16, unless `precision` says float32."""
    rng = np.random.default_rng(3)
    nodes, stored = dequantized(
        rng, "w", (40, 60), "int16", granularity, 1, 7, opset=opset, data_type=TensorProto.FLOAT16
    )
    scale = np.abs(rng.normal(0.01, 0.001, stored[1].dims)).astype(np.float16)
    weights = (rng.integers(-4000, 4000, (40, 60)) * 0.005).astype(np.float16)  # half of them close to ties
    stored[:2] = [tensor("w_w", weights, TensorProto.FLOAT16), tensor("w_s", scale, TensorProto.FLOAT16)]
    if precision is not None:
        nodes[0].attribute.append(helper.make_attribute("precision", precision))
    made = model(
        nodes + [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)],
        stored,
        [],
        [value("y", (40, 60))],
        opset,
        10 if opset < 24 else 12,
    )
    _, _, target = fold(tmp_path, made, strict=True)
    assert_same_results(tmp_path / "model.onnx", target, {})


def test_a_division_in_another_type_is_left(tmp_path):
    left(tmp_path, simple(attributes={"precision": TensorProto.FLOAT16}, opset=23), "division in float16")


@pytest.mark.parametrize("producer", ["<unknown>", "p" * ord("<")])
def test_a_producer_does_not_make_xml_of_a_model(tmp_path, producer):
    made = simple()
    made.producer_name = producer
    assert fold(tmp_path, made, strict=True)[1].count("folded") == 1


def test_saturation_ties_and_infinities_equal_onnx_runtime(tmp_path):
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 300, -300, 1e30, -1e30, np.inf, -np.inf, 1e-40, 0], np.float32)
    for code, (data_type, low, high, _) in list(CODES.items())[:6]:
        for zero_point in (low, 0, high, 1):
            stored = [tensor("w", values), tensor("s", 1.0), tensor("z", zero_point, data_type)]
            nodes = [
                helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
                helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
            ]
            _, _, target = fold(tmp_path, model(nodes, stored, [], [value("y", values.shape)]), strict=True)
            assert_same_results(tmp_path / "model.onnx", target, {})


def test_random_constants_equal_onnx_runtime(tmp_path):
    """Many constants in a few models: an engine is expensive to open, a node is not."""
    n_models, n_constants = (40, 130) if os.environ.get("WEIGHTMILL_LONG") else (8, 130)
    for seed in range(n_models):
        rng = np.random.default_rng(seed)
        nodes, stored, names = [], [], []
        for i in range(n_constants):
            shape = tuple(int(extent) for extent in rng.integers(1, 9, rng.integers(1, 5)))
            code = str(rng.choice(list(CODES)[:6]))
            granularity = str(rng.choice(["tensor", "axis", "block"]))
            if granularity == "block" and len(shape) == 1:
                shape += (2,)  # the engine takes a single scale for one of the whole tensor
            axis, block = int(rng.integers(-len(shape), len(shape))), int(rng.integers(1, 6))
            more = dequantized(rng, f"w{i}", shape, code, granularity, axis, block, bool(rng.integers(0, 2)), opset=21)
            nodes, stored, names = nodes + more[0], stored + more[1], names + [(f"w{i}", shape)]
        made = model(nodes, stored, [], [value(name, shape) for name, shape in names])
        source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
        onnx.save(made, source)
        assert weightmill.fold(source, target, strict=True).count("folded") == n_constants
        assert_same_results(source, target, {})


# What stays as it was


def left(tmp_path, made, reason):
    """The model is written as it was, with the reason in the report; strict=True makes that an error."""
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    onnx.save(made, source)
    report = weightmill.fold(source, target)
    assert [entry.outcome for entry in report.tensors] == ["left"]
    assert reason in report.tensors[0].reason
    assert onnx.load(target).graph.node == made.graph.node
    target.unlink()
    with pytest.raises(weightmill.Error, match=reason) as error:
        weightmill.fold(source, target, strict=True)
    assert error.value.code == "unsupported"
    assert not target.exists()


def simple(
    weights=None, scale=0.1, zero_point=0, code=TensorProto.INT8, attributes=None, opset=21, ir_version=10, inputs=()
):
    weights = np.ones((2, 3)) if weights is None else weights
    stored = [tensor("w", weights), tensor("s", scale), tensor("z", zero_point, code)]
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], **(attributes or {})),
        helper.make_node(
            "DequantizeLinear",
            ["q", "s", "z"],
            ["y"],
            **{name: v for name, v in (attributes or {}).items() if name in ("axis", "block_size")},
        ),
    ]
    return model(nodes, stored, inputs, [value("y", np.shape(weights))], opset, ir_version)


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf])
def test_unusable_scale_is_left(tmp_path, scale):
    left(tmp_path, simple(scale=scale), "scale 0 is")


def test_scale_of_one_channel_is_named(tmp_path):
    made = simple(scale=[0.1, 0.0, 0.1], zero_point=[0, 0, 0], attributes={"axis": 1})
    left(tmp_path, made, "scale 1 is 0")


def test_nan_weight_is_left(tmp_path):
    left(tmp_path, simple(weights=np.array([[1, np.nan, 2]])), "a weight is NaN")


def test_float8_codes_are_left(tmp_path):
    made = simple()
    made.graph.initializer[2].CopyFrom(helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, (), [0.0]))
    left(tmp_path, made, "codes of type float8_e4m3 are kept as they are")


def test_scale_that_fits_no_axis_is_left(tmp_path):
    left(tmp_path, simple(scale=[0.1, 0.1], zero_point=[0, 0], attributes={"axis": 1}), "its scale has shape")


def test_axis_outside_the_rank_is_left(tmp_path):
    left(tmp_path, simple(scale=[0.1, 0.1], zero_point=[0, 0], attributes={"axis": 5}), "axis 5")


def test_zero_points_of_another_number_are_left(tmp_path):
    left(tmp_path, simple(scale=[0.1] * 3, zero_point=[0, 0], attributes={"axis": 1}), "zero point has shape")


def test_scale_of_another_type_is_left(tmp_path):
    made = simple(opset=23, ir_version=11)
    made.graph.initializer[1].CopyFrom(tensor("s", 0.1, TensorProto.FLOAT16))
    left(tmp_path, made, "its data is float32 and its scale float16")


def test_replaceable_initializer_is_left(tmp_path):
    left(tmp_path, simple(inputs=[value("w", (2, 3))]), "a caller may replace w")


def test_output_of_the_graph_is_left(tmp_path):
    nodes = [helper.make_node("QuantizeLinear", ["w", "s"], ["q"])]
    made = model(
        nodes + [helper.make_node("DequantizeLinear", ["q", "s"], ["y"])],
        [tensor("w", np.ones(3)), tensor("s", 0.1)],
        [],
        [value("q", (3,), TensorProto.UINT8), value("y", (3,))],
    )
    left(tmp_path, made, "its output is an output of the graph")


def test_activations_are_no_rows(tmp_path):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    made = model(nodes, [tensor("s", 0.1)], [value("x", (3,))], [value("y", (3,))])
    folded, report, _ = fold(tmp_path, made, strict=True)
    assert report.tensors == [] and folded == made


# Who else reads a constant


def test_float_constant_stays_while_somebody_reads_it(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    made = model(nodes + added(["w", "w_w"]), stored, [], [value("y", (3, 3))])
    folded, report, target = fold(tmp_path, made)
    assert {"w_w", "w_q"} <= initializers(folded).keys()
    assert any("w_w stays" in note for note in report.notes)
    assert_same_results(tmp_path / "model.onnx", target, {})


def test_float_constant_stays_as_an_output(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    made = model(nodes + added(["w"]), stored, [], [value("y", (3, 3)), value("w_w", (3, 3))])
    folded, _, target = fold(tmp_path, made)
    assert {"w_w", "w_q"} <= initializers(folded).keys()
    assert_same_results(tmp_path / "model.onnx", target, {})


def branch(name, nodes, output, stored=()):
    return helper.make_graph(nodes, name, [], [value(output, (3, 3))], list(stored))


def if_model(then_branch, else_branch, nodes=(), stored=()):
    choose = helper.make_node("If", ["c"], ["y"], name="choose", then_branch=then_branch, else_branch=else_branch)
    return model([*nodes, choose], stored, [value("c", (), TensorProto.BOOL)], [value("y", (3, 3))])


@pytest.mark.parametrize("condition", [True, False])
def test_float_constant_stays_while_a_branch_reads_it(tmp_path, condition):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    made = if_model(
        branch("t", added(["w"])[-1:], "y", ()),
        branch("e", [helper.make_node("Neg", ["w_w"], ["n"])], "n"),
        nodes,
        stored,
    )
    folded, _, target = fold(tmp_path, made)
    assert {"w_w", "w_q"} <= initializers(folded).keys()
    assert_same_results(tmp_path / "model.onnx", target, {"c": np.array(condition)})


@pytest.mark.parametrize("condition", [True, False])
def test_branches_share_one_constant(tmp_path, condition):
    """Both branches quantize the same outer constant: one integer constant, outside of both."""
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    other = [
        helper.make_node(
            node.op_type,
            [name.replace("w_q", "v_q") for name in node.input],
            [name.replace("w_q", "v_q") if name != "w" else "v" for name in node.output],
        )
        for node in nodes
    ]
    for copy, node in zip(other, nodes):
        copy.attribute.extend(node.attribute)
    made = if_model(branch("t", nodes, "w"), branch("e", other, "v"), stored=stored)
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 2
    assert sorted(entry.data_type for entry in folded.graph.initializer) == sorted(
        [TensorProto.FLOAT, TensorProto.INT8, TensorProto.INT8]
    )
    assert_same_results(tmp_path / "model.onnx", target, {"c": np.array(condition)})


@pytest.mark.parametrize("condition", [True, False])
def test_branches_of_old_models_get_constant_nodes(tmp_path, condition):
    """Up to format version 3 every initialiser is an input, and a branch has no inputs."""
    rng = np.random.default_rng(8)
    branches = []
    for name in ("then", "else"):
        nodes, stored = dequantized(rng, name, (3, 3), "int8", "tensor", opset=10)
        nodes = [helper.make_node("Constant", [], [entry.name], value=entry) for entry in stored] + nodes
        branches.append(branch(name + "_branch", nodes, name))
    made = if_model(*branches)
    made.ir_version = 3
    made.opset_import[0].version = 11
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 2
    for attribute in folded.graph.node[0].attribute:
        assert not attribute.g.initializer
        assert sorted(op_types(attribute.g.node)) == ["Constant"] * 3 + ["DequantizeLinear"]
    assert_same_results(tmp_path / "model.onnx", target, {"c": np.array(condition)})


@pytest.mark.parametrize("condition", [True, False])
def test_same_names_in_both_branches(tmp_path, condition):
    rng = np.random.default_rng(5)
    then_nodes, then_stored = dequantized(rng, "w", (3, 3))
    else_nodes, else_stored = dequantized(rng, "w", (3, 3), "uint4", "tensor")
    made = if_model(branch("t", then_nodes, "w", then_stored), branch("e", else_nodes, "w", else_stored))
    _, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 2
    assert_same_results(tmp_path / "model.onnx", target, {"c": np.array(condition)})


def test_loop_body(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3,))
    body = helper.make_graph(
        [*nodes, helper.make_node("Add", ["a", "w"], ["a_next"]), helper.make_node("Identity", ["c"], ["c_next"])],
        "body",
        [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("a", (3,))],
        [value("c_next", (), TensorProto.BOOL), value("a_next", (3,))],
        stored,
    )
    made = model(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        [tensor("n", 3, TensorProto.INT64)],
        [value("x", (3,))],
        [value("y", (3,))],
    )
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 1
    assert "QuantizeLinear" not in op_types(folded.graph.node[0].attribute[0].g.node)
    assert_same_results(tmp_path / "model.onnx", target)


def test_function_body(tmp_path):
    """A function has no initialisers: its integer constant is a Constant node."""
    constants, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    as_nodes = [helper.make_node("Constant", [], [entry.name], value=entry) for entry in stored]
    function = helper.make_function(
        "my.domain",
        "Block",
        ["x"],
        ["z"],
        [*as_nodes, *constants, helper.make_node("MatMul", ["x", "w"], ["z"])],
        [helper.make_opsetid("", 21)],
    )
    made = model(
        [helper.make_node("Block", ["x"], ["y"], domain="my.domain")],
        [],
        [value("x", (2, 3))],
        [value("y", (2, 3))],
        functions=[function],
        domains=["my.domain"],
    )
    folded, report, target = fold(tmp_path, made, strict=True)
    assert report.count("folded") == 1
    assert op_types(folded.functions[0].node) == ["Constant", "Constant", "Constant", "DequantizeLinear", "MatMul"]
    assert_same_results(tmp_path / "model.onnx", target)


def test_equal_nodes_share_one_constant(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    again = [
        helper.make_node("QuantizeLinear", nodes[0].input, ["v_q"]),
        helper.make_node("DequantizeLinear", ["v_q", *nodes[0].input[1:]], ["v"]),
    ]
    for copy, node in zip(again, nodes):
        copy.attribute.extend(node.attribute)
    other = [
        helper.make_node("QuantizeLinear", ["w_w", "t"], ["u_q"]),
        helper.make_node("DequantizeLinear", ["u_q", "t"], ["u"]),
    ]
    made = model(
        [*nodes, *again, *other, *added(["w", "v", "u"])], [*stored, tensor("t", 0.5)], [], [value("y", (3, 3))]
    )
    folded, report, target = fold(tmp_path, made, strict=True)
    assert initializers(folded).keys() == {"w_q", "w_s", "w_z", "u_q", "t"}
    assert [entry.bytes_after for entry in report.tensors] == [9, 0, 9]
    assert_same_results(tmp_path / "model.onnx", target, {})


def test_nodes_over_a_tensor_with_typed_fields_share_one_constant(tmp_path):
    made = simple()
    made.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [2, 3], range(6)))
    made.graph.node.append(helper.make_node("QuantizeLinear", ["w", "s", "z"], ["v_q"]))
    made.graph.node.append(helper.make_node("DequantizeLinear", ["v_q", "s", "z"], ["v"]))
    made.graph.output.append(value("v", (2, 3)))
    folded, report, target = fold(tmp_path, made, strict=True)
    assert initializers(folded).keys() == {"q", "s", "z"}
    assert_same_results(tmp_path / "model.onnx", target, {})


def many_nodes(stored, n):
    """`n` QuantizeLinear over the tensor "w", each with a scale of its own."""
    stored = [stored, *(tensor(f"s{i}", 1 + i) for i in range(n))]
    nodes = []
    for i in range(n):
        nodes.append(helper.make_node("QuantizeLinear", ["w", f"s{i}"], [f"q{i}"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}"], [f"v{i}"]))
    return model(nodes, stored, [], [value(f"v{i}", stored[0].dims) for i in range(n)])


def test_nodes_that_share_typed_fields_share_memory(tmp_path):
    made = many_nodes(helper.make_tensor("w", TensorProto.FLOAT, [2**20], np.zeros(2**20, np.float32)), 60)
    onnx.save(made, tmp_path / "in.onnx")
    assert measured_fold(tmp_path / "in.onnx", tmp_path / "out.onnx")["peak_rss"] <= 128 << 20


def test_nodes_that_differ_in_attributes_alone_take_no_longer(tmp_path):
    n = 20000
    nodes = []
    for i in range(n):
        nodes.append(helper.make_node("QuantizeLinear", ["w", "s"], [f"q{i}"], axis=0, block_size=i + 2))
        nodes.append(helper.make_node("DequantizeLinear", [f"q{i}", "s"], [f"v{i}"], axis=0, block_size=i + 2))
    nodes.append(helper.make_node("Sum", [f"v{i}" for i in range(n)], ["y"]))
    made = model(nodes, [tensor("w", np.ones((2, 2))), tensor("s", np.ones((1, 2)))], [], [value("y", (2, 2))])
    onnx.save(made, tmp_path / "in.onnx")
    started = time.process_time()
    assert weightmill.fold(tmp_path / "in.onnx", tmp_path / "out.onnx").count("folded") == n
    assert time.process_time() - started < 3  # took 6 s, and four times that for twice the nodes


def test_a_model_that_would_be_read_without_end_is_refused(tmp_path):
    made = many_nodes(tensor("w", np.zeros(2**20)), 300)
    onnx.save(made, tmp_path / "in.onnx")
    with pytest.raises(weightmill.Error, match="300 QuantizeLinear nodes share constants") as error:
        weightmill.fold(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert error.value.code == "bad_file" and not (tmp_path / "out.onnx").exists()


def test_zero_points_in_another_order_than_the_scales_are_left(tmp_path):
    made = simple(np.ones((4, 6)), np.ones((4, 3)), np.zeros((4, 3)), attributes={"axis": 1, "block_size": 2})
    made.graph.initializer[2].dims[:] = [3, 4]
    left(tmp_path, made, "its zero point has shape")


def test_many_graphs_with_equal_names_take_no_longer(tmp_path):
    """Each constant moves out of its two branches, and needs a name that none of the graphs has."""
    n = 1500
    stored = [tensor("s", 0.1), *(tensor(f"w{k}", np.full((2, 2), k)) for k in range(n))]
    nodes = []
    for k in range(n):
        inner = [
            helper.make_node("QuantizeLinear", [f"w{k}", "s"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s"], ["v"]),
        ]
        graphs = {name: branch(name, inner, "v") for name in ("then_branch", "else_branch")}
        nodes.append(helper.make_node("If", ["c"], [f"y{k}"], **graphs))
    nodes.append(helper.make_node("Sum", [f"y{k}" for k in range(n)], ["y"]))
    made = model(nodes, stored, [value("c", (), TensorProto.BOOL)], [value("y", (2, 2))])
    onnx.save(made, tmp_path / "in.onnx")
    started = time.process_time()
    assert weightmill.fold(tmp_path / "in.onnx", tmp_path / "out.onnx").count("folded") == 2 * n
    assert time.process_time() - started < 5  # took minutes


def test_a_node_that_reads_codes_very_often_takes_no_longer(tmp_path):
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s"], ["q"]),
        helper.make_node("Concat", ["q"] * 100000, ["y"], axis=0),
    ]
    made = model(
        nodes, [tensor("w", np.ones((1, 1))), tensor("s", 0.1)], [], [value("y", (100000, 1), TensorProto.UINT8)]
    )
    onnx.save(made, tmp_path / "in.onnx")
    started = time.process_time()
    assert weightmill.fold(tmp_path / "in.onnx", tmp_path / "out.onnx").count("folded") == 1
    assert time.process_time() - started < 5  # took minutes


# Constants behind nodes


@pytest.mark.parametrize("chain", ["constant", "identity", "cast", "transpose", "all", "floats"])
def test_constants_behind_nodes(tmp_path, chain):
    rng = np.random.default_rng(4)
    nodes, stored = dequantized(rng, "w", (4, 6), "int8", "axis", 1)
    weights, scale, zero_point = numpy_helper.to_array(stored[0]), stored[1], stored[2]
    half = numpy_helper.from_array(weights.astype(np.float16), "h")
    front = {
        "constant": [helper.make_node("Constant", [], ["w_w"], value=stored[0])],
        "identity": [helper.make_node("Identity", ["p"], ["w_w"])],
        "cast": [helper.make_node("Cast", ["h"], ["w_w"], to=TensorProto.FLOAT)],
        "transpose": [helper.make_node("Transpose", ["p"], ["w_w"], perm=[1, 0])],
        "all": [
            helper.make_node("Constant", [], ["c"], value=half),
            helper.make_node("Identity", ["c"], ["i"]),
            helper.make_node("Transpose", ["i"], ["t"]),
            helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Transpose", ["f"], ["w_w"], perm=[1, 0]),
        ],
        "floats": [helper.make_node("Constant", [], ["w_w"], value_floats=[1.5, -2.25, 3.0])],
    }[chain]
    made_of = {
        "identity": [numpy_helper.from_array(weights, "p")],
        "cast": [half],
        "transpose": [numpy_helper.from_array(np.ascontiguousarray(weights.T), "p")],
    }.get(chain, [])
    shape = (4, 6)
    if chain == "floats":
        nodes, (_, scale, zero_point) = dequantized(rng, "w", (3,), "int8", "tensor")
        shape = (3,)
    behind = [helper.make_node("Identity", ["w_s2"], ["w_s"])]
    scale.name = "w_s2"
    made = model([*front, *behind, *nodes, *added(["w"])], [*made_of, scale, zero_point], [], [value("y", shape)])
    folded, report, target = fold(tmp_path, made, strict=True)
    assert op_types(folded.graph.node) == [
        "DequantizeLinear",
        "Identity",
        "Identity",
    ]  # of the scale, and of the output
    assert "w_q" in initializers(folded)
    assert_same_results(tmp_path / "model.onnx", target, {})


def test_old_models_list_the_integer_constant_as_input(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3), "int8", "tensor")
    made = model(
        [*nodes, *added(["w"])],
        stored,
        [value("w_w", (3, 3)), value("w_s", ()), value("w_z", (), TensorProto.INT8)],
        [value("y", (3, 3))],
        opset=11,
        ir_version=3,
    )
    folded, report, _ = fold(tmp_path, made, strict=True)
    assert [entry.name for entry in folded.graph.input] == ["w_s", "w_z", "w_q"]
    assert initializers(folded).keys() == {"w_s", "w_z", "w_q"}


# What is not understood is kept


def test_tensors_stay_wherever_they_stand(tmp_path):
    """Every way that onnx.proto has to a TensorProto, found by its own description."""
    made = simple()
    count = 0

    def fill(message, trail):
        nonlocal count
        for field in message.DESCRIPTOR.fields:
            inner = field.message_type
            if inner is None or field.name == "type" or trail.count(inner.name) >= 2:
                continue
            if inner.name not in WAYS:
                continue
            child = getattr(message, field.name).add() if repeated(field) else getattr(message, field.name)
            if inner.name == "TensorProto":
                count += 1
                child.CopyFrom(tensor(f"filled_{count}", np.full(300, count)))
            else:
                fill(child, [*trail, inner.name])
        if message.DESCRIPTOR.name == "NodeProto":
            message.op_type = "Anything"

    before = len(made.graph.initializer)
    fill(made, ["ModelProto"])
    assert count > 30
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    source.write_bytes(made.SerializeToString())
    weightmill.fold(source, target, compress_weights=False)
    assert before == 3 and onnx.load(target) == made


WAYS = {
    "GraphProto",
    "NodeProto",
    "AttributeProto",
    "TensorProto",
    "SparseTensorProto",
    "FunctionProto",
    "TrainingInfoProto",
}


def repeated(field):
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def test_unknown_fields_and_documentation_stay(tmp_path):
    made = simple()
    made.graph.doc_string = "about"
    made.metadata_props.add(key="k", value="v")
    made.graph.quantization_annotation.add(tensor_name="y").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="s"
    )
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    unknown = b"\xfa\x3f\x03abc"  # field 1023 of the model, three bytes
    source.write_bytes(made.SerializeToString() + unknown)
    weightmill.fold(source, target, strict=True)
    folded = onnx.load(target)
    assert unknown in target.read_bytes()
    assert folded.graph.doc_string == "about" and folded.metadata_props == made.metadata_props
    assert folded.graph.quantization_annotation == made.graph.quantization_annotation
    assert folded.producer_name == made.producer_name and folded.opset_import == made.opset_import


def test_a_second_fold_changes_nothing(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    _, _, target = fold(tmp_path, model([*nodes, *added(["w"])], stored, [], [value("y", (3, 3))]))
    again = tmp_path / "again.onnx"
    report = weightmill.fold(target, again)
    assert report.tensors == [] and again.read_bytes() == target.read_bytes()


def test_threads_change_nothing(tmp_path):
    nodes, stored = dequantized(np.random.default_rng(0), "w", (700, 900), "int4", "block", 0, 32)
    source = tmp_path / "model.onnx"
    onnx.save(model([*nodes, *added(["w"])], stored, [], [value("y", (700, 900))]), source)
    written = []
    for jobs in (1, 2, 3):
        weightmill.fold(source, tmp_path / f"{jobs}.onnx", jobs=jobs)
        written.append((tmp_path / f"{jobs}.onnx").read_bytes())
    assert written[0] == written[1] == written[2]


def test_a_model_object_is_folded_and_stays_as_it_was():
    nodes, stored = dequantized(np.random.default_rng(0), "w", (3, 3))
    made = model([*nodes, *added(["w"])], stored, [], [value("y", (3, 3))])
    copy = onnx.ModelProto()
    copy.CopyFrom(made)
    report = weightmill.fold(made)
    assert made == copy
    onnx.checker.check_model(report.model, full_check=True)
    assert "w_q" in initializers(report.model)
    assert_same_results(made, report.model, {})


def test_without_output_nothing_is_written(tmp_path):
    source = tmp_path / "model.onnx"
    onnx.save(simple(), source)
    report = weightmill.fold(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx"]
    assert report.count("folded") == 1 and report.bytes_after > 0
    weightmill.fold(source, tmp_path / "folded.onnx")
    assert (tmp_path / "folded.onnx").stat().st_size == report.bytes_after
