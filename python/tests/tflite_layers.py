"""Weighted operators of a TFLite file as weightmill.Layer, read with LiteRT's own schema module."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import numpy as np
from ai_edge_litert import schema_py_generated as schema

import weightmill
from layer_samples import hwigo

GOLDEN = pathlib.Path(os.environ.get("WEIGHTMILL_GOLDEN_DIR", pathlib.Path(__file__).parents[3] / "shared/golden"))
MODELS = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR", pathlib.Path(__file__).parents[3] / "shared/models"))

KINDS = {"CONV_2D": "convolution", "DEPTHWISE_CONV_2D": "depthwise", "TRANSPOSE_CONV": "transposed",
         "FULLY_CONNECTED": "fully_connected"}
_NAMES = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
_DTYPES = {schema.TensorType.INT8: np.int8, schema.TensorType.INT16: np.int16, schema.TensorType.INT32: np.int32,
           schema.TensorType.INT64: np.int64, schema.TensorType.UINT8: np.uint8, schema.TensorType.FLOAT32: np.float32}
_ACTIVATIONS = {0: "none", 1: "relu", 2: "relu_n1_to_1", 3: "relu6"}


class NotUnderstood(Exception):
    """The operator is none that the simulator runs; the text says why."""


@dataclasses.dataclass
class Operator:
    """A weighted operator: its layer but for the rule, and what the rule depends on."""

    layer: weightmill.Layer
    kind: str
    dtype: str
    grouped: bool
    bias32: bool
    bias32_declared: bool
    input: int
    output: int


def read(path) -> schema.ModelT:
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(pathlib.Path(path).read_bytes(), 0))


def operator_names(model) -> list[str]:
    codes = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in model.operatorCodes]
    return [_NAMES[codes[node.opcodeIndex]] for node in model.subgraphs[0].operators]


def operators(model) -> list[Operator]:
    """All operators of the main graph. Raises NotUnderstood if one is not weighted or not an integer layer."""
    return [operator(model, i) for i in range(len(model.subgraphs[0].operators))]


def operator(model, index: int) -> Operator:
    graph, name = model.subgraphs[0], operator_names(model)[index]
    if name not in KINDS:
        raise NotUnderstood(name)
    node, kind = graph.operators[index], KINDS[name]
    if node.builtinOptions is None:
        raise NotUnderstood("no options")
    places = [2, 1, 3] if kind == "transposed" else [0, 1, 2]
    numbers = [node.inputs[p] if p < len(node.inputs) else -1 for p in places]
    x, w = graph.tensors[numbers[0]], graph.tensors[numbers[1]]
    y = graph.tensors[node.outputs[0]]
    bias = _constant(model, numbers[2]) if numbers[2] >= 0 else None
    weights = _constant(model, numbers[1])
    if weights is None or weights.dtype != np.int8 or not all(_quantized(t) for t in (x, w, y)):
        raise NotUnderstood("not int8 weights with quantized activations")
    n_inputs = int(x.shape[-1]) if kind != "fully_connected" else weights.shape[1]
    dtype = _DTYPES[x.type].__name__
    layer = weightmill.Layer(
        hwigo(weights, kind, n_inputs), bias,
        weight_zero_point=int(w.quantization.zeroPoint[0]) if kind == "fully_connected" else 0,
        input_dtype=dtype, input_zero_point=_zero_point(x), input_scale=x.quantization.scale[0],
        weight_scale=list(w.quantization.scale), output_dtype=_DTYPES[y.type].__name__,
        output_zero_point=_zero_point(y), output_scale=y.quantization.scale[0],
        activation=_ACTIVATIONS[node.builtinOptions.fusedActivationFunction],
        name=name)
    if kind != "fully_connected":
        _set_geometry(layer, kind, node.builtinOptions, x, y)
    bias32 = dtype == "int16" and bias is not None and bias.dtype == np.int32
    if bias32:
        layer.accumulator_bits = 32
    grouped = kind == "convolution" and layer.weights.shape[3] > 1
    declared = getattr(node.builtinOptions, "quantizedBiasType", 0) == schema.TensorType.INT32
    return Operator(layer, kind, dtype, grouped, bias32, declared, numbers[0], node.outputs[0])


def _quantized(tensor) -> bool:
    q = tensor.quantization
    return q is not None and q.scale is not None and len(q.scale) > 0


def _zero_point(tensor) -> int:
    points = tensor.quantization.zeroPoint
    return int(points[0]) if points is not None and len(points) else 0


def _constant(model, number: int):
    tensor = model.subgraphs[0].tensors[number]
    data = model.buffers[tensor.buffer].data
    if data is None or tensor.type not in _DTYPES:
        return None
    return np.frombuffer(np.asarray(data, np.uint8).tobytes(), _DTYPES[tensor.type]).reshape(tensor.shape)


def _set_geometry(layer, kind: str, options, x, y) -> None:
    layer.stride = (options.strideH, options.strideW)
    if kind == "transposed":
        layer.transposed = True
    else:
        layer.dilation = (options.dilationHFactor, options.dilationWFactor)
    padding = []
    for axis in range(2):
        n, out, s = x.shape[1 + axis], y.shape[1 + axis], layer.stride[axis]
        d = layer.dilation if np.ndim(layer.dilation) == 0 else layer.dilation[axis]
        reach = (layer.weights.shape[axis] - 1) * d + 1
        if kind == "transposed":
            full = (n - 1) * s + reach
            before = max(full - out, 0) // 2
            padding.append((before, full - before - out))
        else:
            total = max((out - 1) * s + reach - n, 0) if options.padding == schema.Padding.SAME else 0
            padding.append((total // 2, total - total // 2))
    layer.padding = padding
