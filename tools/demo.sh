#!/usr/bin/env bash
# The main job on a real model: packs okay_nabu, a wake-word network that ships in the wheel pymicro-wakeword, for Ethos-U55-128, and
# proves that what was written holds the model's weights.
set -euo pipefail
cd "$(dirname "$0")/.."
models=$(.venv/bin/python -c 'import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec("pymicro_wakeword").origin).parent / "models")')
model=$models/okay_nabu.tflite
out=out/demo

.venv/bin/weightmill pack "$model" --accelerator-config ethos-u55-128 -o "$out"
.venv/bin/weightmill verify "$out" "$model"
echo
echo "The weight streams are in $out/weights.safetensors, what is where in $out/manifest.json."
