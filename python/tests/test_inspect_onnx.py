"""`weightmill inspect` on ONNX models."""

import json
import pathlib
import subprocess
import sysconfig

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import weightmill
from onnx_models import dequantized, model, tensor, value

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "weightmill"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed: run `make build`")


def inspect(path):
    done = subprocess.run([PROGRAM, "inspect", "--json", path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["weights"]


def test_rows_say_how_weights_are_stored(tmp_path):
    rng = np.random.default_rng(0)
    nodes, stored = dequantized(rng, "w", (8, 6), "int4", "block", 0, 4)
    activation = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    ]
    made = model(
        [
            *activation,
            *nodes,
            helper.make_node("MatMul", ["d", "w"], ["h"]),
            helper.make_node("MatMul", ["h", "v"], ["y"]),
        ],
        [*stored, tensor("s", 0.1), tensor("z", 3, TensorProto.UINT8), tensor("v", np.ones((6, 2)))],
        [value("x", (1, 8))],
        [value("y", (1, 2))],
    )
    source, target = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    onnx.save(made, source)
    weightmill.fold(source, target, strict=True)

    before, plain = inspect(source)
    assert (before["name"], before["dtype"], before["shape"], before["granularity"]) == (
        "w_w",
        "float32",
        [8, 6],
        "blocks of 4 along axis 0",
    )
    assert "quantized at run time" in before["note"] and before["ifm_dtype"] == "uint8" and before["n_scales"] == 12
    assert (plain["name"], plain["dtype"], plain["n_scales"], plain["note"]) == ("v", "float32", 0, "")

    after, _ = inspect(target)
    assert (after["name"], after["dtype"], after["size_bytes"], after["note"]) == ("w_q", "int4", 24, "")
