"""What squeezing saves on real networks, as a Markdown table: each is compiled by the installed Vela for several NPUs and squeezed.

    .venv/bin/python tools/squeeze_table.py [--models DIR] [--effort NAME]

Bytes are of the whole compiled file; streams are its weights alone. Passes are iterations of the NPU's decoding loop over them. Every
result is held against the compiled file before it counts.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile

import weightmill

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from vela_tool import compile_with_vela

NETWORKS = {
    "ad01_int8": "MLPerf Tiny AD autoencoder",
    "vww_96_int8": "MLPerf Tiny VWW MobileNetV1 0.25",
    "person_detect_int8": "TFLM person detection",
    "mobilenet_v1_0.25_128_uint8": "MobileNetV1 0.25 128",
    "openmv_yolo_lc_192_int8": "YOLO LC 192",
    "mobilenet_v2_1.0_224_int8": "MobileNetV2 1.0 224",
}
# (accelerator, memory mode, Vela's core, how the table says so)
TARGETS = [("ethos-u55-128", "Shared_Sram", "regor", "U55-128"), ("ethos-u55-128", "Shared_Sram", "legacy", "U55-128, older core"),
           ("ethos-u85-256", "Dedicated_Sram", "regor", "U85-256")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("WEIGHTMILL_MODELS_DIR", ROOT.parent / "shared" / "models"))
    parser.add_argument("--effort", help="the encoder; squeeze's default where it is not named")
    arguments = parser.parse_args()
    options = {"effort": arguments.effort} if arguments.effort else {}
    rows = [row_of(arguments.models / f"{network}.tflite", name, target, options) for network, name in NETWORKS.items() for target in TARGETS]
    print("| network | compiled for | file bytes before | after | | stream bytes | passes |\n|---|---|--:|--:|--:|--:|--:|")
    print("\n".join(rows))


def row_of(model: pathlib.Path, name: str, target: tuple, options: dict) -> str:
    accelerator, memory, core, target_name = target
    with tempfile.TemporaryDirectory() as folder:
        small = pathlib.Path(folder) / "small.tflite"
        compiled = compile_with_vela(model, pathlib.Path(folder) / "vela", accelerator, "Performance", memory, core)
        report = weightmill.squeeze(compiled, small, jobs=0, **options)
        difference = weightmill.compare_compiled(compiled, small)
        if difference is not None:
            raise SystemExit(f"{model.name}, {accelerator}: {difference}")
    cells = [name, target_name, grouped(report["bytes_before"]), grouped(report["bytes_after"]), change(report, "bytes"),
             change(report, "stream_bytes"), change(report, "passes")]
    return f"| {' | '.join(cells)} |"


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def change(report: dict, what: str) -> str:
    percent = round(100 * (report[f"{what}_after"] / report[f"{what}_before"] - 1), 1)
    return f"{percent:+.1f} %".replace("-", "−") if percent else "0.0 %"


if __name__ == "__main__":
    main()
