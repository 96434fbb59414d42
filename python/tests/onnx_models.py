"""Small ONNX models with QuantizeLinear over constants, made from a seed."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Code types by name: TensorProto type, lowest and highest code, the operator set that first has them.
CODES = {
    "int8": (TensorProto.INT8, -128, 127, 10),
    "uint8": (TensorProto.UINT8, 0, 255, 10),
    "int16": (TensorProto.INT16, -32768, 32767, 21),
    "uint16": (TensorProto.UINT16, 0, 65535, 21),
    "int4": (TensorProto.INT4, -8, 7, 21),
    "uint4": (TensorProto.UINT4, 0, 15, 21),
    "int2": (TensorProto.INT2, -2, 1, 25),
    "uint2": (TensorProto.UINT2, 0, 3, 25),
}


def tensor(name, values, data_type=TensorProto.FLOAT):
    """A tensor with raw data; codes of 4 and 2 bits go through onnx's own packing."""
    values = np.asarray(values)
    if data_type == TensorProto.FLOAT:
        return numpy_helper.from_array(values.astype(np.float32), name)
    if data_type == TensorProto.FLOAT16:
        return numpy_helper.from_array(values.astype(np.float16), name)
    return helper.make_tensor(name, data_type, values.shape, values.ravel().tolist())


def value(name, shape=None, data_type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, data_type, shape)


def model(nodes, initializers, inputs, outputs, opset=21, ir_version=10, functions=(), domains=()):
    """A checked ModelProto."""
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(initializers))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(name, 1) for name in domains]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    made.ir_version = ir_version
    onnx.checker.check_model(made)
    return made


def scale_shape(shape, granularity, axis, block):
    """Shape of the scales: per tensor, per axis or blocked."""
    if granularity == "tensor":
        return ()
    if granularity == "axis":
        return (shape[axis],)
    return tuple(-(-extent // block) if i == axis % len(shape) else extent for i, extent in enumerate(shape))


def dequantized(
    rng,
    name,
    shape,
    code="int8",
    granularity="axis",
    axis=0,
    block=4,
    zero_point=True,
    opset=None,
    data_type=TensorProto.FLOAT,
    weights=None,
):
    """Nodes and initialisers of `name` = DequantizeLinear(QuantizeLinear(weights))."""
    data_type_of_codes, low, high, since = CODES[code]
    scales = np.exp(rng.normal(-2, 0.5, scale_shape(shape, granularity, axis, block)))
    weights = rng.normal(0, 4, shape) * np.mean(scales) * min(high, 40) if weights is None else weights
    initializers = [tensor(name + "_w", weights, data_type), tensor(name + "_s", scales, data_type)]
    inputs = [name + "_w", name + "_s"]
    attributes, quantize_only = {}, {}
    if granularity != "tensor":
        attributes["axis"] = axis
    if granularity == "block":
        attributes["block_size"] = block
    if zero_point:
        points = rng.integers(low, high + 1, scales.shape)
        initializers.append(tensor(name + "_z", points, data_type_of_codes))
        inputs.append(name + "_z")
    elif (opset or since) >= 21:
        quantize_only["output_dtype"] = data_type_of_codes
    nodes = [
        helper.make_node(
            "QuantizeLinear", inputs, [name + "_q"], name=name + "_quantize", **attributes, **quantize_only
        ),
        helper.make_node(
            "DequantizeLinear", [name + "_q", *inputs[1:]], [name], name=name + "_dequantize", **attributes
        ),
    ]
    return nodes, initializers
