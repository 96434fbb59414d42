"""SQNR of real layers in each mode of the planner: one table for each kind of input and scale.

    .venv/bin/python tools/sqnr_table.py [--models DIR] [--samples N] [--bias-correction]

A float model is run by LiteRT on real samples; each chosen layer is planned for the smallest and largest value of its
input and output on those samples, run in integers on the layer's float input, and compared with its float output. So
the numbers compare modes, not the accuracy of models. "+s" beside a power-of-two mode: with the best of 16 output scales,
"+m" beside a mult7 mode: with the better of both multiplier rules; measured on the same samples.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import weightmill

ROOT = pathlib.Path(__file__).resolve().parents[1]
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")

# model: (samples as the model wants them, numbers of the weighted layers)
NETWORKS = {
    "vww_96_float": (lambda data, n: data["vww_person_96"]["x"][:n] / np.float32(255), (0, 1, 2, 9, 25, 26)),
    "kws_dscnn_float": (lambda data, n: data["kws_calib"]["x"][:n], (0, 1, 2, 9)),
    "resnet8_float": (lambda data, n: data["cifar10_calib"]["x"][:n].astype(np.float32), (0, 3, 8)),
    "ad01_float": (lambda data, n: data["ad_calib"]["x"][:n], (0, 4)),
}
ACTIVATIONS = {
    "none": lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
}

PER_CHANNEL = [("pow2_folded_i8", {}), ("mult7_i8", dict(policy="classic")), ("mult7_i8", {}), ("pow2_folded_i16", {}),
               ("mult7_i16", dict(policy="classic")), ("mult7_i16", {}), ("pow2_folded_i32", {}), ("mult31_i8", {})]
TENSOR_AND_SYMMETRIC = [(mode, dict(per_channel=False)) for mode in ("pow2_folded_i8", "mult7_i8", "mult7_i16", "mult31_i8")]
TENSOR_AND_SYMMETRIC += [(mode, dict(asymmetric=False)) for mode in ("pow2_folded_i8", "mult7_i8", "mult7_i16", "mult31_i8")]
INT16_INPUT = [("pow2_folded_i16", {}), ("pow2_i16", {}), ("mult7_i16", dict(policy="classic")), ("mult7_i16", {}),
               ("pow2_folded_i32", {}), ("mult31_i16", {})]


@dataclasses.dataclass
class FloatLayer:
    """One layer of a float model with what it saw and made. Arrays are [N, h, w, channels], dense layers with h = w = 1."""

    name: str
    weights: np.ndarray  # planner's order
    bias: np.ndarray | None
    x: np.ndarray
    y: np.ndarray
    geometry: dict
    activation: str


def read_layers(models: pathlib.Path, n_samples: int) -> list[FloatLayer]:
    data = {p.stem: np.load(p, allow_pickle=False) for p in sorted((models / "data").glob("*.npz"))}
    layers = []
    for network, (samples, numbers) in NETWORKS.items():
        layers += read_network(models / f"{network}.tflite", samples(data, n_samples), numbers)
    return layers


def read_network(path: pathlib.Path, samples: np.ndarray, numbers: tuple[int, ...]) -> list[FloatLayer]:
    engine = Interpreter(str(path), experimental_preserve_all_tensors=True,
                         experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    engine.allocate_tensors()
    nodes = [op for op in engine._get_ops_details() if op["op_name"] in WEIGHTED]
    seen = {number: ([], []) for number in numbers}
    for sample in samples:
        engine.set_tensor(engine.get_input_details()[0]["index"], sample[None].astype(np.float32))
        engine.invoke()
        for number, (inputs, outputs) in seen.items():
            inputs.append(engine.get_tensor(nodes[number]["inputs"][0]))
            outputs.append(engine.get_tensor(nodes[number]["outputs"][0]))
    short = path.stem.split("_")[0]
    return [make_layer(f"{short}#{n}", nodes[n], engine, *map(np.concatenate, seen[n])) for n in numbers]


def make_layer(name: str, node: dict, engine: Interpreter, x: np.ndarray, y: np.ndarray) -> FloatLayer:
    weights = engine.get_tensor(node["inputs"][1])
    has_bias = len(node["inputs"]) > 2 and node["inputs"][2] >= 0
    bias = engine.get_tensor(node["inputs"][2]) if has_bias else None
    if node["op_name"] == "FULLY_CONNECTED":
        planned = weightmill.planner_weights(weights, "oi")
        x, y = x.reshape(-1, 1, 1, x.shape[-1]), y.reshape(-1, 1, 1, y.shape[-1])
    elif node["op_name"] == "CONV_2D":
        planned = weightmill.planner_weights(weights, "ohwi")
    else:
        planned = weightmill.planner_weights(weights, "hwc_depthwise", x.shape[-1])
    kh, kw, n_in, groups, n_out = planned.shape
    geometry, activation = find_geometry(planned, bias, x, y)
    kind = "dw" if groups > 1 else ""
    return FloatLayer(f"{name}{kind} {kh}x{kw} {n_in * groups}->{groups * n_out}", planned, bias, x, y, geometry, activation)


def find_geometry(weights, bias, x, y) -> tuple[dict, str]:
    """Stride, padding and activation, which the interpreter does not tell: those that give the output it made."""
    stride = [max(1, round(i / o)) for i, o in zip(x.shape[1:3], y.shape[1:3])]
    for padding in (same_padding(weights.shape, stride, x.shape, y.shape), [(0, 0), (0, 0)]):
        found = convolve(x, weights, stride, padding)
        if found is None or found.shape != y.shape:
            continue
        found = found + (0 if bias is None else bias)
        for name, activate in ACTIVATIONS.items():
            if np.allclose(activate(found), y, rtol=1e-3, atol=1e-3 * np.abs(y).max()):
                return dict(stride=stride, padding=padding), name
    raise SystemExit(f"no stride, padding and activation explain a layer of weights {weights.shape}")


def same_padding(kernel, stride, in_shape, out_shape) -> list[tuple[int, int]]:
    total = [max((o - 1) * s + k - i, 0) for k, s, i, o in zip(kernel, stride, in_shape[1:3], out_shape[1:3])]
    return [(t // 2, t - t // 2) for t in total]


def convolve(x, weights, stride, padding) -> np.ndarray | None:
    """Float convolution, [N, h, w, channels]; None where the kernel does not fit."""
    x = np.pad(x, [(0, 0), *padding, (0, 0)])
    kh, kw, n_in, groups, n_out = weights.shape
    h, w = [(e - k) // s + 1 for e, k, s in zip(x.shape[1:3], (kh, kw), stride)]
    if h < 1 or w < 1:
        return None
    y = np.zeros((x.shape[0], h, w, groups, n_out), np.float32)
    for i, j in np.ndindex(kh, kw):
        part = x[:, i : i + (h - 1) * stride[0] + 1 : stride[0], j : j + (w - 1) * stride[1] + 1 : stride[1]]
        y += np.einsum("nhwgi,igo->nhwgo", part.reshape(*part.shape[:3], groups, n_in), weights[i, j], optimize=True)
    return y.reshape(x.shape[0], h, w, -1)


def input_grid(layer: FloatLayer, mode: str, int16: bool) -> weightmill.Grid:
    low, high = min(float(layer.x.min()), 0.0), max(float(layer.x.max()), 0.0)
    if mode == "mult31_i16":
        return weightmill.Grid(32767 / max(-low, high))
    steps = 255 / (high - low)
    zero = int(np.clip(np.rint(-128 - low * steps), -128, 127))
    return weightmill.Grid(steps * 256, zero * 256) if int16 else weightmill.Grid(steps, zero)


def sqnr(layer: FloatLayer, mode: str, options: dict, *, int16=False, n_candidates=0, bias_correction=False) -> float:
    grid = input_grid(layer, mode, int16)
    mean = layer.x.mean((0, 1, 2)) if bias_correction else None
    request = dict(weights=layer.weights, bias=layer.bias, input_quant=grid, mode=mode, int16_input=int16, input_mean=mean,
                   output_range=(float(layer.y.min()), float(layer.y.max())), name=layer.name, **options)
    info = np.iinfo(np.int16 if int16 else np.int8)
    codes = np.clip(np.rint(layer.x * grid.steps_per_unit) + grid.zero_point, info.min, info.max).astype(info.dtype)

    def measured(plan: weightmill.ConvPlan) -> float:
        rounding = "int16x8" if mode == "mult31_i16" else "gemmlowp_double"
        found = plan.simulate(codes, activation=layer.activation, rounding=rounding, **layer.geometry)
        return weightmill.agreement(layer.y, found, plan.output).sqnr_db

    if n_candidates == 0:
        return measured(weightmill.plan_conv(**request))
    return -weightmill.search_output_scale(n_candidates=n_candidates, measured_noise=lambda plan: -measured(plan), **request).noise


def print_table(title: str, layers: list[FloatLayer], columns: list[tuple[str, dict]], int16: bool, bias_correction: bool) -> None:
    cells = []
    for mode, options in columns:
        label = mode + "".join({"policy": " classic", "per_channel": " per tensor", "asymmetric": " symmetric"}[o] for o in options)
        cells.append((label, mode, options, 0))
        if mode.startswith("pow2"):
            cells.append((label + " +s", mode, options, 16))
        if mode.startswith("mult7") and "policy" not in options:
            cells.append((label + " +m", mode, options, 1))
    print(f"\n**{title}**\n\n| layer | " + " | ".join(c[0] for c in cells) + " |")
    print("|---|" + "---|" * len(cells))
    for layer in layers:
        row = [sqnr(layer, mode, options, int16=int16, n_candidates=n, bias_correction=bias_correction)
               for _, mode, options, n in cells]
        print(f"| {layer.name} | " + " | ".join(f"{db:.1f}" for db in row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("WEIGHTMILL_MODELS_DIR") or ROOT.parent / "shared" / "models"
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(default), help="folder of the float models")
    parser.add_argument("--samples", type=int, default=4, help="samples of each model")
    parser.add_argument("--bias-correction", action="store_true")
    arguments = parser.parse_args()
    layers = read_layers(arguments.models, arguments.samples)
    tables = [("int8 input, per channel, asymmetric output", PER_CHANNEL, False),
              ("int8 input, per tensor, and symmetric per channel", TENSOR_AND_SYMMETRIC, False),
              ("int16 input, per channel, asymmetric (mult31_i16: symmetric)", INT16_INPUT, True)]
    for title, columns, int16 in tables:
        print_table(title, layers, columns, int16, arguments.bias_correction)


if __name__ == "__main__":
    main()
