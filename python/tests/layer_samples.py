"""Seeded random integer layers, as TFLite models for LiteRT and as weightmill.Layer for the simulator."""

from __future__ import annotations

import dataclasses

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import weightmill

KINDS = ("convolution", "depthwise", "transposed", "fully_connected")
_OPERATORS = {"convolution": schema.BuiltinOperator.CONV_2D, "depthwise": schema.BuiltinOperator.DEPTHWISE_CONV_2D,
              "transposed": schema.BuiltinOperator.TRANSPOSE_CONV,
              "fully_connected": schema.BuiltinOperator.FULLY_CONNECTED}
_VERSIONS = {("convolution", "int8"): 3, ("depthwise", "int8"): 3, ("transposed", "int8"): 4,
             ("fully_connected", "int8"): 4, ("convolution", "int16"): 1, ("depthwise", "int16"): 1,
             ("transposed", "int16"): 4, ("fully_connected", "int16"): 1}
_ACTIVATIONS = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}


@dataclasses.dataclass
class Sample:
    """One layer; `weights` are in TFLite's layout: OHWI, depthwise 1HWC, fully connected OI."""

    kind: str
    dtype: str
    weights: np.ndarray
    bias: np.ndarray
    input: np.ndarray
    input_scale: np.float32
    input_zero_point: int
    weight_scale: np.ndarray
    output_scale: np.float32
    output_zero_point: int
    output_shape: tuple[int, ...]
    activation: str = "none"
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    same: bool = False

    @property
    def grouped(self) -> bool:
        return self.kind == "convolution" and self.weights.shape[3] != self.input.shape[3]

    @property
    def delegated(self) -> bool:
        """XNNPACK takes the layer: not where a transposed output is larger than what the kernels reach."""
        return self.dtype == "int8" and min(min(pair) for pair in self.padding) >= 0

    @property
    def multiplier(self) -> int:
        return self.weights.shape[3] // self.input.shape[3]


def draw(kind: str, dtype: str, seed: int) -> Sample:
    """The sample of a seed: small extents; a third of the scales are powers of two, so that ties occur; a third of the
    samples have accumulators that leave 32 bits (int16: 47), gains above 1, or gains far below it."""
    rng = np.random.default_rng([KINDS.index(kind), int(dtype == "int16"), seed])
    weights, input_shape, geometry = _draw_geometry(kind, rng)
    n_channels = weights.shape[3] if kind == "depthwise" else weights.shape[0]
    reach = weights.size // n_channels
    per_tensor = kind != "depthwise" and rng.random() < 0.3
    power_of_two = rng.random() < 0.35
    input_scale = _scale(rng, power_of_two)
    n_lanes = 1 if per_tensor else n_channels
    weight_scale = np.array([_scale(rng, power_of_two, -9, -3) for _ in range(n_lanes)], np.float32)
    extreme = str(rng.choice(["wide", "large_gain", "small_gain"])) if rng.random() < 0.33 else "none"
    wide = dtype == "int16"
    return Sample(
        kind, dtype, weights, _draw_bias(rng, dtype, n_channels, reach, extreme), _draw_codes(rng, dtype, input_shape),
        input_scale, 0 if wide else int(rng.integers(-128, 128)), weight_scale,
        _draw_output_scale(rng, dtype, input_scale, weight_scale, reach, extreme, power_of_two),
        0 if wide else int(rng.integers(-128, 128)), activation=str(rng.choice(list(_ACTIVATIONS))), **geometry)


def _draw_output_scale(rng, dtype, input_scale, weight_scale, reach, extreme, power_of_two) -> np.float32:
    product = float(input_scale) * float(weight_scale.mean())
    if extreme == "large_gain":  # XNNPACK refuses gains of 256 and more; the scales of a tensor spread by 2^6
        scale = float(input_scale) * float(weight_scale.max()) * 2.0 ** rng.uniform(-7.9, 1)
    elif extreme == "small_gain":
        scale = product * 2.0 ** rng.uniform(18, 34)
    else:  # sums spread over about 30 codes, at times far more (saturation) or fewer
        spread = np.sqrt(reach) * 73 * (19000 / 10000 if dtype == "int16" else 73 / 40)
        scale = product * spread * 2.0 ** rng.uniform(-2, 3)
    return np.float32(2.0 ** np.round(np.log2(scale)) if power_of_two and extreme != "large_gain" else scale)


def _scale(rng, power_of_two: bool, low: float = -8, high: float = -1) -> np.float32:
    exponent = rng.uniform(low, high)
    return np.float32(2.0 ** (round(exponent) if power_of_two else exponent))


def _draw_bias(rng, dtype: str, n_channels: int, reach: int, extreme: str) -> np.ndarray:
    kind = np.int64 if dtype == "int16" else np.int32
    if extreme == "wide":
        top = 2**40 if dtype == "int16" else 2**31
        return ((top - 1 - rng.integers(0, top >> 8, n_channels)) * rng.choice([-1, 1], n_channels)).astype(kind)
    spread = np.sqrt(reach) * 5000 * (200 if dtype == "int16" else 1) * (1000 if extreme == "small_gain" else 1)
    limit = 2**40 if dtype == "int16" else 2**31
    return np.clip(np.round(rng.normal(0, spread, n_channels)), 1 - limit, limit - 1).astype(kind)


def _draw_codes(rng, dtype: str, shape) -> np.ndarray:
    limit = 128 if dtype == "int8" else 32768
    return rng.integers(-limit, limit, shape).astype(dtype)


def _draw_geometry(kind: str, rng) -> tuple[np.ndarray, tuple[int, ...], dict]:
    def weights(*shape):
        return rng.integers(-128, 128, shape).astype(np.int8)

    if kind == "fully_connected":
        n, inputs, outputs = int(rng.integers(1, 5)), int(rng.integers(1, 40)), int(rng.integers(1, 20))
        return weights(outputs, inputs), (n, inputs), {"output_shape": (n, outputs)}
    kernel = rng.integers(1, 4, 2)
    extent = rng.integers(4, 9, 2)
    stride = (1, 1) if rng.random() < 0.5 else tuple(int(s) for s in rng.integers(1, 4, 2))
    batch, same = int(rng.integers(1, 3)), bool(rng.random() < 0.5)
    inputs, outputs = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    if kind == "transposed":
        return (weights(outputs, *kernel, inputs), (batch, *extent, inputs),
                _transposed(batch, extent, kernel, outputs, stride, same))
    dilation = (1, 1)
    if stride == (1, 1) and rng.random() < 0.3 and all(extent > 2 * kernel):
        dilation = tuple(int(d) for d in rng.integers(1, 3, 2))
    if kind == "depthwise":
        outputs = inputs * int(rng.integers(1, 4))
        shape = (1, *kernel, outputs)
        stride = (stride[0], stride[0])
    else:
        groups = int(rng.choice([1, 1, 1, 2, 4]))
        inputs, outputs = inputs * groups, outputs * groups
        shape = (outputs, *kernel, inputs // groups)
    return (weights(*shape), (batch, *extent, inputs), _forward(batch, extent, kernel, outputs, stride, dilation, same))


def _forward(batch, extent, kernel, outputs, stride, dilation, same) -> dict:
    out, padding = [], []
    for n, k, s, d in zip(extent, kernel, stride, dilation):
        reach = int((k - 1) * d + 1)
        out.append(int(-(-n // s) if same else (n - reach) // s + 1))
        total = max((out[-1] - 1) * s + reach - int(n), 0) if same else 0
        padding.append((total // 2, total - total // 2))
    return {"output_shape": (batch, *out, outputs), "padding": tuple(padding), "stride": stride, "dilation": dilation,
            "same": same}


def _transposed(batch, extent, kernel, outputs, stride, same) -> dict:
    out, padding = [], []
    for n, k, s in zip(extent, kernel, stride):
        full = int((n - 1) * s + k)
        out.append(int(n * s) if same else full)
        before = max(full - out[-1], 0) // 2
        padding.append((before, full - before - out[-1]))
    return {"output_shape": (batch, *out, outputs), "padding": tuple(padding), "stride": stride, "same": same}


def layer_of(sample: Sample, rounding: str) -> weightmill.Layer:
    """The sample as the simulator takes it."""
    return weightmill.Layer(
        weights=hwigo(sample.weights, sample.kind, sample.input.shape[-1]), bias=sample.bias,
        input_dtype=sample.dtype, input_zero_point=sample.input_zero_point, output_dtype=sample.dtype,
        output_zero_point=sample.output_zero_point, input_scale=sample.input_scale, weight_scale=sample.weight_scale,
        output_scale=sample.output_scale, rounding=rounding, stride=sample.stride, dilation=sample.dilation,
        padding=sample.padding, transposed=sample.kind == "transposed", activation=sample.activation)


def hwigo(weights: np.ndarray, kind: str, n_inputs: int) -> np.ndarray:
    """TFLite's weights as [h, w, I, G, O]."""
    if kind == "fully_connected":
        return weights.T.reshape(1, 1, weights.shape[1], 1, weights.shape[0])
    if kind == "depthwise":
        _, h, w, c = weights.shape
        return weights.reshape(h, w, 1, n_inputs, c // n_inputs)
    o, h, w, i = weights.shape
    groups = 1 if kind == "transposed" else n_inputs // i
    return weights.reshape(groups, o // groups, h, w, i).transpose(2, 3, 4, 0, 1)


def tflite_model(samples: list[Sample]) -> bytes:
    """One model with every sample as a layer of its own: input k and output k belong to sample k."""
    model = schema.ModelT()
    model.version, model.description, model.operatorCodes = 3, "samples", []
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
    model.subgraphs = [graph]
    for sample in samples:
        _add_layer(model, graph, sample)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _add_layer(model, graph, sample: Sample) -> None:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = _OPERATORS[sample.kind]
    code.version = _VERSIONS[sample.kind, sample.dtype]
    if sample.grouped and sample.dtype == "int8":
        code.version = 6
    if sample.kind == "depthwise" and sample.dtype == "int16" and sample.dilation != (1, 1):
        code.version = 2
    axis = 3 if sample.kind == "depthwise" else 0
    zeros = [0] * len(sample.weight_scale)
    bias_scale = [np.float32(sample.input_scale * s) for s in sample.weight_scale]
    wide = sample.dtype == "int16"
    code_type = schema.TensorType.INT16 if wide else schema.TensorType.INT8
    x = _tensor(model, graph, sample.input.shape, code_type, [sample.input_scale], [sample.input_zero_point])
    w = _tensor(model, graph, sample.weights.shape, schema.TensorType.INT8, sample.weight_scale, zeros, axis,
                sample.weights)
    bias_type = schema.TensorType.INT64 if wide else schema.TensorType.INT32
    b = _tensor(model, graph, sample.bias.shape, bias_type, bias_scale, zeros, 0, sample.bias)
    y = _tensor(model, graph, sample.output_shape, code_type, [sample.output_scale], [sample.output_zero_point])
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [x, w, b], [y]
    if sample.kind == "transposed":
        shape = np.array(sample.output_shape, np.int32)
        operator.inputs = [_tensor(model, graph, (4,), schema.TensorType.INT32, data=shape), w, x, b]
    operator.opcodeIndex = len(model.operatorCodes)
    operator.builtinOptionsType, operator.builtinOptions = _options(sample)
    model.operatorCodes.append(code)
    graph.operators.append(operator)
    graph.inputs.append(x)
    graph.outputs.append(y)


def _tensor(model, graph, shape, code_type, scale=None, zero_point=None, axis=0, data=None) -> int:
    tensor = schema.TensorT()
    tensor.shape, tensor.type, tensor.buffer = [int(n) for n in shape], code_type, 0
    tensor.name = f"t{len(graph.tensors)}"
    if data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        tensor.buffer = len(model.buffers)
        model.buffers.append(buffer)
    if scale is not None:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = [float(s) for s in scale]
        tensor.quantization.zeroPoint = [int(z) for z in zero_point]
        tensor.quantization.quantizedDimension = axis
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _options(sample: Sample):
    if sample.kind == "fully_connected":
        options = schema.FullyConnectedOptionsT()
        options.fusedActivationFunction = _ACTIVATIONS[sample.activation]
        return schema.BuiltinOptions.FullyConnectedOptions, options
    name = {"convolution": "Conv2DOptions", "depthwise": "DepthwiseConv2DOptions", "transposed": "TransposeConvOptions"}
    options = getattr(schema, name[sample.kind] + "T")()
    options.padding = schema.Padding.SAME if sample.same else schema.Padding.VALID
    options.strideH, options.strideW = sample.stride
    options.fusedActivationFunction = _ACTIVATIONS[sample.activation]
    if sample.kind != "transposed":
        options.dilationHFactor, options.dilationWFactor = sample.dilation
    if sample.kind == "depthwise":
        options.depthMultiplier = sample.multiplier
    return getattr(schema.BuiltinOptions, name[sample.kind]), options


def run_litert(model: bytes, engine: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs of one of LiteRT's kernel paths: "ref", "opt" or "xnn"."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = {"ref": OpResolverType.BUILTIN_REF, "opt": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                "xnn": OpResolverType.BUILTIN}[engine]
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    for detail, codes in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], codes)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
