"""The whole of `weightmill pack`: how two threads scale, how much memory it takes, and the ledger of sizes.

The ledger `sizes.csv` has bytes of streams and records. Models of the wheel pymicro-wakeword are always there; those of ../shared/models (or WEIGHTMILL_MODELS_DIR) where
they are installed, and lines of models that are not there are kept.
"""

import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import ledger
import weightmill

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
MIB = 1 << 20


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "large.tflite"
        model.write_bytes(large_model(n_layers=24, n_in=1024, n_out=2048))
        report_scaling(model)
        report_memory(model)
    update_ledger()


def large_model(n_layers: int, n_in: int, n_out: int) -> bytes:
    """Fully connected int8 layers side by side on one input."""
    random = np.random.default_rng(11)
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.buffers = 3, [graph], [schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    model.operatorCodes = [code]
    graph.tensors, graph.operators = [], []

    def tensor(name, shape, dtype, scale, data=None):
        t = schema.TensorT()
        t.name, t.shape, t.type, t.buffer = name, shape, dtype, 0
        t.quantization = schema.QuantizationParametersT()
        t.quantization.scale, t.quantization.zeroPoint = [scale], [0]
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            model.buffers.append(buffer)
            t.buffer = len(model.buffers) - 1
        graph.tensors.append(t)
        return len(graph.tensors) - 1

    graph.inputs = [tensor("x", [1, n_in], schema.TensorType.INT8, 0.02)]
    graph.outputs = []
    for layer in range(n_layers):
        weights = np.rint(random.normal(0, 25, (n_out, n_in))).clip(-127, 127).astype(np.int8)
        w = tensor(f"w{layer}", [n_out, n_in], schema.TensorType.INT8, 0.01, weights)
        b = tensor(f"b{layer}", [n_out], schema.TensorType.INT32, 0.0002, random.integers(-999, 999, n_out).astype(np.int32))
        graph.outputs.append(tensor(f"y{layer}", [1, n_out], schema.TensorType.INT8, 0.1))
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = 0, [graph.inputs[0], w, b], [graph.outputs[-1]]
        operator.builtinOptions, operator.builtinOptionsType = schema.FullyConnectedOptionsT(), schema.BuiltinOptions.FullyConnectedOptions
        graph.operators.append(operator)
    builder = flatbuffers.Builder(n_layers * n_in * n_out + MIB)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def pack_seconds(model: pathlib.Path, jobs: int, folder: str) -> float:
    begin = time.perf_counter()
    subprocess.run([PROGRAM, "pack", model, "--accelerator-config", "ethos-u55-128", "-o", folder, "--jobs", str(jobs), "-q", "--ofm-depth-step", "64"],
                   check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def report_scaling(model: pathlib.Path, turns: int = 5) -> None:
    """Wall time of one and two threads, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(pack_seconds(model, 1, folder), pack_seconds(model, 2, folder)) for _ in range(turns)]
    ratios = sorted(one / two for one, two in pairs)
    one = statistics.median(pair[0] for pair in pairs)
    megabytes = model.stat().st_size / 1e6
    print(f"pack {megabytes:.0f} MB int8: {one:.2f} s on one thread ({megabytes / one:.0f} MB/s); two threads {statistics.median(ratios):.2f}x faster "
          f"({ratios[0]:.2f}..{ratios[-1]:.2f})")


# A process inherits the peak of the one it was forked from, so the program is started by a small one.
PEAK_OF_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def report_memory(model: pathlib.Path) -> None:
    """Peak resident memory of a pack; mapped pages of the model count as well."""
    size = model.stat().st_size / MIB
    for jobs in ("1", "2"):
        with tempfile.TemporaryDirectory() as folder:
            command = [PROGRAM, "pack", model, "--accelerator-config", "ethos-u55-128", "-o", folder, "--jobs", jobs, "-q"]
            peak = int(subprocess.run([sys.executable, "-c", PEAK_OF_CHILD, *command], check=True, capture_output=True).stdout) / 1024
        print(f"pack {size:.0f} MiB int8, {jobs} threads: peak memory {peak:.0f} MiB = model {peak - size:+.0f} MiB")


def models() -> list[pathlib.Path]:
    wheel = pathlib.Path(importlib.util.find_spec("pymicro_wakeword").origin).parent / "models"
    shared = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR", REPOSITORY.parent / "shared" / "models"))
    return sorted(wheel.glob("*.tflite")) + (sorted(shared.glob("*.tflite")) if shared.is_dir() else [])


ENCODERS = (("reference", "proven"), ("regor", "proven"), ("fast", "proven"), ("best", "proven"), ("best", "all"))


def label(effort: str, forms: str) -> str:
    return effort if forms == "proven" else f"{effort}, {forms} forms"


def lines_of(model: pathlib.Path) -> list[dict[str, str]]:
    lines = []
    for accelerator in ACCELERATORS:
        for effort, forms in ENCODERS:
            total = weightmill.pack(model, accelerator, effort=effort, forms=forms, jobs=0).report["total"]
            if total["n_weights"] == 0:
                return []
            lines.append({"model": model.name, "accelerator": accelerator, "effort": label(effort, forms), "weights": total["n_weights"],
                          "stream_bytes": total["stream_bytes"], "record_bytes": total["record_bytes"],
                          "bits_per_weight": f"{total['bits_per_weight']:.4f}"})
    return lines


def update_ledger() -> None:
    lines = [line for model in models() for line in lines_of(model)]
    ledger.update(lines)
    total = {line["effort"]: sum(other["stream_bytes"] for other in lines if other["effort"] == line["effort"]) for line in lines}
    print(f"streams of all models and accelerators: {json.dumps(total)} bytes")


if __name__ == "__main__":
    main()
