"""Vela, run as a program: compiles a network, or reads a compiled one and passes it through."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VELA = shutil.which("vela", path=os.path.dirname(sys.executable)) or shutil.which("vela")

SYSTEMS = {
    "ethos-u55": "Ethos_U55_High_End_Embedded",
    "ethos-u65": "Ethos_U65_High_End",
    "ethos-u85": "Ethos_U85_SYS_DRAM_Mid",
}


def run_vela(model: Path, folder: Path, *arguments: str) -> Path:
    """Runs Vela on `model` and returns what it wrote: the .tflite or .npz in `folder`."""
    command = [VELA, str(model), "--output-dir", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = [path for path in folder.iterdir() if path.suffix in (".tflite", ".npz")]
    return written


def compile_with_vela(model: Path, folder: Path, accelerator: str, optimise: str, memory: str, core: str, *more: str) -> Path:
    """Compiles `model`. `core`: "regor", Vela's default, or "legacy"."""
    legacy = ["--debug-force-legacy-core"] if core == "legacy" else []
    return run_vela(
        model, folder, "--accelerator-config", accelerator, "--optimise", optimise, "--config", "Arm/vela.ini",
        "--system-config", SYSTEMS[accelerator[:9]], "--memory-mode", memory, *legacy, *more,
    )
