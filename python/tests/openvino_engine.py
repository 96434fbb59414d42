"""Runs QDQ layers of qdq_samples in OpenVINO's CPU plug-in and says which kernel each of them met."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import onnx
import openvino

import qdq_samples

OPTIONS = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}
WEIGHTED = ("Convolution", "FullyConnected", "MatMul")


def has_vnni() -> bool:
    """Whether the processor multiplies uint8 by int8 without saturating."""
    info = pathlib.Path("/proc/cpuinfo")
    return info.exists() and "vnni" in info.read_text()


def fit(sample: qdq_samples.Sample) -> qdq_samples.Sample:
    """The sample as far as OpenVINO runs it right: int8 weights without zero points, biases below 2^20, no window in
    padding alone."""
    weights, scale = sample.weights, sample.weight_scale
    if weights.dtype == np.uint8:
        weights = (weights.astype(np.int16) - 128).astype(np.int8)
    bias = None if sample.bias is None else np.clip(sample.bias, -(2**20), 2**20)
    attributes = dict(sample.attributes)
    if "pads" in attributes:  # else sums, or even the output's extents, come out wrong
        most = [(kernel - 1) * dilation for kernel, dilation in zip(attributes["kernel_shape"], attributes["dilations"])]
        attributes["pads"] = [min(pad, limit) for pad, limit in zip(attributes["pads"], most * 2)]
    zero = np.zeros(scale.size, np.int64)
    return dataclasses.replace(sample, weights=weights, weight_zero_point=zero, bias=bias, attributes=attributes)


def run(samples: list[qdq_samples.Sample], relu: bool = False) -> tuple[list[np.ndarray], list[str]]:
    """(output codes, kernel) of each sample, with a ReLU behind each layer if wanted."""
    model = qdq_samples.onnx_model(samples)
    model = with_relu(model) if relu else model
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", OPTIONS)
    results = compiled.create_infer_request().infer({f"x{i}": sample.input for i, sample in enumerate(samples)})
    return [results[compiled.output(f"y{i}")] for i in range(len(samples))], kernels_of(compiled, len(samples))


def with_relu(model: bytes) -> bytes:
    """The model with a ReLU in front of each QuantizeLinear."""
    parsed = onnx.load_model_from_string(model)
    nodes = []
    for node in parsed.graph.node:
        if node.op_type == "QuantizeLinear":
            nodes.append(onnx.helper.make_node("Relu", [node.input[0]], [node.input[0] + "_relu"]))
            node.input[0] += "_relu"
        nodes.append(node)
    del parsed.graph.node[:]
    parsed.graph.node.extend(nodes)
    return parsed.SerializeToString()


def kernels_of(compiled, n_samples: int) -> list[str]:
    """"brgconv_avx512_I8" and so on, of the layer that became f{i}."""
    kernels = {}
    for op in compiled.get_runtime_model().get_ops():
        info = op.get_rt_info()
        if info["layerType"].astype(str) in WEIGHTED:
            kernels[op.get_friendly_name().split("/")[0]] = info["primitiveType"].astype(str)
    return [kernels.get(f"f{i}") or kernels[f"y{i}"] for i in range(n_samples)]


def run_model(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of a whole ONNX model, activations in float32 as they stand."""
    core = openvino.Core()
    exact = {**OPTIONS, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", exact)
    results = compiled.create_infer_request().infer(inputs)
    return [results[output] for output in compiled.outputs]
