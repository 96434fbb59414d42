"""A second planner, written in numpy from docs/quantization.md alone: the other half of bench/plan.py and a judge in tests.

It knows the modes with a shift, int8 and int16 input, both policies, per channel and per tensor; not the mult31 modes.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

# name: (bits, folded, multiplier, asymmetric low, asymmetric high, symmetric high)
MODES = {
    "pow2_folded_i8": (8, True, False, -128, 127, 127),
    "pow2_folded_i16": (16, True, False, -32768, 32512, 32512),
    "pow2_folded_i32": (32, True, False, -(2**31), 2**31 - 1, 2**31 - 1),
    "mult7_i8": (8, False, True, -128, 127, 127),
    "mult7_i16": (16, False, True, -32768, 32767, 32767),
    "pow2_i8": (8, False, False, -128, 127, 127),
    "pow2_i16": (16, False, False, -32768, 32512, 32512),
}


class NoPlan(Exception):
    """The search ended empty-handed."""


class Again(Exception):
    """A knob has changed."""


@dataclasses.dataclass
class Request:
    weights: np.ndarray
    bias: np.ndarray | None
    input_steps: float
    input_zero: int
    output_range: tuple[float, float]
    mode: str
    policy: str = "fixed"
    per_channel: bool = True
    asymmetric: bool = True
    int16_input: bool = False
    relu_workaround: bool = False
    allow_int32: bool = False
    input_mean: np.ndarray | None = None


@dataclasses.dataclass
class Knobs:
    mode: str
    fallback: str | None
    high: np.ndarray
    drop: np.ndarray
    bias_reduced: bool = False


def plan(request: Request) -> dict:
    lanes = request.weights.shape[-1] * request.weights.shape[-2] if request.per_channel else 1
    fallback = {"pow2_folded_i8": "pow2_i8", "pow2_folded_i16": "pow2_i16"}.get(request.mode) if request.relu_workaround else None
    knobs = Knobs(request.mode, fallback, np.zeros(lanes, bool), np.zeros(lanes, int))
    for attempt in range(1, (64 if request.policy == "fixed" else 18) + 1):
        try:
            return _Pass(request, knobs).run() | {"attempts": attempt}
        except Again:
            continue
    raise NoPlan


class _Pass:
    def __init__(self, request: Request, knobs: Knobs):
        self.r, self.k = request, knobs
        self.bits, self.folded, self.multiplier, low, high, symmetric = MODES[knobs.mode]
        if not request.asymmetric:
            low, high = -symmetric, symmetric
        self.fixed = request.policy == "fixed"
        self.w = request.weights.reshape(-1, request.weights.shape[-2] * request.weights.shape[-1]).astype(np.float64)
        self.channels = self.w.shape[1]
        self.log = ["W_BIAS_REDUCED"] if knobs.bias_reduced else []
        knobs.bias_reduced = False
        self.out_steps, self.out_zero = grid(*request.output_range, low, high)

    def run(self) -> dict:
        self.ideal_scales()
        self.apply_knobs()
        self.vanishing()
        self.legal_shift()
        if self.folded:
            self.fit_zero_point()
        self.output()
        self.fit_bias()
        if self.fixed:
            self.check_accumulator()
        self.relu()
        if self.k.high.any():
            self.log.append("N_INTRINSIC")
        if self.k.mode != self.r.mode:
            self.log.append("N_RELU_FALLBACK")
        return {
            "mode": self.k.mode, "weights": self.q.astype(np.int8).reshape(self.r.weights.shape), "bias": self.b,
            "shift": self.n, "multiplier": self.m, "intrinsic": self.h, "weight_steps": self.sw, "bias_steps": self.bs,
            "output": (self.out_steps, int(self.out_zero)), "drop": self.k.drop.copy(), "log": self.log,
        }  # fmt: skip

    def ideal_scales(self):
        peak = np.abs(self.w).max(0)
        self.peak = peak if self.r.per_channel else peak.max(keepdims=True)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.sw = 127.0 / self.peak
            self.sw[~np.isfinite(self.sw)] = 0
            self.s = self.out_steps / (self.r.input_steps * self.sw)
        self.s[~np.isfinite(self.s)] = 1
        mantissa, e = np.frexp(self.s)
        hair = mantissa <= 0.5 * (1 + 2.0**-40)
        f = np.where(hair, 2 * mantissa, mantissa)
        e = np.where(hair, e - 1, e)
        self.m = np.ones(len(f), int)
        if not self.multiplier:
            self.sw, self.s, self.n = self.sw * f, self.s / f, -e
        elif not self.fixed:
            self.m, self.n = np.clip(np.rint(128 * f), -128, 127).astype(int), 7 - e
        else:
            m = np.minimum(128, np.maximum(np.ceil(128 * f), 64))
            self.sw = self.sw * (128 * f / m)
            whole = m == 128
            self.m, self.n = np.where(whole, 64, m).astype(int), 7 - e - whole
            self.s = np.ldexp(self.m.astype(float), -self.n)

    def scale(self, exponent, where=slice(None)):
        self.s[where] = np.ldexp(self.s[where], exponent)
        self.n[where] -= exponent

    def apply_knobs(self):
        self.h = np.where(self.k.high, 8, 1) if self.r.int16_input else np.zeros(len(self.s), int)
        self.scale(self.h + self.k.drop)
        self.sw = np.ldexp(self.sw, -self.k.drop)

    def kill(self, where):
        self.sw[where], self.s[where], self.n[where], self.m[where] = 0, 1, 0, 1

    def vanishing(self):
        dead = self.peak * self.sw <= 0.5
        self.kill(dead)
        if dead.any():
            self.log.append("W_ALL_ZERO" if dead.all() else "W_SOME_ZERO")

    def legal_shift(self):
        soft, hard = (37, 39) if self.multiplier else (31, 32)
        k = -int(self.n.min())
        if k > 0:
            self.scale(-k)
            self.out_steps, self.out_zero = math.ldexp(self.out_steps, -k), math.trunc(math.ldexp(self.out_zero, -k))
            if self.bits == 8:
                self.log.append("W_OUTPUT_RESCALED")
        long = self.n >= soft
        if not long.any():
            return
        self.raise_intrinsic(long)
        self.sw[long] = np.ldexp(self.sw[long], -2)
        self.scale(2, long)
        self.log.append("W_SHIFT_REDUCED")
        if (self.n >= hard).any():
            self.kill(self.n >= hard)
            self.log.append("W_SHIFT_ZEROED")

    def raise_intrinsic(self, lanes):
        if self.r.int16_input and (lanes & ~self.k.high).any():
            self.k.high |= lanes
            raise Again

    def fit_zero_point(self):
        v = self.out_zero / self.s
        ratio = np.maximum(v / -(2.0**31), v / (2.0**31 - 1))
        over = ratio > 1
        if over.any():
            mantissa, e = np.frexp(ratio[over])
            k = np.where(mantissa == 0.5, e - 1, e)
            self.scale(k, over)
            self.sw[over] = np.ldexp(self.sw[over], -k)
            self.log.append("W_ZP_REDUCED")
            self.legal_shift()

    def output(self):
        widened = self.k.mode == "pow2_folded_i16" and self.r.allow_int32 and not self.r.per_channel
        self.out_bits = 32 if widened else self.bits
        if self.folded and self.out_bits == 32 and not self.r.per_channel:
            n = int(self.n[0])
            self.out_steps, self.out_zero = math.ldexp(self.out_steps, n), self.out_zero * 2**n
            self.scale(n)
        self.bs = self.out_steps / self.s

    def fit_bias(self):
        self.q = np.rint(np.clip(self.w * self.sw, -128, 127))
        zin = np.rint(np.ldexp(self.r.input_zero * self.q.sum(0), -self.h))
        out = np.ldexp(float(self.out_zero), self.n) if self.folded else 0.0
        real = np.zeros(self.channels) if self.r.bias is None else self.r.bias.astype(np.float64)
        if self.r.input_mean is not None and (self.fixed or self.r.bias is not None):
            real = real + self.mean_error()
        want = real * self.bs + (out - zin)
        over = (want > 2.0**31 - 0.5) | (want < -(2.0**31) - 0.5)
        dead = np.broadcast_to(self.sw == 0, over.shape)
        counted = over & ~dead if self.fixed else over
        lanes = counted if self.r.per_channel else counted.any(keepdims=True)
        if lanes.any():
            self.raise_intrinsic(lanes)
            self.k.drop[lanes] += 1
            self.k.bias_reduced = True
            raise Again
        self.b = np.rint(np.clip(want, -(2.0**31), 2.0**31 - 1)).astype(np.int32)
        if over.any():
            self.log.append("X_BIAS_SATURATED")

    def mean_error(self):
        shape = self.r.weights.shape
        fake = np.divide(self.q, self.sw, out=np.zeros_like(self.q), where=np.broadcast_to(self.sw != 0, self.q.shape))
        error = (self.w - fake).reshape(-1, *shape[-3:])
        return np.einsum("tigo,gi->go", error, self.r.input_mean.reshape(shape[-2], shape[-3]).astype(float)).reshape(-1)

    def check_accumulator(self):
        most = 32768 if self.r.int16_input else 128
        reach = np.ldexp(np.abs(self.q).sum(0) * most, -self.h) + np.abs(self.b.astype(float))
        risk = reach > 2.0**31 - 1
        if risk.any():
            self.raise_intrinsic(risk if self.r.per_channel else risk.any(keepdims=True))
            self.log.append("X_ACC_RISK")

    def relu(self):
        if self.k.fallback is None or self.out_zero in (0, -(2 ** (self.out_bits - 1))) or not self.r.per_channel:
            return
        self.k.mode, self.k.fallback = self.k.fallback, None
        self.k.high[:], self.k.drop[:] = False, 0
        raise Again


def grid(low: float, high: float, code_low: int, code_high: int) -> tuple[float, int]:
    low, high = min(low, 0.0), max(high, 0.0)
    if code_low == -code_high:
        return code_high / max(-low, high), 0
    steps = (code_high - code_low) / (high - low)
    return steps, int(np.clip(np.rint(code_low - low * steps), code_low, code_high))
