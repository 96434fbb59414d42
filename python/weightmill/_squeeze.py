"""Models that are already compiled for Ethos-U: smaller weight streams, the same results."""

from __future__ import annotations

import json
import os
from typing import Any

from weightmill import _weightmill

_BYTES = (bytes, bytearray, memoryview)


def squeeze(
    source: str | os.PathLike[str] | bytes,
    target: str | os.PathLike[str] | bytes | None = None,
    *,
    effort: str = "best",
    forms: str = "proven",
    keep_dead: bool = False,
    jobs: int = 1,
) -> Any:
    """Makes the weight streams of a compiled model smaller; weights, scales and results stay the same.

    squeeze("model_vela.tflite", "small.tflite") squeezes a file (Vela's .tflite or raw .npz, ExecuTorch's blob) and returns
    the report as a dict (schema "weightmill.squeeze/1"). Both paths may be the same; without a target nothing is written.
    squeeze(payload, read_only), both bytes, takes a driver payload (COP1 or COP2) and its read-only data without a file
    around them, and returns the new pair.
    squeeze(data), one bytes object, takes the bytes of such a file and returns the new bytes.

    What would not get smaller comes back as it was. `effort`: "fast", "best" or "max"; "reference" or "regor" for the
    bytes of Vela's two cores, "vela" for the smaller of both. `forms`: "proven" for what those encoders use too, "all" for
    all that the format allows. `keep_dead`: leave zero bytes in that nothing reads. `jobs`: threads, 0: the machine's;
    the bytes do not depend on it. Raises Error for what is damaged or not understood, and then writes nothing.
    """
    if isinstance(source, _BYTES) and target is None:
        return _weightmill.squeeze_file_bytes(source, effort, forms, keep_dead, jobs)[0]
    if isinstance(source, _BYTES) and isinstance(target, _BYTES):
        return _weightmill.squeeze_blobs(source, target, effort, forms, keep_dead, jobs)
    if isinstance(source, _BYTES) or isinstance(target, _BYTES):
        raise TypeError("squeeze() takes two paths, or bytes and bytes")
    written = "" if target is None else os.fspath(target)
    return json.loads(_weightmill.squeeze_path(os.fspath(source), written, effort, forms, keep_dead, jobs))


def inspect_compiled(path: str | os.PathLike[str], *, jobs: int = 1) -> dict[str, Any]:
    """The weight streams of a compiled file and what else its read-only tensors hold (schema "weightmill.inspect-compiled/1").

    Raises Error.
    """
    return json.loads(_weightmill.inspect_compiled_path(os.fspath(path), jobs))


def compare_compiled(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> str | None:
    """None if two compiled files make the NPU do the same with the same weights, scales, constants and tables; else a
    sentence about the first difference. Raises Error."""
    return _weightmill.compare_compiled_paths(os.fspath(first), os.fspath(second))
