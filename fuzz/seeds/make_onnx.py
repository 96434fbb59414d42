"""Writes the seeds of fuzz_onnx into fuzz/seeds/onnx: small models that reach every part of the reader and the fold."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from onnx_models import dequantized, model, tensor, value  # noqa: E402


def seeds():
    rng = np.random.default_rng(1)
    for code, granularity in (("int8", "axis"), ("uint4", "block"), ("int16", "tensor"), ("int2", "axis")):
        opset = 25 if code == "int2" else 21
        nodes, stored = dequantized(rng, "w", (2, 4), code, granularity, 1, 2, opset=opset)
        yield code, model(
            [*nodes, helper.make_node("MatMul", ["x", "w"], ["y"])],
            stored,
            [value("x", (1, 2))],
            [value("y", (1, 4))],
            opset,
            10 if opset == 21 else 12,
        )

    nodes, stored = dequantized(rng, "w", (2, 2))
    branch = [helper.make_graph(nodes, name, [], [value("w", (2, 2))]) for name in ("t", "e")]
    yield "branches", model(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])],
        stored,
        [value("c", (), TensorProto.BOOL)],
        [value("y", (2, 2))],
    )

    constants = [helper.make_node("Constant", [], [entry.name], value=entry) for entry in stored]
    function = helper.make_function("d", "F", [], ["w"], [*constants, *nodes], [helper.make_opsetid("", 21)])
    yield "function", model(
        [helper.make_node("F", [], ["y"], domain="d")],
        [],
        [],
        [value("y", (2, 2))],
        functions=[function],
        domains=["d"],
    )

    half = tensor("h", np.ones((2, 2)), TensorProto.FLOAT16)
    chain = [
        helper.make_node("Constant", [], ["c"], value=half),
        helper.make_node("Identity", ["c"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"], perm=[1, 0]),
        helper.make_node("Cast", ["t"], ["w_w"], to=1),
    ]
    yield "chain", model(
        [*chain, *nodes, helper.make_node("Identity", ["w"], ["y"])], stored[1:], [], [value("y", (2, 2))]
    )

    for name, location in (("external", "w.bin"), ("external_folder", "sub/v.bin"), ("external_outside", "../w.bin")):
        entry = TensorProto(name="w_w", data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
        for key, text in (("location", location), ("offset", "16"), ("length", "16")):
            entry.external_data.add(key=key, value=text)
        made = model([*nodes, helper.make_node("Identity", ["w"], ["y"])], stored, [], [value("y", (2, 2))])
        made.graph.initializer[0].CopyFrom(entry)
        yield name, made


def weight_seeds():
    """Float weights, as quantize finds them."""
    rng = np.random.default_rng(2)
    node = helper.make_node
    weights = rng.normal(0, 1, (16, 4))
    x, y = value("x", (1, 16)), value("y", (1, 4))
    product = node("MatMul", ["x", "w"], ["y"], name="p")
    yield "weights_product", model([product], [tensor("w", weights)], [x], [y])

    behind = [node("Cast", ["w"], ["c"], to=1), node("Transpose", ["c"], ["t"], perm=[1, 0])]
    half = tensor("w", weights, TensorProto.FLOAT16)
    yield "weights_behind_nodes", model([*behind, node("Gemm", ["x", "t"], ["y"], transB=1)], [half], [x], [y], 13, 8)

    convolutions = [node("Conv", ["x", "a"], ["m"]), node("ConvTranspose", ["m", "b"], ["y"], group=2)]
    stored = [tensor("a", rng.normal(0, 1, (4, 2, 1, 1))), tensor("b", rng.normal(0, 1, (4, 1, 1, 1)))]
    image = [value(name, (1, 2, 2, 2)) for name in "xy"]
    yield "weights_convolutions", model(convolutions, stored, image[:1], image[1:], 11, 6)

    then = helper.make_graph([node("MatMul", ["x", "w"], ["a"])], "then", [], [value("a")])
    otherwise = helper.make_graph([node("Identity", ["z"], ["b"])], "else", [], [value("b")])
    choice = node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    stored = [tensor("w", weights), tensor("z", np.zeros((1, 4)))]
    yield "weights_in_branch", model([choice], stored, [x, value("c", (), TensorProto.BOOL)], [y], 13, 8)

    body = [node("Constant", [], ["w"], value=tensor("w", weights)), product]
    function = helper.make_function("my", "B", ["x"], ["y"], body, [helper.make_opsetid("", 12)])
    yield "weights_in_function", model([node("B", ["x"], ["y"], domain="my")], [], [x], [y], 12, 8, [function], ["my"])

    look_up = [node("Gather", ["w", "i"], ["r"]), node("MatMul", ["r", "w"], ["z"])]
    table = tensor("w", rng.normal(0, 1, (4, 4)))
    yield "weights_table", model(look_up, [table], [value("i", (2,), TensorProto.INT64)], [value("z", (2, 4))], 17, 8)

    halves = [value(name, shape, TensorProto.FLOAT16) for name, shape in (("x", (1, 16)), ("y", (1, 4)), ("w", (16, 4)))]
    inputs_too = model([product], [half], halves[:1], halves[1:2], 17, 8)
    inputs_too.graph.input.append(halves[2])
    yield "weights_are_inputs", inputs_too


for seed_name, made_model in (*seeds(), *weight_seeds()):
    (ROOT / "fuzz" / "seeds" / "onnx" / f"{seed_name}.onnx").write_bytes(made_model.SerializeToString())
