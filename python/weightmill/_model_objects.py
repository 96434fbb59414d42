"""Verbs that take model files, for models that are objects in memory."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Callable

# What a verb does with files: run(input path, output path or "") -> the report as JSON.
Run = Callable[[str, str], str]


def run_on_model(verb: str, model: Any, output: str | os.PathLike | None, run: Run, in_one_file: Run) -> tuple[str, Any]:
    """The report of a verb, and the resulting object where `model` is one and there is no output.

    `model`: a path, an onnx.ModelProto or an openvino.Model; it is never changed. `in_one_file` is `run` for an ONNX
    result that must have its tensors inside. Raises TypeError for anything else.
    """
    if isinstance(model, (str, os.PathLike)):
        return run(os.fspath(model), os.fspath(output or "")), None
    if hasattr(model, "SerializeToString"):
        return _run_on_onnx(model, output, run, in_one_file)
    if hasattr(model, "get_ordered_ops"):
        return _run_on_openvino(model, output, run)
    raise TypeError(f"{verb}() takes a path, an onnx.ModelProto or an openvino.Model, not {type(model).__name__}")


def _run_on_onnx(model: Any, output: str | os.PathLike | None, run: Run, in_one_file: Run) -> tuple[str, Any]:
    """Through files: the object itself stays as it is. Its tensors must be in it, not in external files."""
    with tempfile.TemporaryDirectory(prefix="weightmill-") as folder:
        source = pathlib.Path(folder, "model.onnx")
        source.write_bytes(model.SerializeToString())
        if output is not None:
            return run(str(source), os.fspath(output)), None
        target = pathlib.Path(folder, "result.onnx")
        text = in_one_file(str(source), str(target))
        if not target.exists():  # the verb has found a reason to write nothing
            return text, None
        result = type(model)()
        result.ParseFromString(target.read_bytes())
        return text, result


def _run_on_openvino(model: Any, output: str | os.PathLike | None, run: Run) -> tuple[str, Any]:
    """Through files, as _run_on_onnx(). The resulting model holds its weights in memory."""
    import openvino

    with tempfile.TemporaryDirectory(prefix="weightmill-") as folder:
        source = pathlib.Path(folder, "model.xml")
        openvino.serialize(model, str(source))
        if output is not None:
            return run(str(source), os.fspath(output)), None
        target = pathlib.Path(folder, "result.xml")
        text = run(str(source), str(target))
        if not target.exists():  # the verb has found a reason to write nothing
            return text, None
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})  # the files are gone when the model is used
        return text, core.read_model(str(target))
