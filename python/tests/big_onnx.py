"""Quantized ONNX models of any size, and a fold measured in a process of its own."""

import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_models import value


def sparse_tensors(folder, count, rows, columns, dims):
    """`count` float32 tensors of `dims` in folder/big.bin, whose bytes are rows x columns. Only the first rows take room on
    the disk."""
    size = rows * columns * 4
    with open(folder / "big.bin", "wb") as file:
        file.truncate(size * count)
        for i in range(count):
            file.seek(i * size)
            file.write(np.random.default_rng(i).normal(0, 0.05, (4, columns)).astype(np.float32).tobytes())
    for i in range(count):
        entry = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "big.bin"), ("offset", i * size), ("length", size)):
            entry.external_data.add(key=key, value=str(text))
        yield entry


def save_chain(folder, nodes, stored, rows, columns, opset):
    """A model of nodes that lead from x to the last one's output, as folder/big.onnx."""
    graph = helper.make_graph(
        nodes, "big", [value("x", (1, rows))], [value(nodes[-1].output[0], (1, columns))], stored
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    onnx.save(made, folder / "big.onnx")
    return folder / "big.onnx"


def big_model(folder, n_matrices, rows, columns):
    """n_matrices float32 [rows, columns], each with Q and DQ, in a sparse file of external data."""
    nodes, stored, last = [], list(sparse_tensors(folder, n_matrices, rows, columns, [rows, columns])), "x"
    for i in range(n_matrices):
        stored.append(onnx.numpy_helper.from_array(np.full(columns, 0.002, np.float32), f"s{i}"))
        nodes += [
            helper.make_node("QuantizeLinear", [f"w{i}", f"s{i}", "z"], [f"q{i}"], axis=1),
            helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", "z"], [f"d{i}"], axis=1),
            helper.make_node("MatMul", [last, f"d{i}"], [f"y{i}"]),
        ]
        last = f"y{i}"
    stored.append(onnx.numpy_helper.from_array(np.zeros(columns, np.int8), "z"))
    return save_chain(folder, nodes, stored, rows, columns, 21)


_FOLD = """
import json, sys, time, weightmill
wall, cpu = time.perf_counter(), time.process_time()
report = weightmill.fold(sys.argv[1], sys.argv[2], strict=True, jobs=int(sys.argv[3]), **json.loads(sys.argv[4]))
# VmHWM is this program's own: ru_maxrss begins with the peak of the process it was forked from.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                  "peak_rss": peak * 1024, "folded": report.count("folded")}))
"""


def measured_fold(source, target, jobs=0, **options):
    """Seconds of wall clock and CPU, and peak resident bytes of the whole process."""
    done = subprocess.run(
        [sys.executable, "-c", _FOLD, source, target, str(jobs), json.dumps(options)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
