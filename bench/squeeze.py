"""The whole of `weightmill squeeze` with every encoder there is: its time on a model of megabytes, and what it saves.

    python bench/squeeze.py [COMPILED.tflite ...]

Without arguments: all of models/compiled in ../shared (or WEIGHTMILL_MODELS_DIR), which also go into the ledger `sizes.csv`, and MobileNetV2
compiled on the spot with the installed Vela for the time. Bytes are of whole files and of streams, passes are those of the NPU's decoding loop.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import ledger
import weightmill

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "python" / "tests"))
from vela_tool import VELA, compile_with_vela

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR", REPOSITORY.parent / "shared" / "models"))
TARGET_SECONDS = 0.5  # for a model of 4 MB
TURNS = 5


def efforts() -> list[str]:
    """The encoders' names, as the program lists them."""
    text = subprocess.run([PROGRAM, "squeeze", "--help"], check=True, capture_output=True, text=True).stdout
    return re.search(r"--effort TEXT:\{([^}]*)\}", text).group(1).split(",")


def main() -> None:
    named = [pathlib.Path(name) for name in sys.argv[1:]]
    files = named or sorted((MODELS / "compiled").glob("*.tflite"))
    names = efforts()
    with tempfile.TemporaryDirectory() as folder:
        for model in large_models(files, pathlib.Path(folder)):
            report_time(model, names, pathlib.Path(folder))
    reports = {path: {effort: weightmill.squeeze(path, effort=effort) for effort in names} for path in files}
    if reports:
        print_savings(reports, names)
    if not named:
        ledger.update([line for path, by_effort in reports.items() for line in lines_of(path, by_effort)])


def large_models(files: list[pathlib.Path], folder: pathlib.Path) -> list[pathlib.Path]:
    """The largest file, and a larger one that Vela makes."""
    source = MODELS / "mobilenet_v2_1.0_224_int8.tflite"
    made = [compile_with_vela(source, folder / "vela", "ethos-u55-128", "Size", "Shared_Sram", "regor")] if VELA and source.exists() else []
    return made + sorted(files, key=lambda path: path.stat().st_size)[-1:]


def squeeze_seconds(model: pathlib.Path, effort: str, jobs: int, folder: pathlib.Path) -> float:
    begin = time.perf_counter()
    subprocess.run([PROGRAM, "squeeze", model, "-o", folder / "out.tflite", "--effort", effort, "--jobs", str(jobs), "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def report_time(model: pathlib.Path, names: list[str], folder: pathlib.Path) -> None:
    """Wall time of the program from start to end, the file written: the encoders take turns."""
    seconds = {(effort, jobs): [] for effort in names for jobs in (1, 2)}
    for _ in range(TURNS):
        for key, times in seconds.items():
            times.append(squeeze_seconds(model, *key, folder))
    print(f"{model.name}, {model.stat().st_size / 1e6:.2f} MB: seconds, least (median); wanted less than {TARGET_SECONDS} for 4 MB")
    for effort in names:
        one, two = seconds[effort, 1], seconds[effort, 2]
        print(f"  {effort:10} one thread {min(one):.3f} ({statistics.median(one):.3f})   two threads {min(two):.3f} ({statistics.median(two):.3f})")


def print_savings(reports: dict, names: list[str]) -> None:
    """Each file's bytes and streams' passes, after / before."""
    width = max(len(path.name) for path in reports)
    print(f"{'':{width}} {'bytes':>10}" + "".join(f" {effort:>10} passes" for effort in names))
    for path, by_effort in reports.items():
        print(f"{path.name:{width}} {by_effort[names[0]]['bytes_before']:>10}" + "".join(f" {ratios(by_effort[e])}" for e in names))
    sums = {effort: sum_of([by_effort[effort] for by_effort in reports.values()]) for effort in names}
    print(f"{'all':{width}} {sums[names[0]]['bytes_before']:>10}" + "".join(f" {ratios(sums[effort])}" for effort in names))
    for effort in names:
        print(f"{effort:10} streams {sums[effort]['stream_bytes_before']} -> {sums[effort]['stream_bytes_after']} bytes, "
              f"{sums[effort]['passes_before']} -> {sums[effort]['passes_after']} passes; {worst(reports, effort)}")


KEYS = ("bytes_before", "bytes_after", "stream_bytes_before", "stream_bytes_after", "passes_before", "passes_after")


def sum_of(reports: list[dict]) -> dict:
    return {key: sum(report[key] for report in reports) for key in KEYS}


def ratios(report: dict) -> str:
    return f"{report['bytes_after'] / report['bytes_before']:10.4f} {report['passes_after'] / max(report['passes_before'], 1):.4f}"


def worst(reports: dict, effort: str) -> str:
    """The stream that grew most in passes, against the smaller one of Vela's two encoders; of equal sizes, that with fewer passes."""
    quotients = []
    for by_effort in reports.values():
        columns = [by_effort[name]["stream_changes"] for name in (effort, "reference", "regor")]
        for ours, *vela in zip(*columns, strict=True):
            better = min((change["bytes_after"], change["passes_after"]) for change in vela)[1]
            quotients += [ours["passes_after"] / better] if better else []
    return f"worst stream {max(quotients, default=1):.3f} x the passes of the smaller one of reference and regor"


def lines_of(path: pathlib.Path, by_effort: dict) -> list[dict]:
    """The ledger's lines of one file: as it was, and with each encoder."""
    group = weightmill.inspect_compiled(path)["read_only_tensors"][0]
    accelerator = f"ethos-{group['product'].lower()}-{1 << (int(group['configuration'], 16) & 15)}"
    any_report = next(iter(by_effort.values()))
    results = {"as compiled": tuple(any_report[f"{key}_before"] for key in ("stream_bytes", "passes", "bytes"))}
    results |= {effort: tuple(report[f"{key}_after"] for key in ("stream_bytes", "passes", "bytes")) for effort, report in by_effort.items()}
    return [{"model": f"compiled/{path.name}", "accelerator": accelerator, "effort": effort, "weights": any_report["weights"],
             "stream_bytes": stream_bytes, "record_bytes": group["coverage"]["scales"],
             "bits_per_weight": f"{8 * stream_bytes / any_report['weights']:.4f}", "passes": passes, "file_bytes": file_bytes}
            for effort, (stream_bytes, passes, file_bytes) in results.items()]


if __name__ == "__main__":
    main()
