"""Integer-only execution of weighted layers with a named rounding rule: numpy codes in, numpy codes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from weightmill import _weightmill
from weightmill._error import Error


@dataclasses.dataclass
class Layer:
    """A convolution, transposed convolution or dense layer in integers.

    weights: int8, uint8 or int16, [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]; output channel c = g * O + o. Dense:
        [1, 1, I, 1, O]; depthwise: [kh, kw, 1, C / multiplier, multiplier]; transposed: the kernel is not flipped.
    bias: integers [G * O], or None. It is added to sum((q_in - input_zero_point) * (q_weight - weight_zero_point));
        with bias_folded to sum(q_in * q_weight), the zero-point terms being in it already.
    stride, dilation: one for all spatial axes or one for each. padding: one for all sides, or (before, after) for each
        axis; negative crops. Padding holds real 0.
    rounding: one of weightmill.rounding_rules(), see docs/rounding.md.
    The gains come from input_scale, weight_scale (one or one for each output channel) and output_scale, in real units
        per step; or, without scales, from multiplier and shift (gain = multiplier * 2**-shift) or from gain, one for
        each output channel.
    activation: "none", "relu", "relu6" or "relu_n1_to_1"; the last two need output_scale. activation_rounding: how
        their limits become codes: "half_away" (LiteRT's kernels) or "half_even" (XNNPACK); None: by the rule.
    accumulator_bits: 32, or 64 where the engine keeps the whole sum. None: 64 for int16 input, else 32.
    intrinsic_shift: for planned convolutions with split int16 products.
    """

    weights: np.ndarray
    bias: np.ndarray | None = None
    weight_zero_point: int | Sequence[int] = 0
    input_dtype: str = "int8"
    input_zero_point: int = 0
    output_dtype: str = "int8"
    output_zero_point: int = 0
    rounding: str = "gemmlowp_double"
    input_scale: float | None = None
    weight_scale: float | Sequence[float] | None = None
    output_scale: float | None = None
    multiplier: Sequence[int] = ()
    shift: Sequence[int] = ()
    gain: Sequence[float] = ()
    stride: int | Sequence[int] = 1
    dilation: int | Sequence[int] = 1
    padding: int | Sequence[Sequence[int]] = 0
    transposed: bool = False
    activation: str = "none"
    activation_rounding: str | None = None
    bias_folded: bool = False
    accumulator_bits: int | None = None
    intrinsic_shift: Sequence[int] = ()
    name: str = "layer"


@dataclasses.dataclass(frozen=True)
class Counts:
    """What did not fit: results outside the output type before any fused activation, accumulators outside int32."""

    saturated: int
    wide: int


def rounding_rules() -> list[str]:
    """The names that Layer.rounding and simulate() know."""
    return _weightmill.rounding_rules()


class Simulator:
    """A layer whose weights are packed once, to be run on any number of inputs."""

    def __init__(self, layer: Layer, rounding: str | None = None) -> None:
        """rounding: replaces the layer's rule. Raises Error where a field contradicts another."""
        self._packed = _weightmill.simulator_of_layer(_fields(layer, rounding or layer.rounding))

    def run(self, input: np.ndarray, *, jobs: int = 1, counts: bool = False):
        """As simulate()."""
        data, dtype, shape, saturated, wide = self._packed.run(np.ascontiguousarray(input), jobs)
        codes = data.view(dtype).reshape(shape)
        return (codes, Counts(saturated, wide)) if counts else codes


def simulate(layer, input: np.ndarray, rounding: str | None = None, *, jobs: int = 1, counts: bool = False, **changes):
    """Runs a layer on codes and returns the output codes, as the named engine rule computes them, bit for bit.

    layer: a Layer, a ConvPlan, or a list of these to run one after the other.
    input: int8, uint8 or int16 [N, h, w, channels] (or with d); a dense layer takes any rank.
    rounding: replaces the rule of every layer; of a ConvPlan it counts in mult31 modes alone.
    counts: return (codes, Counts) instead, with a list of Counts where a list was given.
    changes: fields of a Layer that replace its own, or a ConvPlan's stride, dilation, padding, transposed, activation.
    The result does not depend on jobs. Raises Error where a field contradicts another or the input does not fit.
    """
    if not isinstance(layer, (list, tuple)):
        codes, count = _run(layer, input, rounding, jobs, changes)
        return (codes, count) if counts else codes
    if not layer:
        raise Error("chain: no layer to run")
    all_counts = []
    for one in layer:
        input, count = _run(one, input, rounding, jobs, changes)
        all_counts.append(count)
    return (input, all_counts) if counts else input


def _run(layer, input: np.ndarray, rounding: str | None, jobs: int, changes: dict):
    if not isinstance(layer, Layer):  # a ConvPlan, whose module imports this one
        rule = {} if rounding is None else {"rounding": rounding}
        return layer.simulate(input, jobs=jobs, counts=True, **rule, **changes)
    changed = dataclasses.replace(layer, **changes) if changes else layer
    return Simulator(changed, rounding).run(input, jobs=jobs, counts=True)


def _fields(layer: Layer, rounding: str) -> dict:
    weights = _integers(layer.weights, "weights")
    n_axes = max(weights.ndim - 3, 0)
    bits = layer.accumulator_bits or (64 if layer.input_dtype == "int16" else 32)
    if bits not in (32, 64):
        raise Error(f"{layer.name}: accumulator_bits is {bits}; wanted 32 or 64")
    padding = _padding(layer.padding, n_axes)
    scales = [] if layer.weight_scale is None else np.asarray(layer.weight_scale, np.float32).reshape(-1).tolist()
    if scales and (layer.input_scale is None or layer.output_scale is None):
        raise Error(f"{layer.name}: weight_scale needs input_scale and output_scale beside it")
    if layer.activation in ("relu6", "relu_n1_to_1") and layer.output_scale is None:
        raise Error(f"{layer.name}: activation {layer.activation} needs output_scale")
    return {
        "name": layer.name,
        "weights": _without_zero_point(weights, layer),
        "bias": [] if layer.bias is None else _integers(layer.bias, "bias").reshape(-1).tolist(),
        "bias_folded": layer.bias_folded,
        "input_dtype": str(np.dtype(layer.input_dtype)),
        "input_zero_point": int(layer.input_zero_point),
        "output_dtype": str(np.dtype(layer.output_dtype)),
        "output_zero_point": int(layer.output_zero_point),
        "rounding": rounding,
        "input_scale": float(layer.input_scale or 0),
        "weight_scale": scales,
        "output_scale": float(layer.output_scale or 1),
        "multiplier": [int(m) for m in layer.multiplier],
        "shift": [int(s) for s in layer.shift],
        "gain": [float(g) for g in layer.gain],
        "stride": _for_each_axis(layer.stride, n_axes),
        "dilation": _for_each_axis(layer.dilation, n_axes),
        "pad_before": [before for before, _ in padding],
        "pad_after": [after for _, after in padding],
        "transposed": layer.transposed,
        "activation": layer.activation,
        "activation_rounding": layer.activation_rounding or ("half_even" if rounding == "float_gain" else "half_away"),
        "accumulator_32_bit": bits == 32,
        "intrinsic_shift": [int(h) for h in layer.intrinsic_shift],
    }


def _integers(values, what: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise Error(f"{what}: an array of {array.dtype}; wanted integers")
    return array


def _without_zero_point(weights: np.ndarray, layer: Layer) -> np.ndarray:
    zero_point = np.asarray(layer.weight_zero_point, np.int64).reshape(-1)
    if zero_point.size > 1:
        if weights.ndim < 2 or zero_point.size != weights.shape[-2] * weights.shape[-1]:
            raise Error(f"{layer.name}: {zero_point.size} weight zero points do not go with weights {weights.shape}")
        zero_point = zero_point.reshape(weights.shape[-2:])
    if weights.dtype == np.int8 and not zero_point.any():
        return np.ascontiguousarray(weights, np.int16)
    difference = weights.astype(np.int64) - zero_point
    if difference.size and not -255 <= difference.min() <= difference.max() <= 255:
        raise Error(f"{layer.name}: weights less their zero point must be in -255..255")
    return np.ascontiguousarray(difference, np.int16)


def _for_each_axis(value, n_axes: int) -> list[int]:
    values = np.asarray(value).reshape(-1).tolist()
    return [int(v) for v in (values * n_axes if len(values) == 1 else values)]


def _padding(padding, n_axes: int) -> list[tuple[int, int]]:
    if np.ndim(padding) == 0:
        return [(int(padding), int(padding))] * n_axes
    return [(int(before), int(after)) for before, after in padding]
