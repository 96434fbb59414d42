"""Weight-only quantization of an ONNX model, beside NNCF's on the same input in the same run: time, peak memory, SQNR, bytes.

python bench/quantize_weights.py [FOLDER]     needs 2 GiB of disk there
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_START = """
import json, sys, time
"""
_END = """
# VmHWM is this program's own: ru_maxrss begins with the peak of the process it was forked from.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak_rss": peak * 1024}))
"""
_WEIGHTMILL = """
import weightmill
wall, cpu = time.perf_counter(), time.process_time()
weightmill.quantize(sys.argv[1], sys.argv[2], weights_only=True, jobs=int(sys.argv[5]),
                    weight_type=sys.argv[3], block_size=int(sys.argv[4]))
"""
# Imports are not counted; reading and writing the model are, as they are on the other side.
_NNCF = """
import logging, nncf, onnx
nncf.set_log_level(logging.ERROR)
wall, cpu = time.perf_counter(), time.process_time()
model = onnx.load(sys.argv[1])
mode = {"int8": nncf.CompressWeightsMode.INT8_SYM, "int4": nncf.CompressWeightsMode.INT4_SYM}[sys.argv[3]]
options = {"group_size": int(sys.argv[4]), "all_layers": True} if sys.argv[3] == "int4" else {}
onnx.save(nncf.compress_weights(model, mode=mode, **options), sys.argv[2])
"""


def measured(script: str, *arguments: object) -> dict:
    command = [sys.executable, "-c", _START + script + _END, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def make_model(path: pathlib.Path, n: int, rows: int, columns: int) -> list[np.ndarray]:
    """Matrices whose channels have spreads of their own, as trained ones do."""
    rng = np.random.default_rng(0)
    weights = []
    for i in range(n):
        shape = (rows, columns) if i % 2 == 0 else (columns, rows)
        spread = np.exp(rng.normal(-3, 0.5, shape[1])).astype(np.float32)
        weights.append(rng.standard_t(6, shape).astype(np.float32) * spread)
    nodes = [helper.make_node("MatMul", [f"y{i}", f"w{i}"], [f"y{i + 1}"], name=f"mm{i}") for i in range(n)]
    value = lambda name, extent: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, extent])
    graph = helper.make_graph(nodes, "matrices", [value("y0", rows)], [value(f"y{n}", rows if n % 2 == 0 else columns)],
                              [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    onnx.save(model, path)
    return weights


def dequantized(model: onnx.ModelProto, number: int) -> np.ndarray:
    stored = {entry.name: numpy_helper.to_array(entry) for entry in model.graph.initializer}
    reader = next(node for node in model.graph.node if node.name == f"mm{number}")
    node = next(node for node in model.graph.node if node.output[0] == reader.input[1])
    codes, scale = stored[node.input[0]].astype(np.float32), stored[node.input[1]].astype(np.float32)
    zero = stored[node.input[2]].astype(np.float32) if len(node.input) > 2 else np.float32(0)
    block = next((a.i for a in node.attribute if a.name == "block_size"), 0)
    if block:
        scale = np.repeat(scale, block, 0)
        zero = np.repeat(zero, block, 0) if np.ndim(zero) else zero
    return (codes - zero) * scale


def sqnr(path: pathlib.Path, weights: list[np.ndarray]) -> float:
    model = onnx.load(path)
    noise = sum(float(((dequantized(model, i) - weight).astype(np.float64) ** 2).sum()) for i, weight in enumerate(weights))
    signal = sum(float((weight.astype(np.float64) ** 2).sum()) for weight in weights)
    return 10 * np.log10(signal / noise)


def bytes_of(path: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))


def compare(source: pathlib.Path, weights: list[np.ndarray], weight_type: str, block: int, turns: int) -> None:
    sides = {
        "weightmill, 1 thread": (_WEIGHTMILL, 1),
        "weightmill, 2 threads": (_WEIGHTMILL, 2),
        "NNCF compress_weights": (_NNCF, 0),
    }
    runs: dict[str, list[dict]] = {name: [] for name in sides}
    losses, sizes = {}, {}
    for turn in range(turns):
        for i, (name, (script, jobs)) in enumerate(sides.items()):
            target = source.parent / f"out{i}.onnx"
            runs[name].append(measured(script, source, target, weight_type, block, jobs))
            if turn == 0:
                losses[name], sizes[name] = sqnr(target, weights), bytes_of(target)
    title = f"{weight_type}, " + (f"blocks of {block}" if block else "per channel")
    print(f"\n{title}\n{'':<24}{'wall s':>8}{'range':>14}{'CPU s':>8}{'ratio':>7}{'peak MiB':>10}{'SQNR dB':>9}{'bytes':>13}")
    peer = statistics.median(run["wall"] for run in runs["NNCF compress_weights"])
    for name, measures in runs.items():
        wall = [run["wall"] for run in measures]
        spread = f"{min(wall):.2f}-{max(wall):.2f}"
        cpu, peak = (statistics.median(run[key] for run in measures) for key in ("cpu", "peak_rss"))
        median = statistics.median(wall)
        print(f"{name:<24}{median:8.2f}{spread:>14}{cpu:8.2f}{peer / median:7.1f}{peak / 2**20:10.0f}{losses[name]:9.2f}{sizes[name]:13}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        source = pathlib.Path(name, "matrices.onnx")
        weights = make_model(source, 8, 4096, 2048)
        print(f"8 matrices of 4096 x 2048 in float32, {source.stat().st_size / 2**20:.0f} MiB")
        for weight_type, block in (("int8", 0), ("int4", 32), ("int4", 128)):
            compare(source, weights, weight_type, block, turns=3)


if __name__ == "__main__":
    main()
