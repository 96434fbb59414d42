"""Seeded random QDQ layers, as ONNX models for ONNX Runtime and as weightmill.Layer for the simulator."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import weightmill

KINDS = ("convolution", "convolution_1d", "convolution_3d", "depthwise", "gemm", "matmul")
KERNELS = {"gemm": "QGemm", "matmul": "QLinearMatMul"}


@dataclasses.dataclass
class Sample:
    """One layer. `weights`: OI… for convolutions, [N, K] for gemm (transB), [K, N] for matmul."""

    kind: str
    input: np.ndarray
    weights: np.ndarray
    weight_zero_point: np.ndarray
    bias: np.ndarray | None
    input_scale: np.float32
    input_zero_point: int
    weight_scale: np.ndarray
    output_scale: np.float32
    output_zero_point: int
    attributes: dict

    @property
    def kernel(self) -> str:
        return KERNELS.get(self.kind, "QLinearConv")


def draw(kind: str, seed: int) -> Sample:
    """uint8 activations; int8 weights per channel or per tensor, at times uint8 or with zero points."""
    rng = np.random.default_rng([1000 + KINDS.index(kind), seed])
    shape, input_shape, attributes = _draw_geometry(kind, rng)
    channel_axis = 1 if kind == "matmul" else 0
    n_channels = shape[channel_axis]
    reach = int(np.prod(shape)) // n_channels
    unsigned = rng.random() < 0.15
    lanes = n_channels if rng.random() < 0.7 and not unsigned else 1
    power_of_two = rng.random() < 0.35
    low, weight_type = (0, np.uint8) if unsigned else (-128, np.int8)
    weights = rng.integers(low, low + 256, shape).astype(weight_type)
    zero = rng.integers(100, 156, lanes) if unsigned else np.zeros(lanes, np.int64)
    input_scale = _scale(rng, power_of_two, -8, -1)
    weight_scale = np.array([_scale(rng, power_of_two, -9, -3) for _ in range(lanes)], np.float32)
    spread = np.sqrt(reach) * 73 * 73 * 2.0 ** (rng.uniform(-2, 3) if rng.random() < 0.8 else rng.uniform(-12, 20))
    output_scale = np.float32(float(input_scale) * float(weight_scale.mean()) * spread / 40)
    if power_of_two:
        output_scale = np.float32(2.0 ** np.round(np.log2(output_scale)))
    bias = np.round(rng.normal(0, np.sqrt(reach) * 5000, n_channels)).astype(np.int32)
    if rng.random() < 0.1:
        bias = (2**31 - 1 - rng.integers(0, 2**22, n_channels)) * rng.choice([-1, 1], n_channels)
        bias = bias.astype(np.int32)
    if kind == "matmul" or rng.random() < 0.1:
        bias = None
    return Sample(kind, rng.integers(0, 256, input_shape).astype(np.uint8), weights, zero, bias, input_scale,
                  int(rng.integers(0, 256)), weight_scale, output_scale, int(rng.integers(0, 256)), attributes)


def draw_near_ties(kind: str, seed: int) -> Sample:
    """As draw(), but an accumulator is near a tie in one code of eight or so: what float steps round decides there."""
    sample, rng = draw(kind, seed), np.random.default_rng([2000 + KINDS.index(kind), seed])
    lanes = sample.weight_scale.size
    output_scale, input_scale = (np.float32(v) for v in (rng.uniform(0.05, 0.5), rng.uniform(0.005, 0.1)))
    gain = output_scale / input_scale / 2 ** int(rng.integers(3, 7))
    weight_scale = np.float32(gain) * (1 + rng.integers(-3, 4, lanes) * 2.0**-23).astype(np.float32)
    bias = None if sample.bias is None else rng.integers(-200, 200, sample.bias.size).astype(np.int32)
    return dataclasses.replace(
        sample, weights=rng.integers(-3, 4, sample.weights.shape).astype(np.int8), bias=bias, input_scale=input_scale,
        weight_zero_point=np.zeros(lanes, np.int64), weight_scale=weight_scale, output_scale=output_scale,
        output_zero_point=int(rng.integers(60, 200)))


def _scale(rng, power_of_two: bool, low: float, high: float) -> np.float32:
    exponent = rng.uniform(low, high)
    return np.float32(2.0 ** (round(exponent) if power_of_two else exponent))


def _draw_geometry(kind: str, rng):
    if kind in ("gemm", "matmul"):
        m, k, n = (int(v) for v in rng.integers(1, 30, 3))
        return ((n, k) if kind == "gemm" else (k, n)), (m, k), {"transB": 1} if kind == "gemm" else {}
    n_axes = {"convolution_1d": 1, "convolution_3d": 3}.get(kind, 2)
    kernel = [int(k) for k in rng.integers(1, 4, n_axes)]
    dilation = [int(d) for d in rng.integers(1, 3, n_axes)]
    extent = [int(e) for e in rng.integers(5, 9 if n_axes < 3 else 7, n_axes)]
    if kind == "depthwise":
        groups = inputs = int(rng.integers(2, 20))
        outputs = groups * int(rng.choice([1, 1, 2]))
    else:
        groups = int(rng.choice([1, 1, 2, 3]))
        inputs, outputs = groups * int(rng.integers(1, 7)), groups * int(rng.integers(1, 9))
    attributes = {"strides": [int(s) for s in rng.integers(1, 3, n_axes)], "dilations": dilation, "group": groups,
                  "pads": [int(p) for p in rng.integers(0, 3, 2 * n_axes)], "kernel_shape": kernel}
    return (outputs, inputs // groups, *kernel), (int(rng.integers(1, 3)), inputs, *extent), attributes


def onnx_model(samples: list[Sample]) -> bytes:
    """One model with every sample as a branch of its own: input xK of uint8 to output yK of uint8."""
    nodes, constants, inputs, outputs = [], [], [], []
    for i, sample in enumerate(samples):
        _add_layer(i, sample, nodes, constants)
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.UINT8, sample.input.shape))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.UINT8, None))
    graph = helper.make_graph(nodes, "samples", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def _add_layer(i: int, sample: Sample, nodes: list, constants: list) -> None:
    def constant(name, array):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"{name}{i}"))
        return f"{name}{i}"

    def lanes(array):  # one lane: a scalar
        return array.reshape(()) if array.size == 1 else array

    axis = 1 if sample.kind == "matmul" else 0
    x = [constant("sx", sample.input_scale), constant("zx", np.uint8(sample.input_zero_point))]
    y = [constant("sy", sample.output_scale), constant("zy", np.uint8(sample.output_zero_point))]
    nodes.append(helper.make_node("DequantizeLinear", [f"x{i}", *x], [f"dx{i}"]))
    w = [constant("w", sample.weights), constant("sw", lanes(sample.weight_scale)),
         constant("zw", lanes(sample.weight_zero_point.astype(sample.weights.dtype)))]
    nodes.append(helper.make_node("DequantizeLinear", w, [f"dw{i}"], axis=axis))
    operands = [f"dx{i}", f"dw{i}"]
    if sample.bias is not None:
        b = [constant("b", sample.bias), constant("sb", lanes(sample.input_scale * sample.weight_scale))]
        nodes.append(helper.make_node("DequantizeLinear", b, [f"db{i}"], axis=0))
        operands.append(f"db{i}")
    op = {"gemm": "Gemm", "matmul": "MatMul"}.get(sample.kind, "Conv")
    nodes.append(helper.make_node(op, operands, [f"f{i}"], **sample.attributes))
    nodes.append(helper.make_node("QuantizeLinear", [f"f{i}", *y], [f"y{i}"]))


def run_onnxruntime(model: bytes, inputs: list[np.ndarray], optimized_path: str) -> list[np.ndarray]:
    """Outputs of ONNX Runtime's CPU kernels; the optimized model goes to `optimized_path`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = optimized_path
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{i}": codes for i, codes in enumerate(inputs)})


def simulate(sample: Sample, rounding: str = "float_gain", activation: str = "none") -> np.ndarray:
    layer = weightmill.Layer(
        hwigo(sample.weights, sample.kind, sample.attributes.get("group", 1)), sample.bias,
        weight_zero_point=sample.weight_zero_point, input_dtype="uint8", input_zero_point=sample.input_zero_point,
        output_dtype="uint8", output_zero_point=sample.output_zero_point, input_scale=sample.input_scale,
        weight_scale=sample.weight_scale, output_scale=sample.output_scale, rounding=rounding, activation=activation)
    if sample.kind in ("gemm", "matmul"):
        return weightmill.simulate(layer, sample.input)
    return simulate_convolution(layer, sample.input, sample.attributes)


def simulate_convolution(layer: weightmill.Layer, codes: np.ndarray, attributes: dict,
                         run=weightmill.simulate) -> np.ndarray:
    """An ONNX convolution: channels come second; one spatial axis runs as two."""
    n_axes = codes.ndim - 2
    pads = list(zip(attributes["pads"][:n_axes], attributes["pads"][n_axes:]))
    stride, dilation = list(attributes["strides"]), list(attributes["dilations"])
    if n_axes == 1:
        codes, pads, stride, dilation = codes[:, :, None], [(0, 0), *pads], [1, *stride], [1, *dilation]
    layer.padding, layer.stride, layer.dilation = pads, stride, dilation
    output = np.moveaxis(run(layer, np.moveaxis(codes, 1, -1)), -1, 1)
    return output[:, :, 0] if n_axes == 1 else output


def hwigo(weights: np.ndarray, kind: str, groups: int) -> np.ndarray:
    """ONNX's weights as [h, w, I, G, O] or [d, h, w, I, G, O]."""
    if kind == "gemm":
        return weights.T[None, None, :, None, :]
    if kind == "matmul":
        return weights[None, None, :, None, :]
    if weights.ndim == 3:
        weights = weights[:, :, None]
    grouped = weights.reshape(groups, weights.shape[0] // groups, *weights.shape[1:])
    return np.moveaxis(grouped, (0, 1, 2), (-2, -1, -3))
