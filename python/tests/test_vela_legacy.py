"""Vela's legacy core with our codec in the place of its own: the same files from real models, in less time."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("ethosu.vela", reason="ethos-u-vela is not installed")

HERE = pathlib.Path(__file__).resolve().parent
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR") or HERE.parents[2] / "shared" / "models")
CASES = [
    ("kws_dscnn_int8", "ethos-u55-128"),
    ("resnet8_int8", "ethos-u55-64"),
    ("ad01_int8", "ethos-u55-32"),
    ("person_detect_int8", "ethos-u55-256"),
    ("mobilenet_v1_0.25_128_uint8", "ethos-u65-256"),
    ("vww_96_int8", "ethos-u65-512"),
    ("openmv_fomo_face_int8", "ethos-u55-128"),
]
SECONDS = {"ours": 0.0, "vela": 0.0}  #: spent in reorder_encode, over all cases


def compile_with(codec: str, model: pathlib.Path, accelerator: str, folder: pathlib.Path) -> bytes:
    command = [
        sys.executable,
        str(HERE / "vela_with_codec.py"),
        codec,
        "--debug-force-legacy-core",
        "--accelerator-config",
        accelerator,
        "--output-dir",
        str(folder),
        str(model),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    n_calls, seconds = done.stderr.split()[-2:]
    assert int(n_calls) > 0
    SECONDS[codec] += float(seconds)
    (compiled,) = folder.glob("*_vela.tflite")
    return compiled.read_bytes()


@pytest.mark.parametrize(("name", "accelerator"), CASES)
def test_writes_the_same_file(name, accelerator, tmp_path):
    model = MODELS / f"{name}.tflite"
    if not model.exists():
        pytest.skip(f"{model.name} is not installed: set WEIGHTMILL_MODELS_DIR")
    ours = compile_with("ours", model, accelerator, tmp_path / "ours")
    assert ours == compile_with("vela", model, accelerator, tmp_path / "vela")


def test_spends_less_time():
    if not SECONDS["vela"]:
        pytest.skip("no model was compiled")
    print(f"reorder_encode: vela {SECONDS['vela']:.3f} s, ours {SECONDS['ours']:.3f} s")
    assert SECONDS["ours"] < SECONDS["vela"]
