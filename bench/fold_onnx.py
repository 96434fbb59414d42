"""Time and peak memory of the ONNX fold, beside a plain copy of the bytes and ONNX Runtime's own fold, in the same run.

python bench/fold_onnx.py [FOLDER]     needs 4 GiB of disk there; sparse files
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "python" / "tests"))
from big_onnx import big_model, measured_fold  # noqa: E402

# ONNX Runtime folds QuantizeLinear over constants when it opens a model at its basic level, and can save the result.
_ONNX_RUNTIME = """
import json, sys, time, onnxruntime
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = sys.argv[2]
options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "ort.data")
options.log_severity_level = 4
wall, cpu = time.perf_counter(), time.process_time()
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
# VmHWM is this program's own: ru_maxrss begins with the peak of the process it was forked from.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                  "peak_rss": peak * 1024}))
"""


def onnx_runtime_fold(source: pathlib.Path, target: pathlib.Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", _ONNX_RUNTIME, source, target], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def plain_copy(source: pathlib.Path, target: pathlib.Path, n_written: int) -> dict:
    """Reads all of `source` and writes `n_written` bytes to the disk: what no fold can do without."""
    block = bytearray(1 << 20)
    wall, cpu = time.perf_counter(), time.process_time()
    with open(source, "rb", buffering=0) as file, open(target, "wb", buffering=0) as out:
        while file.readinto(block):
            pass
        for _ in range(0, n_written, len(block)):
            out.write(block)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak_rss": 0}


def show(name: str, runs: list[dict]) -> None:
    wall, cpu, peak = ([run[key] for run in runs] for key in ("wall", "cpu", "peak_rss"))
    times = f"{min(wall):8.2f} {statistics.median(wall):8.2f} {statistics.median(cpu):8.2f}"
    print(f"{name:<34} {times} {max(peak) / 2**20:9.0f}")


def compare(title: str, measures: dict, turns: int) -> None:
    """Takes the measures in turn, so that all of them see the same machine."""
    print(f"\n{title}\n{'':<34} {'wall min':>8} {'median':>8} {'CPU s':>8} {'peak MiB':>9}")
    runs = {name: [] for name in measures}
    for _ in range(turns):
        for name, measure in measures.items():
            runs[name].append(measure())
    for name in measures:
        show(name, runs[name])


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        folder = pathlib.Path(name)
        source = big_model(folder, 10, 8192, 8192)
        n_read = (folder / "big.bin").stat().st_size
        compare(
            f"{n_read / 2**30:.1f} GiB of float32 in external data -> int8, per channel",
            {
                "fold, 1 thread": lambda: measured_fold(source, folder / "out.onnx", 1),
                "fold, 2 threads": lambda: measured_fold(source, folder / "out.onnx", 2),
                "plain copy of the bytes": lambda: plain_copy(folder / "big.bin", folder / "copy", n_read // 4),
            },
            turns=3,
        )
        source = big_model(folder, 2, 8192, 8192)
        compare(
            "0.5 GiB, the same",
            {
                "fold, 1 thread": lambda: measured_fold(source, folder / "out.onnx", 1),
                "ONNX Runtime opens and saves": lambda: onnx_runtime_fold(source, folder / "ort.onnx"),
            },
            turns=3,
        )


if __name__ == "__main__":
    main()
