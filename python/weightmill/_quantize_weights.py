"""Float weights become integers; activations stay in floating point."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from typing import Any

from weightmill import _weightmill
from weightmill._model_objects import run_on_model


@dataclasses.dataclass(frozen=True)
class QuantizedWeight:
    """What became of the float weight of one operator.

    `outcome` is "quantized" or "left"; then `reason` says why, and `excluded_by` is the pattern if one excluded it.
    `via` names the nodes between constant and operator that were folded into the codes. `note` says why `granularity` or
    the type is not what was asked for. `sqnr_db` is the signal-to-quantization-noise ratio of the weight, infinite where
    nothing is lost, `worst_sqnr_db` that of the channel that loses most. Channels in `zero_channels` are all 0, those in
    `negligible_channels` too small for a float32 scale: their codes are 0; blocks are not named. Bytes of a constant that several operators
    read count in the first one.
    """

    node: str
    op: str
    weight: str
    outcome: str
    reason: str
    excluded_by: str
    via: list[str]
    shape: tuple[int, ...]
    type_before: str
    type_after: str
    bytes_before: int
    bytes_after: int
    granularity: str
    n_scales: int
    note: str
    sqnr_db: float
    worst_sqnr_db: float
    max_error_steps: float
    zero_channels: list[int]
    negligible_channels: list[int]


@dataclasses.dataclass(frozen=True)
class QuantizeReport:
    """What was quantized, weight by weight. `output` is empty where nothing was written; `below_min_sqnr` weights have
    fewer decibels than was asked for. `model` is the quantized object where quantize() was given one and no output."""

    format: str
    output: str
    bytes_before: int
    bytes_after: int
    below_min_sqnr: int
    folded_chains: int
    weights: list[QuantizedWeight]
    notes: list[str]
    model: Any = dataclasses.field(default=None, repr=False)

    def count(self, outcome: str) -> int:
        """How many weights had this outcome."""
        return sum(weight.outcome == outcome for weight in self.weights)


def quantize(
    model: Any,
    output: str | os.PathLike | None = None,
    *,
    weights_only: bool,
    weight_type: str = "int8",
    scale_method: str = "auto",
    per_channel: bool = True,
    block_size: int = 0,
    op_types: Sequence[str] = (),
    exclude: Sequence[str] = (),
    min_sqnr_db: float = 0.0,
    strict: bool = False,
    external_data: str = "auto",
    jobs: int = 0,
) -> QuantizeReport:
    """Makes integers of a model's float weights (docs/weight-only.md). `weights_only` must be True: activations are not
    quantized yet.

    `model`: path of an .onnx file or of an OpenVINO IR's .xml, an onnx.ModelProto or an openvino.Model. `output`: where
    the result is written; None writes nothing, and for an object the quantized one is `QuantizeReport.model`. The input
    is never changed.
    `weight_type`: "int8" or "int4" (symmetric), "uint8" or "uint4" (with zero points). `scale_method`: "minmax" takes
    scales from the largest weight, "mse" those with the least squared error among a few; "auto" is mse for 4 bits.
    `block_size`: that many inputs of
    an output share a scale in matrices, a power of two of at least 16; 0: all of a channel. `op_types`: operators to
    quantize; empty: the usual ones. `exclude`: names of operators, or patterns with * and ?. With a weight below
    `min_sqnr_db` nothing is written. `strict` makes a weight that cannot be quantized an error. `jobs` 0: all cores.
    Raises Error.
    """
    if not weights_only:
        raise ValueError("quantize() needs weights_only=True: activations are not quantized yet")
    options = dict(
        weight_type=weight_type,
        scale_method=scale_method,
        per_channel=per_channel,
        block_size=block_size,
        op_types=list(op_types),
        exclude=list(exclude),
        min_sqnr_db=min_sqnr_db,
        fail_on_left=strict,
        jobs=jobs,
    )

    def run(source: str, target: str, placement: str = external_data) -> str:
        return _weightmill.quantize_weights(source, target, external_data=placement, **options)

    return _report(*run_on_model("quantize", model, output, run, lambda source, target: run(source, target, "never")))


def _report(text: str, model: Any) -> QuantizeReport:
    record = json.loads(text)
    fields = ("format", "output", "bytes_before", "bytes_after", "below_min_sqnr", "folded_chains", "notes")
    weights = [_weight(weight) for weight in record["weights"]]
    return QuantizeReport(**{name: record[name] for name in fields}, weights=weights, model=model)


def _weight(record: dict[str, Any]) -> QuantizedWeight:
    decibels = {key: math.inf if record[key] is None else record[key] for key in ("sqnr_db", "worst_sqnr_db")}
    return QuantizedWeight(**{**record, **decibels, "shape": tuple(record["shape"])})
