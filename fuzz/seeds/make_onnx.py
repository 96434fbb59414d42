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


for seed_name, made_model in seeds():
    (ROOT / "fuzz" / "seeds" / "onnx" / f"{seed_name}.onnx").write_bytes(made_model.SerializeToString())
