"""Packing whole models and proving the result."""

from __future__ import annotations

import json
import os
from typing import Any

from weightmill import _weightmill


class Packed:
    """A model's weights as an Ethos-U fetches them.

    `manifest` says what is where (docs/packed-files.md); `blob()` gives the bytes; `report` is the table of sizes.
    """

    def __init__(self, core: _weightmill.Packed) -> None:
        self._core = core
        self.manifest: dict[str, Any] = json.loads(core.manifest_json())
        self.report: dict[str, Any] = json.loads(core.report_json())

    def blob(self, name: str) -> bytes:
        """Bytes of a blob that the manifest names: "layers.0.weights", "layers.0.scales". Raises Error."""
        return self._core.blob(name)

    def write(self, folder: str | os.PathLike[str], c_arrays: bool = False) -> None:
        """Writes weights.safetensors and manifest.json (and weights.c, weights.h) into `folder`. Raises Error."""
        self._core.write(os.fspath(folder), c_arrays)


def pack(
    model: str | os.PathLike[str],
    accelerator: str = "ethos-u55-256",
    *,
    output: str | os.PathLike[str] | None = None,
    effort: str = "best",
    forms: str = "proven",
    scaling: str = "vela5",
    format: str = "smallest",
    ofm_block_depth: int = 0,
    ofm_depth_step: int = 0,
    jobs: int = 1,
) -> Packed:
    """Packs all weights of an integer TFLite model.

    `accelerator`: Vela's name of the target. `output`: a folder to write to as well. `effort`: "fast",
    "best" or "max" for small streams, "reference" or "regor" for the bytes of Vela's two cores. `forms`: what the first
    three use of the stream format, "proven" or "all".
    `scaling`: "2020", "vela5" or "regor". `format`: which of U85's stream formats: "smallest", "standard", "sparse",
    "fast". Depths in output channels, 0: chosen. `jobs`: threads, 0: the machine's; the bytes do not depend on it.
    What cannot be packed is in `manifest["not_packed"]` with the reason. Raises Error.
    """
    packed = Packed(
        _weightmill.pack_model(
            os.fspath(model), accelerator, effort, forms, scaling, format, ofm_block_depth, ofm_depth_step, jobs
        )
    )
    if output is not None:
        packed.write(output)
    return packed


def verify(
    packed: Packed | str | os.PathLike[str], model: str | os.PathLike[str] | None = None, *, jobs: int = 1
) -> dict[str, Any]:
    """Decodes everything back and compares it with the model: weights, order, padding, zero points, scales, biases.

    `packed`: what pack() gave, or a packed folder, which may be checked without a model against its own manifest.
    Returns the report (schema "weightmill.verify/1"): `identical`, counts, and the first findings of each layer.
    A difference is a finding, not an exception. Raises Error if a file cannot be read.
    """
    if isinstance(packed, Packed):
        if model is None:
            raise TypeError("verify() of a Packed needs the model it came from")
        return json.loads(_weightmill.verify_result(packed._core, os.fspath(model), jobs))
    return json.loads(_weightmill.verify_folder(os.fspath(packed), None if model is None else os.fspath(model), jobs))
