"""Folding of OpenVINO IR: Weightmill against the installed OpenVINO and a plain copy of the bytes read and written.

    python bench/fold.py [--gib 1.5] [--repeat 3] [--folder DIR] [--full]

Each row folds the same file, turn by turn in the same minutes. Seconds are the fastest of the repeats; "CPU" is what
the processor worked for the fold on one thread, which other programs on the machine disturb less. Memory is the peak of
the process. `--full`: OpenVINO's float16 fold too at full size (two minutes each). Files are made in a temporary
folder, up to 2.5 GiB at a time, and removed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from big_ir import write_big_ir

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
ROWS = COLUMNS = 4096

OPENVINO = """
import sys, time, openvino
from openvino._offline_transformations import compress_quantize_weights_transformation as fold
start, cpu = time.perf_counter(), time.process_time()
model = openvino.Core().read_model(sys.argv[1])
fold(model)
openvino.serialize(model, sys.argv[2])
print(time.perf_counter() - start, time.process_time() - cpu)
"""

COPY = """
import sys, time
start, cpu = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb", buffering=0) as source, open(sys.argv[2], "wb", buffering=0) as target:
    buffer = bytearray(1 << 20)
    left = int(sys.argv[3])
    while n := source.readinto(buffer):
        if left > 0:
            left -= target.write(memoryview(buffer)[:min(n, left)])
print(time.perf_counter() - start, time.process_time() - cpu)
"""


class Run(NamedTuple):
    seconds: float
    cpu: float
    mib: float


def measured(command: list[str]) -> Run:
    """A script says its own times, without imports; of the program everything counts."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with status {process.returncode}")
    if command[0] == sys.executable:
        seconds, cpu = map(float, text.split())
    return Run(seconds, cpu, usage.ru_maxrss / 1024)


def best(runs: list[Run]) -> Run:
    return Run(min(run.seconds for run in runs), min(run.cpu for run in runs), max(run.mib for run in runs))


def make_model(path: pathlib.Path, layers: int, **weights) -> None:
    """In a process of its own: a program's peak memory begins with that of the process which starts it."""
    process = multiprocessing.get_context("spawn").Process(
        target=write_big_ir, args=(path, layers, ROWS, COLUMNS), kwargs=weights
    )
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the model could not be made")


def remove_outputs(folder: pathlib.Path) -> None:
    for name in ("out.xml", "out.bin", "copy.bin"):
        (folder / name).unlink(missing_ok=True)


def bench(folder, title: str, layers: int, repeat: int, with_openvino: int, semantics="strict", **weights) -> None:
    source, target = folder / "in.xml", folder / "out.xml"
    make_model(source, layers, **weights)
    n_bytes = source.with_suffix(".bin").stat().st_size
    fold = [str(PROGRAM), "fold", str(source), "-o", str(target), "--quiet", "--semantics", semantics, "--jobs"]
    measured([*fold, "2"])  # brings the input into the page cache, and shows the output's size
    out_bytes = target.with_suffix(".bin").stat().st_size
    commands = {
        "copy": [sys.executable, "-c", COPY, str(source.with_suffix(".bin")), str(folder / "copy.bin"), str(out_bytes)],
        "one": [*fold, "1"],
        "two": [*fold, "2"],
        "openvino": [sys.executable, "-c", OPENVINO, str(source), str(target)],
    }
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(repeat):
        for name, command in commands.items():
            if name == "openvino" and turn >= with_openvino:
                continue
            remove_outputs(folder)
            runs[name].append(measured(command))
    copy, one, two = (best(runs[name]) for name in ("copy", "one", "two"))
    sizes = f"{n_bytes / 2**20:.0f} -> {out_bytes / 2**20:.0f} MiB"
    cells = [title, sizes, f"{copy.seconds:.2f}", f"{one.seconds:.2f}", f"{two.seconds:.2f}"]
    cells += [f"{one.cpu:.2f}", f"{max(one.mib, two.mib):.0f}"]
    if runs["openvino"]:
        theirs = best(runs["openvino"])
        cells += [f"{theirs.seconds:.2f}", f"{theirs.cpu:.2f}", f"{theirs.mib:.0f}"]
        ratios = [theirs.seconds / one.seconds, theirs.seconds / two.seconds, theirs.cpu / one.cpu]
        cells.append(" / ".join(f"{ratio:.1f}" for ratio in ratios))
    else:
        cells += ["-"] * 4
    cells.append(f"{one.seconds / copy.seconds:.2f} / {one.cpu / copy.cpu:.2f}")
    print("| " + " | ".join(cells) + " |", flush=True)
    for path in folder.iterdir():
        path.unlink()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gib", type=float, default=1.5, help="of float32 weights in the first row")
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument(
        "--folder", type=pathlib.Path, help="where the files are made; default: the system's temporary folder"
    )
    arguments.add_argument("--full", action="store_true", help="OpenVINO's float16 fold at full size")
    options = arguments.parse_args()
    layers = max(2, round(options.gib * 16))
    half, repeat = layers // 2, options.repeat
    print(
        "| constants | .bin | copy s | 1 thread s | 2 threads s | CPU s | peak MiB "
        "| OpenVINO s | CPU s | MiB | faster: 1 thread / 2 / CPU | 1 thread to copy: s / CPU |"
    )
    print("|" + "---|" * 12)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        bench(folder, "f32, 255 levels", layers, repeat, repeat)
        bench(folder, "f32, 15 levels (int4)", half, repeat, 2, levels=15)
        bench(folder, "f32, 256 levels, zero points", half, repeat, 2, levels=256, symmetric=False)
        f16 = layers if options.full else min(2, layers)
        bench(folder, "f16, 255 levels", f16, repeat, 1, dtype="f16")
        bench(folder, "f16, OpenVINO's codes", f16, repeat, 1, semantics="openvino", dtype="f16")
        bench(folder, "4 GiB of holes, f32", 64, 1, 0, sparse=True)


if __name__ == "__main__":
    main()
