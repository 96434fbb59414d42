"""Runs a QDQ ONNX graph of weighted layers with the simulator, on codes wherever integer kernels have codes."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from onnx import numpy_helper

import weightmill
from qdq_samples import hwigo, simulate_convolution

OPERATORS = {"QuantizeLinear", "DequantizeLinear", "Conv", "Gemm", "MatMul", "Add", "Relu", "Clip", "Constant",
             "Identity", "Transpose"}
WEIGHTED = {"Conv", "Gemm", "MatMul"}


@dataclasses.dataclass
class Quantized:
    """A float tensor that is nothing but dequantized codes."""

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray

    def real(self, axis: int = 1) -> np.ndarray:
        shape = [1] * self.codes.ndim
        if self.scale.size > 1:
            shape[axis] = self.scale.size
        difference = self.codes.astype(np.int32) - self.zero_point.astype(np.int32).reshape(shape)
        return difference.astype(np.float32) * self.scale.astype(np.float32).reshape(shape)


class Graph:
    """Values by name: arrays, or Quantized behind a DequantizeLinear."""

    def __init__(self, model: onnx.ModelProto, inputs: dict[str, np.ndarray]):
        self.model, self.nodes = model, list(model.graph.node)
        self.values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | inputs

    def run(self) -> list[np.ndarray]:
        for node in self.nodes:
            behind_a_layer = node.op_type in ("Add", "Relu", "Clip")  # _weighted() has gone through it
            if node.output[0] not in self.values and not behind_a_layer:
                self._run_node(node)
        return [self._array(output.name) for output in self.model.graph.output]

    def _array(self, name: str) -> np.ndarray:
        value = self.values[name]
        return value.real() if isinstance(value, Quantized) else value

    def _run_node(self, node) -> None:
        handler = {"Conv": self._weighted, "Gemm": self._weighted, "MatMul": self._weighted}.get(node.op_type)
        if handler is None:
            handler = getattr(self, "_" + node.op_type.lower())
        handler(node)

    def _constant(self, node) -> None:
        self.values[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)

    def _identity(self, node) -> None:
        self.values[node.output[0]] = self.values[node.input[0]]

    def _transpose(self, node) -> None:
        q = self.values[node.input[0]]
        self.values[node.output[0]] = Quantized(q.codes.transpose(_attributes(node)["perm"]), q.scale, q.zero_point)

    def _dequantizelinear(self, node) -> None:
        codes, scale = self.values[node.input[0]], np.asarray(self.values[node.input[1]])
        has_zero = len(node.input) > 2 and node.input[2]
        zero = self.values[node.input[2]] if has_zero else np.zeros(scale.shape, codes.dtype)
        self.values[node.output[0]] = Quantized(codes, scale.reshape(-1), np.asarray(zero).reshape(-1))

    def _quantizelinear(self, node) -> None:
        scale, zero = self._quantization(node)
        limits = np.iinfo(zero.dtype)
        steps = self._array(node.input[0]) / np.float32(scale)
        steps = np.clip(steps, np.float32(limits.min - int(zero)), np.float32(limits.max - int(zero)))
        self.values[node.output[0]] = (np.rint(steps).astype(np.int32) + int(zero)).astype(zero.dtype)

    def _quantization(self, node):
        zero = self.values[node.input[2]] if len(node.input) > 2 and node.input[2] else np.uint8(0)
        return np.asarray(self.values[node.input[1]]).reshape(()), np.asarray(zero).reshape(-1)[0]

    def _consumer(self, name: str):
        return next(node for node in self.nodes if name in node.input)

    def _weighted(self, node) -> None:
        """Runs the layer together with the Add, Relu and Clip behind it, up to the QuantizeLinear."""
        x, w = self.values[node.input[0]], self.values[node.input[1]]
        bias = self.values[node.input[2]] if len(node.input) > 2 else None
        end = self._consumer(node.output[0])
        while end.op_type != "QuantizeLinear":
            if end.op_type == "Add":
                bias = self.values[next(name for name in end.input if name in self.values)]
            end = self._consumer(end.output[0])
        scale, zero = self._quantization(end)
        alpha = np.float32(_attributes(node).get("alpha", 1.0))
        layer = weightmill.Layer(
            w.codes, _bias_codes(bias, x, w), input_dtype=str(x.codes.dtype), input_zero_point=int(x.zero_point[0]),
            output_dtype=str(zero.dtype), output_zero_point=int(zero), input_scale=alpha * np.float32(x.scale[0]),
            weight_scale=w.scale, output_scale=scale, rounding="float_gain", weight_zero_point=w.zero_point)
        run = {"Conv": _convolution, "Gemm": _gemm, "MatMul": _matmul}[node.op_type]
        self.values[end.output[0]] = run(layer, x.codes, _attributes(node))


def _attributes(node) -> dict:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _bias_codes(bias, x: Quantized, w: Quantized):
    """Codes of a bias; a float one is quantized as ONNX Runtime does when it loads the model."""
    if bias is None or isinstance(bias, Quantized):
        return None if bias is None else bias.codes
    step = np.float32(x.scale[0]) * w.scale.astype(np.float32)
    return np.rint(bias / step).astype(np.int64)


def _run(layer, codes):
    """The layer, [h, w, I, G, O] by now; a negative weight scale turns the signs of its lane's weights and bias."""
    signs = np.sign(np.asarray(layer.weight_scale)).astype(np.int16)
    if (signs < 0).any():
        by_channel = [np.asarray(v, np.int16).reshape(layer.weights.shape[-2:] if len(v) > 1 else ())
                      for v in (signs, layer.weight_zero_point)]
        weights = (layer.weights.astype(np.int16) - by_channel[1]) * by_channel[0]
        bias = None if layer.bias is None else layer.bias * signs
        layer = dataclasses.replace(layer, weights=weights, weight_zero_point=0, bias=bias)
    return weightmill.simulate(dataclasses.replace(layer, weight_scale=np.abs(layer.weight_scale)), codes)


def _convolution(layer, codes, attributes):
    n_axes = codes.ndim - 2
    attributes = {"strides": [1] * n_axes, "dilations": [1] * n_axes, "pads": [0] * 2 * n_axes, "group": 1} | attributes
    if attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        attributes["pads"] = _same_pads(codes.shape[2:], layer.weights.shape[2:], attributes)
    layer.weights = hwigo(layer.weights, "convolution", attributes["group"])
    return simulate_convolution(layer, codes, attributes, _run)


def _same_pads(extents, kernel, attributes) -> list[int]:
    before, after = [], []
    for n, k, s, d in zip(extents, kernel, attributes["strides"], attributes["dilations"]):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        before.append(total // 2 if attributes["auto_pad"] == b"SAME_UPPER" else total - total // 2)
        after.append(total - before[-1])
    return before + after


def _gemm(layer, codes, attributes):
    if attributes.get("transA"):
        codes = codes.T
    if not attributes.get("transB"):
        layer.weights = layer.weights.T
    layer.weights = hwigo(layer.weights, "gemm", 1)
    n_channels = layer.weights.shape[-1]
    rows = np.broadcast_to(0 if layer.bias is None else layer.bias, (len(codes), n_channels))
    return np.concatenate([_run(_with_bias(layer, row), codes[i:i + 1]) for i, row in enumerate(rows)])


def _with_bias(layer, row):
    return dataclasses.replace(layer, bias=np.asarray(row))


def _matmul(layer, codes, attributes):
    if layer.bias is not None:
        return _gemm(layer, codes, {})
    batch = np.broadcast_shapes(layer.weights.shape[:-2], codes.shape[:-2]) if layer.weights.ndim > 2 else ()
    if not batch:
        layer.weights = hwigo(layer.weights, "matmul", 1)
        return _run(layer, codes)
    weights = np.broadcast_to(layer.weights, (*batch, *layer.weights.shape[-2:]))
    codes = np.broadcast_to(codes, (*batch, *codes.shape[-2:]))
    parts = [_run(dataclasses.replace(layer, weights=hwigo(weights[i], "matmul", 1)), codes[i])
             for i in np.ndindex(batch)]
    return np.stack(parts).reshape(*batch, *parts[0].shape)
