"""Small int8 networks for a compiler: kinds of layers and weights that the real models at hand do not have. The same bytes for a name."""

import zlib

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

INT8, INT32 = schema.TensorType.INT8, schema.TensorType.INT32
CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, ADD, RESHAPE, CUSTOM = 3, 4, 9, 0, 22, 32


class Network:
    """Layers, each on the output of the one before."""

    def __init__(self, name: str, shape: tuple) -> None:
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))
        self._model = schema.ModelT()
        self._model.version, self._model.description = 3, name
        self._model.buffers, self._model.operatorCodes = [schema.BufferT()], []
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators, self._model.subgraphs = [], [], [self._graph]
        self._last = self._tensor(shape, scale=0.05)
        self._graph.inputs = [self._last]

    def convolution(self, outputs: int, kernel: int = 1, stride: int = 1, dilation: int = 1, kind: str = "bell") -> "Network":
        shape = self._shape()
        options = schema.Conv2DOptionsT()
        options.strideH = options.strideW = stride
        options.dilationHFactor = options.dilationWFactor = dilation
        weights = self._weights((outputs, kernel, kernel, shape[3]), kind)
        return self._weighted(CONV_2D, schema.BuiltinOptions.Conv2DOptions, options, weights, 0, _strided(shape, stride, outputs))

    def depthwise(self, kernel: int, stride: int = 1, dilation: int = 1, kind: str = "bell") -> "Network":
        shape = self._shape()
        options = schema.DepthwiseConv2DOptionsT()
        options.strideH = options.strideW = stride
        options.dilationHFactor = options.dilationWFactor = dilation
        options.depthMultiplier = 1
        weights = self._weights((1, kernel, kernel, shape[3]), kind)
        return self._weighted(DEPTHWISE_CONV_2D, schema.BuiltinOptions.DepthwiseConv2DOptions, options, weights, 3,
                              _strided(shape, stride, shape[3]))

    def dense(self, outputs: int, kind: str = "bell") -> "Network":
        weights = self._weights((outputs, int(np.prod(self._shape()[1:]))), kind)
        return self._weighted(FULLY_CONNECTED, schema.BuiltinOptions.FullyConnectedOptions, schema.FullyConnectedOptionsT(), weights, 0,
                              (1, outputs))

    def add_constant(self) -> "Network":
        """A constant feature map."""
        constant = self._tensor(self._shape(), scale=0.05, data=self._weights(self._shape(), "bell"))
        return self._append(ADD, None, schema.BuiltinOptions.AddOptions, schema.AddOptionsT(), [self._last, constant], self._shape())

    def foreign(self) -> "Network":
        """An operator that no NPU has: what follows becomes another NPU operator on the same read-only tensor."""
        return self._append(CUSTOM, "foreign", 0, None, [self._last], self._shape())

    def bytes(self) -> bytes:
        self._graph.outputs = [self._last]
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self._model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _shape(self) -> tuple:
        return tuple(self._graph.tensors[self._last].shape)

    def _weights(self, shape: tuple, kind: str) -> np.ndarray:
        values = {
            "bell": lambda: np.clip(np.rint(self._rng.normal(0, 28, shape)), -127, 127),
            "flat": lambda: self._rng.integers(-127, 128, shape),
            "four": lambda: self._rng.choice([-90, -30, 30, 90], shape),
            "pruned": lambda: self._rng.integers(-60, 61, shape) * (self._rng.random(shape) < 0.2),
            "two of four": lambda: self._rng.integers(1, 128, shape) * (np.arange(shape[-1]) % 4 < 2),
            "zero": lambda: np.zeros(shape),
        }[kind]()
        return np.asarray(values).astype(np.int8)

    def _tensor(self, shape, dtype=INT8, scale=None, data=None, axis=0) -> int:
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.buffer, tensor.name = list(shape), dtype, 0, f"t{len(self._graph.tensors)}"
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            tensor.buffer = len(self._model.buffers)
            self._model.buffers.append(buffer)
        if scale is not None:
            scales = [float(s) for s in np.atleast_1d(scale)]
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = scales, [0] * len(scales)
            tensor.quantization.quantizedDimension = axis
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def _weighted(self, builtin, options_type, options, weights, axis, shape) -> "Network":
        n = weights.shape[axis]
        scales = self._rng.uniform(0.001, 0.004, n)
        w = self._tensor(weights.shape, scale=scales, data=weights, axis=axis)
        b = self._tensor((n,), INT32, 0.05 * scales, self._rng.integers(-3000, 3001, n).astype(np.int32))
        return self._append(builtin, None, options_type, options, [self._last, w, b], shape)

    def _append(self, builtin, custom, options_type, options, inputs, shape) -> "Network":
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = builtin
        code.customCode, code.version = custom, 1 if builtin == CUSTOM else 3
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs = len(self._model.operatorCodes), inputs
        operator.builtinOptionsType, operator.builtinOptions = options_type, options
        operator.customOptions = [0] if builtin == CUSTOM else None
        self._model.operatorCodes.append(code)
        self._last = self._tensor(shape, scale=0.05)
        operator.outputs = [self._last]
        self._graph.operators.append(operator)
        return self


def _strided(shape: tuple, stride: int, depth: int) -> tuple:
    """With padding SAME."""
    return (1, -(-shape[1] // stride), -(-shape[2] // stride), depth)


NETWORKS = {
    "dilated": lambda: Network("dilated", (1, 40, 40, 16)).convolution(24, 3, dilation=2).convolution(24, 5, dilation=3)
    .depthwise(3, dilation=2).convolution(8, 3, dilation=4, kind="pruned"),
    "large_kernels": lambda: Network("large_kernels", (1, 48, 48, 3)).convolution(20, 9, 2).depthwise(7).convolution(33, 1).depthwise(11)
    .convolution(5, 13),
    "few_values": lambda: Network("few_values", (1, 8, 8, 64)).convolution(128, 3, kind="four").convolution(256, 1, kind="four")
    .convolution(64, 1, kind="flat").dense(10, "four"),
    "sparse": lambda: Network("sparse", (1, 16, 16, 64)).convolution(128, 3, kind="two of four").convolution(128, 1, kind="two of four")
    .convolution(128, 3, kind="pruned").convolution(64, 1, kind="zero"),
    "one_channel": lambda: Network("one_channel", (1, 30, 30, 1)).convolution(1, 3).convolution(9, 5).convolution(1, 1).depthwise(3)
    .convolution(3, 3),
    "pieces": lambda: Network("pieces", (1, 16, 16, 8)).convolution(40, 3).foreign().add_constant().depthwise(3, 2).foreign()
    .convolution(24, 3).add_constant().foreign().dense(100).dense(10),
    "dense": lambda: Network("dense", (1, 1, 1, 640)).dense(512).dense(512, "flat").dense(64, "pruned").dense(640),
}
