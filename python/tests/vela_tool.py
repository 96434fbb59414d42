"""Vela, the program of Arm: compiles a network, or reads a compiled one and passes it through."""

import atexit
import importlib.util
import json
import os
import select
import subprocess
import sys
from pathlib import Path

VELA = sys.executable if importlib.util.find_spec("ethosu") else None

SYSTEMS = {
    "ethos-u55": "Ethos_U55_High_End_Embedded",
    "ethos-u65": "Ethos_U65_High_End",
    "ethos-u85": "Ethos_U85_SYS_DRAM_Mid",
}

# A system of our own, in which every accelerator has SRAM and DRAM: Vela's own one for U55 has flash in the place of DRAM and
# therefore no memory mode Dedicated_Sram. The speeds only steer Vela's scheduling.
DRAM_SYSTEM = """\
[System_Config.Sram_And_Dram]
core_clock=500e6
axi0_port=Sram
axi1_port=Dram
Sram_clock_scale=1.0
Sram_burst_length=32
Sram_read_latency=32
Sram_write_latency=32
Dram_clock_scale=0.125
Dram_burst_length=128
Dram_read_latency=500
Dram_write_latency=250

[Memory_Mode.Dedicated_Sram]
const_mem_area=Axi1
arena_mem_area=Axi1
cache_mem_area=Axi0
arena_cache_size=262144
"""


class _Worker:
    """A process that runs Vela again and again."""

    _SECONDS = 300  # for one run

    def __init__(self) -> None:
        answers, their_end = os.pipe()
        command = [VELA, str(Path(__file__).with_name("vela_worker.py")), str(their_end)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, pass_fds=[their_end])
        os.close(their_end)
        self._answers = os.fdopen(answers)
        atexit.register(self.stop)

    def run(self, arguments: list[str]) -> tuple[int, str]:
        """Vela's exit status and what it printed."""
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        readable, _, _ = select.select([self._answers], [], [], self._SECONDS)
        line = self._answers.readline() if readable else ""
        if not line:
            self.stop()
            return -1, f"Vela {'ended' if readable else 'hung'} with {arguments}"
        answer = json.loads(line)
        return answer["status"], answer["output"]

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._process.kill()
        self._process.wait()

    def is_running(self) -> bool:
        return self._process.poll() is None


_worker: _Worker | None = None


def _run_once(arguments: list[str]) -> tuple[int, str]:
    global _worker
    if _worker is None or not _worker.is_running():
        _worker = _Worker()
    return _worker.run(arguments)


def _run(arguments: list[str]) -> tuple[int, str]:
    """Runs leave things behind that later ones may stumble over, most of all of the older core: a failure counts in a fresh process."""
    status, output = _run_once(arguments)
    if status != 0:
        stop_vela()
        status, output = _run_once(arguments)
    return status, output


def stop_vela() -> None:
    """The next run starts a fresh one."""
    if _worker is not None:
        _worker.stop()


def run_vela(model: Path, folder: Path, *arguments: str) -> Path:
    """Runs Vela on `model` and returns what it wrote: the .tflite or .npz in `folder`."""
    status, output = _run([str(model), "--output-dir", str(folder), *arguments])
    assert status == 0, output
    (written,) = [path for path in folder.iterdir() if path.suffix in (".tflite", ".npz")]
    return written


def memory_arguments(accelerator: str, memory: str, folder: Path) -> list[str]:
    """Vela's system for the accelerator, or ours where that one has no such memory mode."""
    system = SYSTEMS[accelerator[:9]]
    if memory != "Dedicated_Sram" or not accelerator.startswith("ethos-u55"):
        return ["--config", "Arm/vela.ini", "--system-config", system, "--memory-mode", memory]
    folder.mkdir(parents=True, exist_ok=True)
    ini = folder / "dram.ini"
    ini.write_text(DRAM_SYSTEM)
    return ["--config", str(ini), "--system-config", "Sram_And_Dram", "--memory-mode", memory]


def compile_with_vela(model: Path, folder: Path, accelerator: str, optimise: str, memory: str, core: str, *more: str) -> Path:
    """Compiles `model`. `core`: "regor", Vela's default, or "legacy"."""
    legacy = ["--debug-force-legacy-core"] if core == "legacy" else []
    return run_vela(
        model, folder, "--accelerator-config", accelerator, "--optimise", optimise,
        *memory_arguments(accelerator, memory, folder), *legacy, *more,
    )
