"""Weight-only quantization of models of any size, and with external data."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.external_data_helper import convert_model_to_external_data

import weightmill
from big_onnx import save_chain, sparse_tensors
from onnx_models import model, tensor, value
from weight_twin import assert_codes

BUGS = pathlib.Path(__file__).parents[3] / "shared" / "bugs" / "13_external_data"
PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
needs_bugs = pytest.mark.skipif(not BUGS.is_dir(), reason="../shared/bugs/13_external_data is not there")

# VmHWM is the program's own peak: ru_maxrss begins with that of the process it was forked from.
_MEASURED = """
import json, sys, weightmill
report = weightmill.quantize(sys.argv[1], sys.argv[2], weights_only=True, **json.loads(sys.argv[3]))
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"peak_rss": peak * 1024, "quantized": report.count("quantized")}))
"""


def measured(source, target, **options):
    done = subprocess.run([sys.executable, "-c", _MEASURED, source, target, json.dumps(options)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


def two_products():
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 1, shape).astype(np.float32) for name, shape in (("a", (96, 64)), ("b", (64, 80)))}
    nodes = [helper.make_node("MatMul", ["x", "a"], ["t"], name="first"), helper.make_node("MatMul", ["t", "b"], ["y"], name="second")]
    return model(nodes, [tensor(*entry) for entry in weights.items()], [value("x", (1, 96))], [value("y", (1, 80))]), weights


def test_inside_or_outside_gives_the_same_bytes(tmp_path, monkeypatch):
    made, _ = two_products()
    (tmp_path / "sub").mkdir()
    onnx.save(made, tmp_path / "inside.onnx")
    convert_model_to_external_data(made, location="weights.bin", size_threshold=0)
    onnx.save(made, tmp_path / "sub" / "outside.onnx")
    monkeypatch.chdir("/")
    weightmill.quantize(tmp_path / "inside.onnx", tmp_path / "a.onnx", weights_only=True)
    weightmill.quantize(tmp_path / "sub" / "outside.onnx", tmp_path / "b.onnx", weights_only=True)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_codes_may_stand_beside_the_model(tmp_path):
    made, weights = two_products()
    onnx.save(made, tmp_path / "in.onnx")
    report = weightmill.quantize(tmp_path / "in.onnx", tmp_path / "out.onnx", weights_only=True, external_data="always")
    got = onnx.load(tmp_path / "out.onnx")
    assert_codes(got.graph, "first", weights["a"], "int8", 1)
    assert_codes(got.graph, "second", weights["b"], "int8", 1)
    assert report.bytes_after == sum(path.stat().st_size for path in tmp_path.glob("out*"))


def sparse_model(folder, n, rows, columns, turned=False):
    """n matrices. turned: stored as [columns, rows] behind a Transpose, as PyTorch's Linear is."""
    dims = [columns, rows] if turned else [rows, columns]
    stored, nodes, last = list(sparse_tensors(folder, n, rows, columns, dims)), [], "x"
    for i in range(n):
        if turned:
            nodes.append(helper.make_node("Transpose", [f"w{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("MatMul", [last, f"t{i}" if turned else f"w{i}"], [f"y{i}"], name=f"mm{i}"))
        last = f"y{i}"
    return save_chain(folder, nodes, stored, rows, columns, 21)


@pytest.mark.parametrize("turned, options", [(False, {}), (True, {}), (False, {"weight_type": "int4", "block_size": 32})])
def test_memory_does_not_grow_with_the_model(tmp_path, turned, options):
    """0.5 GiB of weights, 2.5 GiB where WEIGHTMILL_LONG is set."""
    source = sparse_model(tmp_path, 10 if os.environ.get("WEIGHTMILL_LONG") else 2, 8192, 8192, turned)
    result = measured(source, tmp_path / "out.onnx", **options)
    assert result["quantized"] >= 2
    assert result["peak_rss"] < 256 << 20


def assert_untouched(folder, before):
    assert sorted(path.name for path in folder.iterdir()) == before


@needs_bugs
def test_bug_13(tmp_path):
    sub = BUGS / "sub"
    before = sorted(path.name for path in sub.iterdir())
    for name in ("ext", "model"):
        assert run("quantize", sub / f"{name}.onnx", "--weights-only", "-o", tmp_path / f"{name}.onnx", cwd="/").returncode == 0
    assert (tmp_path / "ext.onnx").read_bytes() == (tmp_path / "model.onnx").read_bytes()                 # 1
    words = {
        "ext_missing": ["tensor w", "nowhere.bin", str(sub)],                                                # 2
        "ext_short": ["w", "4608 bytes at offset 0", "short.bin has 1000"],                               # 3
        "ext_escape": ["outside the model's directory"],                                                   # 4
    }
    for name, parts in words.items():
        done = run("quantize", sub / f"{name}.onnx", "--weights-only", "-o", tmp_path / "out.onnx", cwd="/")
        assert done.returncode == 3
        assert all(part in done.stderr for part in parts), done.stderr
    assert_untouched(sub, before)                                                                          # 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ext.onnx", "model.onnx"]


@needs_bugs
def test_bug_13_line_5(tmp_path):
    """2.5 GiB in a sparse file; the result takes 0.7 GiB of disk."""
    subprocess.run([sys.executable, BUGS / "make_big.py", tmp_path / "big"], check=True)
    result = measured(tmp_path / "big" / "big.onnx", tmp_path / "out.onnx")
    assert result["quantized"] == 5 and result["peak_rss"] < 1 << 30
    got = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert sum(bool(entry.external_data) for entry in got.graph.initializer) >= 5
    onnx.checker.check_model(str(tmp_path / "out.onnx"))
    assert sorted(path.name for path in (tmp_path / "big").iterdir()) == ["big.bin", "big.onnx"]
