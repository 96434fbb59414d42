"""Plans of convolution-like layers in integers: numpy arrays in, a plan with its diagnostics out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from weightmill import _weightmill
from weightmill._error import Error
from weightmill._simulate import Counts, _for_each_axis, _padding


@dataclasses.dataclass(frozen=True)
class Grid:
    """Quantization of an activation: q = round(real * steps_per_unit) + zero_point.

    steps_per_unit is the reciprocal of TFLite's and ONNX's scale; the planner computes with it.
    """

    steps_per_unit: float
    zero_point: int = 0

    @property
    def scale(self) -> float:
        """Real units per step."""
        return 1 / self.steps_per_unit


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """What a planner found worth telling. channels: (output channel, bits lost); channel -1 stands for all."""

    code: str
    cause: str
    remedy: str
    channels: tuple[tuple[int, float], ...]


@dataclasses.dataclass(frozen=True)
class EngineView:
    """A plan in the words of TFLite and ONNX: float32 scales in real units per step, bias without zero points."""

    input_scale: np.float32
    weight_scale: np.ndarray
    output_scale: np.float32
    bias: np.ndarray


@dataclasses.dataclass(frozen=True)
class Agreement:
    """SQNR in dB (20 log10 of |reference| / |error|), largest error in steps, cosine, number of values."""

    sqnr_db: float
    max_error_steps: float
    cosine: float
    count: int


@dataclasses.dataclass(frozen=True, eq=False)
class ConvPlan:
    """A convolution in integers. C is the number of output channels, L that of scale lanes: C per channel, else 1.

    weights: int8, in the planner's axis order [kh, kw, I, G, O] or [kd, kh, kw, I, G, O].
    bias: int32 [C], zero-point terms included except in mult31 modes; real_bias: float64 [C], real units.
    multiplier, shift: [L], accumulator to output steps, empty in mult31 modes, where engines make them of the scales.
    weight_steps_per_unit, bias_steps_per_unit: float64 [L]; weight_scale: float32 [C] in mult31 modes, else empty.
    intrinsic_shift, weight_drop: [L]. exact_gain: not a 7-bit multiplier rounded to nearest. The mode may differ from the one asked for (ReLU fallback).
    """

    mode: str
    requant: str
    per_channel: bool
    exact_gain: bool
    input_dtype: str
    output_dtype: str
    input: Grid
    output: Grid
    weights: np.ndarray
    bias: np.ndarray
    real_bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    intrinsic_shift: np.ndarray
    weight_steps_per_unit: np.ndarray
    bias_steps_per_unit: np.ndarray
    weight_scale: np.ndarray
    weight_drop: np.ndarray
    attempts: int
    diagnostics: tuple[Diagnostic, ...]
    _record: _weightmill.QuantizedConv = dataclasses.field(repr=False)

    @property
    def log(self) -> list[str]:
        """Codes of the diagnostics in their order, without pure information."""
        return [d.code for d in self.diagnostics if not d.code.startswith("I_")]

    def verify(self) -> list[str]:
        """The promises of a plan that this one breaks, a sentence each: none for a sound plan."""
        return self._record.verify()

    def engine_view(self, snap_gain: bool = True) -> EngineView:
        """What to write to a TFLite or ONNX file; snap_gain makes the float32 gain the planned power of two exactly."""
        return EngineView(*self._record.engine_view(snap_gain))

    def simulate(self, input: np.ndarray, *, stride=1, dilation=1, padding=0, transposed: bool = False,
                 activation: str = "none", rounding: str = "gemmlowp_double", jobs: int = 1, counts: bool = False):
        """Runs the plan on codes and returns the output codes; with counts also the Counts.

        input: int8 or int16 [N, h, w, G * I] (or with d); a dense layer takes any rank. Geometry and activation: as
        weightmill.Layer. rounding: the engine's, of mult31 modes; the others have their own.
        """
        n_axes = self.weights.ndim - 3
        sides = _padding(padding, n_axes)
        fields = dict(stride=_for_each_axis(stride, n_axes), dilation=_for_each_axis(dilation, n_axes),
                      pad_before=[before for before, _ in sides], pad_after=[after for _, after in sides],
                      transposed=transposed, activation=activation, rounding=rounding)
        data, dtype, shape, saturated, wide = _weightmill.simulate_plan(self._record, fields, np.ascontiguousarray(input), jobs)
        codes = data.view(dtype).reshape(shape)
        return (codes, Counts(saturated, wide)) if counts else codes


@dataclasses.dataclass(frozen=True)
class ScaleChoice:
    """Found by search_output_scale: the plan, the output range it is for over the calibrated one, expected noise."""

    plan: ConvPlan
    range_factor: float
    noise: float
    noise_without: float


@dataclasses.dataclass(frozen=True, eq=False)
class WeightPlan:
    """Integer weights for floating-point activations: real = weights * renorm of the lane.

    weights: int8, in the planner's axis order; steps_per_unit float64 and renorm float32: [groups, C], or [1] per tensor.
    """

    bits: int
    group_size: int
    weights: np.ndarray
    steps_per_unit: np.ndarray
    renorm: np.ndarray
    diagnostics: tuple[Diagnostic, ...]


def plan_conv(
    weights: np.ndarray,
    bias: np.ndarray | None,
    input_quant: Grid | tuple[float, int],
    output_range: tuple[float, float],
    mode: str = "mult31_i8",
    *,
    policy: str = "fixed",
    multiplier: str = "by_policy",
    per_channel: bool = True,
    asymmetric: bool = True,
    int16_input: bool = False,
    relu_workaround: bool = False,
    allow_int32: bool = False,
    allow_zero_output: bool = False,
    input_mean: np.ndarray | None = None,
    name: str = "layer",
) -> ConvPlan:
    """Chooses scales, shifts, integer weights and bias for one convolution-like layer.

    weights: float32 [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]; see planner_weights for other axis orders.
    bias: float32 [G * O] or None.
    input_quant: a Grid, or (scale, zero_point) with the scale in real units per step.
    output_range: smallest and largest real value of the output; it is widened to contain 0.
    mode: mult31_i8 (what TFLite, ONNX, OpenVINO and Ethos-U run), mult31_i16, mult7_i8, mult7_i16, pow2_i8, pow2_i16,
        pow2_folded_i8, pow2_folded_i16, pow2_folded_i32.
    policy: "fixed", or "classic" for conformance with planners that lack its repairs.
    multiplier: of mult7 modes: "exact" (fixed: weights shrink by up to 1.6 %), "nearest" (classic: gain off by up to
        2**-7), or by the policy. Neither is better everywhere: search_output_scale tries both.
    int16_input: the input is int16 (mult31 modes: decided by the mode).
    relu_workaround: an activation is applied by saturation (folded modes).
    allow_int32: pow2_folded_i16 per tensor hands on the accumulator.
    allow_zero_output: plan an output range of (0, 0) with a warning.
    input_mean: float32 [G * I], real units; given, the bias is corrected for the rounding of the weights.
    Raises Error with a message that begins "<name>: E_...".
    """
    fields = _request(weights, bias, input_quant, output_range, mode, policy=policy, multiplier=multiplier,
                      per_channel=per_channel, asymmetric=asymmetric, int16_input=int16_input,
                      relu_workaround=relu_workaround, allow_int32=allow_int32, allow_zero_output=allow_zero_output,
                      input_mean=input_mean, name=name)
    return _plan(_weightmill.plan_conv(fields))


def search_output_scale(weights, bias, input_quant, output_range, mode="pow2_i8", *, n_candidates: int = 16, try_multipliers: bool = True,
                        input_square: np.ndarray | None = None, measured_noise: Callable[[ConvPlan], float] | None = None,
                        **options) -> ScaleChoice:
    """Plans a layer at n_candidates output scales within a factor of two and keeps the one of least expected noise.

    try_multipliers: of mult7 modes plan both multiplier rules at each scale.
    input_square: float32 [G * I], mean of the squared input in real units; None: a guess from input_quant.
    measured_noise: called with each plan instead of estimating, say to simulate it on samples; the least result wins.
    The rest as plan_conv.
    """
    fields = _request(weights, bias, input_quant, output_range, mode, input_square=input_square, **options)
    measure = None if measured_noise is None else lambda record: float(measured_noise(_plan(record)))
    record, *numbers = _weightmill.search_output_scale(fields, n_candidates, try_multipliers, measure)
    return ScaleChoice(_plan(record), *numbers)


def plan_weights(weights: np.ndarray, *, bits: int = 8, per_channel: bool = True, group_size: int = 0,
                 name: str = "layer") -> WeightPlan:
    """Quantizes weights for a layer whose activations stay bfloat16 or float32.

    weights: float32, as plan_conv. bits: 8 or 4. group_size: rows that share a scale (32, 64, 128 …); 0: all rows.
    """
    fields = _weightmill.plan_weights(_floats(weights, "weights"), name, bits, per_channel, group_size)
    shape = fields["weight_shape"]
    lanes = (-1, shape[-2] * shape[-1]) if per_channel else (1,)
    return WeightPlan(bits, fields["group_size"], fields["weights"].reshape(shape), fields["steps_per_unit"].reshape(lanes),
                      fields["renorm"].reshape(lanes), _diagnostics(fields["diagnostics"]))


def planner_weights(weights: np.ndarray, layout: str, groups: int = 1) -> np.ndarray:
    """Weights in a model's axis order, as the planner wants them.

    layout: "ohwi" (TFLite CONV_2D, TRANSPOSE_CONV), "hwc_depthwise" (TFLite DEPTHWISE_CONV_2D), "dhwio" (TFLite CONV_3D),
        "oi" and "io" (dense), "oihw" (ONNX Conv, 2-D or 3-D), "iohw" (ONNX ConvTranspose).
    groups: of a depthwise layer, its input channels.
    """
    shape, source = _weightmill.weight_order(layout, list(weights.shape), groups, weights.size)
    return np.asarray(weights).reshape(-1)[source].reshape(shape)


def model_weights(planned: np.ndarray, layout: str, shape: Sequence[int], groups: int = 1) -> np.ndarray:
    """The inverse of planner_weights; shape: the model's."""
    _, source = _weightmill.weight_order(layout, list(shape), groups, planned.size)
    result = np.empty_like(planned, shape=planned.size)
    result[source] = planned.reshape(-1)
    return result.reshape(shape)


def agreement(reference: np.ndarray, codes: np.ndarray, grid: Grid) -> Agreement:
    """How well integer codes on a grid agree with float values of the same shape."""
    return Agreement(*_agreements(reference, codes, grid, 1)[0])


def channel_agreement(reference: np.ndarray, codes: np.ndarray, grid: Grid) -> list[Agreement]:
    """The same for each channel, the last axis."""
    return [Agreement(*numbers) for numbers in _agreements(reference, codes, grid, reference.shape[-1])]


def _agreements(reference, codes, grid, n_channels):
    wanted = np.ascontiguousarray(reference, np.float32)
    found = np.ascontiguousarray(codes, np.int32)
    return _weightmill.agreement(wanted, found, grid.steps_per_unit, grid.zero_point, n_channels)


def _request(weights, bias, input_quant, output_range, mode, *, policy="fixed", multiplier="by_policy", per_channel=True, asymmetric=True,
             int16_input=False, relu_workaround=False, allow_int32=False, allow_zero_output=False, input_mean=None,
             input_square=None, name="layer") -> dict:
    grid = input_quant if isinstance(input_quant, Grid) else _grid(*input_quant, name)
    low, high = output_range
    return {
        "name": name,
        "weights": _floats(weights, "weights"),
        "bias": None if bias is None else _floats(bias, "bias"),
        "input_mean": None if input_mean is None else _floats(input_mean, "input_mean"),
        "input_square": None if input_square is None else _floats(input_square, "input_square"),
        "input_steps_per_unit": float(grid.steps_per_unit),
        "input_zero_point": int(grid.zero_point),
        "output_low": float(low),
        "output_high": float(high),
        "mode": mode,
        "policy": policy,
        "multiplier": multiplier,
        "per_channel": bool(per_channel),
        "asymmetric": bool(asymmetric),
        "int16_input": bool(int16_input),
        "relu_workaround": bool(relu_workaround),
        "allow_int32": bool(allow_int32),
        "allow_zero_output": bool(allow_zero_output),
    }


def _grid(scale: float, zero_point: int, name: str) -> Grid:
    if not scale > 0:
        raise Error(f"{name}: E_INPUT_SCALE: input scale is {scale}; wanted a positive, finite number")
    return Grid(1 / float(scale), zero_point)


def _floats(array, what: str) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype != np.float32:
        raise Error(f"{what}: an array of {array.dtype}; wanted float32")
    return np.ascontiguousarray(array)


def _plan(record) -> ConvPlan:
    fields = record.fields()
    fields["weights"] = fields["weights"].reshape(fields.pop("weight_shape"))
    fields["input"] = Grid(*fields["input"])
    fields["output"] = Grid(*fields["output"])
    return ConvPlan(**fields, diagnostics=_diagnostics(record.diagnostics()), _record=record)


def _diagnostics(rows) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(code, cause, remedy, tuple(channels)) for code, cause, remedy, channels in rows)
