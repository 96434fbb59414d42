"""Quantized float constants become integer constants."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any

from weightmill import _weightmill


@dataclasses.dataclass(frozen=True)
class FoldedTensor:
    """What became of one quantized weight.

    `outcome` is "folded", "zero_point" (an integer constant whose zero point went into the codes) or "left"; then
    `reason` says why. `max_error_steps` is the largest error in steps of the quantizer, and at most `bound_steps`
    (docs/folding.md).
    """

    name: str
    constant: str
    outcome: str
    reason: str
    shape: tuple[int, ...]
    type_before: str
    type_after: str
    bytes_before: int
    bytes_after: int
    max_error_steps: float
    bound_steps: float
    zero_point_dropped: bool
    zero_point_kept: bool


@dataclasses.dataclass(frozen=True)
class FoldReport:
    """What a fold did, tensor by tensor. `model` is the folded object where fold() was given one and no output."""

    format: str
    semantics: str
    bytes_before: int
    bytes_after: int
    tensors: list[FoldedTensor]
    notes: list[str]
    model: Any = dataclasses.field(default=None, repr=False)

    def count(self, outcome: str) -> int:
        """How many tensors had this outcome."""
        return sum(tensor.outcome == outcome for tensor in self.tensors)


def fold(
    model: Any,
    output: str | os.PathLike | None = None,
    *,
    semantics: str = "strict",
    strict: bool = False,
    fold_16_bit: bool = False,
    zero_points_of_chains: bool = False,
    compress_weights: bool = True,
    external_data: str = "auto",
    jobs: int = 0,
) -> FoldReport:
    """Makes integer constants of a model's fake-quantized float constants (docs/folding.md, docs/folding-onnx.md).

    `model`: path of an .onnx file or of an IR's .xml, an onnx.ModelProto, or an openvino.Model. `output`: where the
    result is written; None writes nothing, and for an object the folded one is `FoldReport.model`. The input is never
    changed.
    `strict` makes a weight that cannot be folded an error; else it stays as it was and is named in the report.
    `external_data` ("auto", "never", "always") places the tensors of ONNX models. `jobs` 0: all cores.
    Raises Error.
    """
    options = dict(
        semantics=semantics,
        fail_on_left=strict,
        fold_16_bit=fold_16_bit,
        zero_points_of_chains=zero_points_of_chains,
        compress_weights=compress_weights,
        external_data=external_data,
        jobs=jobs,
    )
    if isinstance(model, (str, os.PathLike)):
        return _report(_weightmill.fold(os.fspath(model), os.fspath(output or ""), **options))
    if hasattr(model, "SerializeToString"):
        return _fold_onnx_object(model, output, options)
    if hasattr(model, "get_ordered_ops"):
        return _fold_openvino_object(model, output, options)
    raise TypeError(f"fold() takes a path, an onnx.ModelProto or an openvino.Model, not {type(model).__name__}")


def _report(text: str, model: Any = None) -> FoldReport:
    record = json.loads(text)
    tensors = [FoldedTensor(**{**tensor, "shape": tuple(tensor["shape"])}) for tensor in record["tensors"]]
    fields = ("format", "semantics", "bytes_before", "bytes_after", "notes")
    return FoldReport(**{name: record[name] for name in fields}, tensors=tensors, model=model)


def _fold_onnx_object(model: Any, output: str | os.PathLike | None, options: dict[str, Any]) -> FoldReport:
    """Through files: the object itself stays as it is. Its tensors must be in it, not in external files."""
    with tempfile.TemporaryDirectory(prefix="weightmill-") as folder:
        source = pathlib.Path(folder, "model.onnx")
        source.write_bytes(model.SerializeToString())
        if output is not None:
            return _report(_weightmill.fold(str(source), os.fspath(output), **options))
        target = pathlib.Path(folder, "folded.onnx")
        text = _weightmill.fold(str(source), str(target), **{**options, "external_data": "never"})
        folded = type(model)()
        folded.ParseFromString(target.read_bytes())
        return _report(text, folded)


def _fold_openvino_object(model: Any, output: str | os.PathLike | None, options: dict[str, Any]) -> FoldReport:
    """Through files, as _fold_onnx_object(). The folded model holds its weights in memory."""
    import openvino

    with tempfile.TemporaryDirectory(prefix="weightmill-") as folder:
        source = pathlib.Path(folder, "model.xml")
        openvino.serialize(model, str(source))
        if output is not None:
            return _report(_weightmill.fold(str(source), os.fspath(output), **options))
        target = pathlib.Path(folder, "folded.xml")
        text = _weightmill.fold(str(source), str(target), **options)
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})  # the files are gone when the model is used
        return _report(text, core.read_model(str(target)))
