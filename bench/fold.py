"""Folding of OpenVINO IR: Weightmill against the installed OpenVINO and a plain copy of the bytes read and written.

    python bench/fold.py [--gib 0.5] [--repeat 3] [--folder DIR] [--full]

Each row folds the same file in the same minute, turn by turn; seconds are the fastest of the repeats, memory is the
peak of the process.
`--full`: the sizes of docs/folding.md §9 (1.5 GiB, some minutes). Files are made in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from big_ir import write_big_ir

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
ROWS = COLUMNS = 4096

OPENVINO = """
import sys, time, openvino
from openvino._offline_transformations import compress_quantize_weights_transformation as fold
start = time.perf_counter()
model = openvino.Core().read_model(sys.argv[1])
fold(model)
openvino.serialize(model, sys.argv[2])
print(time.perf_counter() - start)
"""

COPY = """
import os, sys, time
block = 1 << 20
start = time.perf_counter()
with open(sys.argv[1], "rb", buffering=0) as source, open(sys.argv[2], "wb", buffering=0) as target:
    buffer = bytearray(block)
    left = int(sys.argv[3])
    while n := source.readinto(buffer):
        if left > 0:
            target.write(memoryview(buffer)[:min(n, left)])
            left -= n
print(time.perf_counter() - start)
"""


def measured(command: list[str], says_time: bool) -> tuple[float, float]:
    """Seconds (the program's own where it prints them) and MiB at the peak."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with status {process.returncode}")
    return float(text.split()[-1]) if says_time else seconds, usage.ru_maxrss / 1024


def best(results: list[tuple[float, float]]) -> tuple[float, float]:
    return min(seconds for seconds, _ in results), max(memory for _, memory in results)


def bench(folder: pathlib.Path, title: str, layers: int, repeat: int, with_openvino: int, **weights) -> None:
    source, target = folder / "in.xml", folder / "out.xml"
    write_big_ir(source, layers, ROWS, COLUMNS, **weights)
    n_bytes = source.with_suffix(".bin").stat().st_size
    ours = {
        jobs: [str(PROGRAM), "fold", str(source), "-o", str(target), "--jobs", str(jobs), "--quiet"] for jobs in (1, 2)
    }
    theirs = [sys.executable, "-c", OPENVINO, str(source), str(target)]
    measured(ours[2], says_time=False)  # brings the input into the page cache, and shows the output's size
    out_bytes = target.with_suffix(".bin").stat().st_size
    copy = [sys.executable, "-c", COPY, str(source.with_suffix(".bin")), str(folder / "copy.bin"), str(out_bytes)]
    runs: dict[str, list[tuple[float, float]]] = {"copy": [], "1": [], "2": [], "openvino": []}
    for turn in range(repeat):
        for name, command, says_time in (("copy", copy, True), ("1", ours[1], False), ("2", ours[2], False)):
            remove_outputs(folder)
            runs[name].append(measured(command, says_time))
        if turn < with_openvino:
            remove_outputs(folder)
            runs["openvino"].append(measured(theirs, says_time=True))
    (copy_s, _), (one_s, one_mib), (two_s, two_mib) = best(runs["copy"]), best(runs["1"]), best(runs["2"])
    sizes = f"{n_bytes / 2**20:.0f} -> {out_bytes / 2**20:.0f} MiB"
    cells = [title, sizes, f"{copy_s:.2f}", f"{one_s:.2f}", f"{two_s:.2f}", f"{max(one_mib, two_mib):.0f}"]
    if runs["openvino"]:
        theirs_s, theirs_mib = best(runs["openvino"])
        cells += [f"{theirs_s:.2f}", f"{theirs_mib:.0f}", f"{theirs_s / one_s:.1f}x / {theirs_s / two_s:.1f}x"]
    else:
        cells += ["-"] * 3
    cells.append(f"{one_s / copy_s:.2f}")
    row = "| " + " | ".join(cells) + " |"
    print(row, flush=True)
    for path in folder.iterdir():
        path.unlink()


def remove_outputs(folder: pathlib.Path) -> None:
    for name in ("out.xml", "out.bin", "copy.bin"):
        (folder / name).unlink(missing_ok=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gib", type=float, default=0.5, help="of float32 weights in the first row")
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument(
        "--folder", type=pathlib.Path, help="where the files are made; default: the system's temporary folder"
    )
    arguments.add_argument("--full", action="store_true", help="1.5 GiB and OpenVINO's float16 fold (two minutes)")
    options = arguments.parse_args()
    layers = 24 if options.full else max(1, round(options.gib * 16))
    print(
        "| constants | .bin | copy s | 1 thread s | 2 threads s | peak MiB | OpenVINO s | MiB | faster | 1 thread / copy |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        bench(folder, "f32, 255 levels", layers, options.repeat, options.repeat)
        bench(folder, "f32, 15 levels (int4)", max(1, layers // 2), options.repeat, 2, levels=15)
        bench(
            folder, "f32, 256 levels, zero points", max(1, layers // 2), options.repeat, 2, levels=256, symmetric=False
        )
        bench(folder, "f16, 255 levels", layers if options.full else 1, options.repeat, 1, dtype="f16")
        bench(folder, "4 GiB of holes, f32", 64, 1, 0, sparse=True)


if __name__ == "__main__":
    main()
