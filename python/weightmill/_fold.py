"""Quantized float constants become integer constants."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from weightmill import _weightmill
from weightmill._model_objects import run_on_model


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
        jobs=jobs,
    )

    def run(source: str, target: str, placement: str = external_data) -> str:
        return _weightmill.fold(source, target, external_data=placement, **options)

    return _report(*run_on_model("fold", model, output, run, lambda source, target: run(source, target, "never")))


def _report(text: str, model: Any) -> FoldReport:
    record = json.loads(text)
    tensors = [FoldedTensor(**{**tensor, "shape": tuple(tensor["shape"])}) for tensor in record["tensors"]]
    fields = ("format", "semantics", "bytes_before", "bytes_after", "notes")
    return FoldReport(**{name: record[name] for name in fields}, tensors=tensors, model=model)
