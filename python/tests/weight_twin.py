"""Weight-only quantization by its definition, in numpy: the twin that written models are held to (docs/weight-only.md)."""

import numpy as np
import onnx
from onnx import numpy_helper

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def scales_of(weights, weight_type, axis=None, block=0):
    """Scale and zero point of each group of weights, in the shape that DequantizeLinear takes."""
    grouped = np.asarray(weights, np.float32)
    if axis is None:
        low, high = grouped.min(initial=0), grouped.max(initial=0)
    elif block:
        shape = list(grouped.shape)
        shape[axis : axis + 1] = [shape[axis] // block, block]
        grouped = grouped.reshape(shape)
        low, high = grouped.min(axis + 1, initial=0), grouped.max(axis + 1, initial=0)
    else:
        others = tuple(i for i in range(grouped.ndim) if i != axis)
        low, high = grouped.min(others, initial=0), grouped.max(others, initial=0)
    low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
    first, last = LIMITS[weight_type]
    if first < 0:
        scale = np.maximum(-low, high) / np.float32(last)
    else:
        scale = ((high.astype(np.float64) - low) / last).astype(np.float32)
    dead = scale < np.finfo(np.float32).tiny
    scale = np.where(dead, np.float32(1), scale).astype(np.float32)
    zero = np.zeros(scale.shape, np.int32)
    if first == 0:
        zero = np.where(dead, 0, np.clip(np.rint(-low.astype(np.float64) / scale), 0, last)).astype(np.int32)
    farthest = np.maximum(zero, last - zero).astype(np.float32)
    with np.errstate(over="ignore"):
        bounded = np.nextafter(np.finfo(np.float32).max / farthest, np.float32(0))
        scale = np.where(np.isinf(scale * farthest), bounded, scale).astype(np.float32)
    return scale, zero


def spread(values, shape, axis, block=0):
    """Scales or zero points, one for each weight."""
    if axis is None:
        return np.broadcast_to(values, shape)
    if block:
        return np.repeat(values, block, axis)
    return np.broadcast_to(values.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def codes_of(weights, weight_type, axis=None, block=0):
    """Codes, scales and zero points."""
    scale, zero = scales_of(weights, weight_type, axis, block)
    s, z = spread(scale, weights.shape, axis, block), spread(zero, weights.shape, axis, block)
    first, last = LIMITS[weight_type]
    steps = np.asarray(weights, np.float32) / s
    return (np.rint(np.clip(steps, first - z, last - z)) + z).astype(np.int32), scale, zero


def dequantize_nodes(graph):
    """DequantizeLinear nodes by the name of their output, Casts behind them seen through."""
    nodes = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    for node in graph.node:
        if node.op_type == "Cast" and node.input[0] in nodes:
            nodes[node.output[0]] = nodes[node.input[0]]
    return nodes


def stored_weight(graph, node_name, input_number=1):
    """Codes as int32, scale, zero point or None, axis and block size behind an operator's input."""
    node = next(node for node in graph.node if node.name == node_name)
    dequantize = dequantize_nodes(graph)[node.input[input_number]]
    stored = {entry.name: entry for entry in graph.initializer}
    arrays = [numpy_helper.to_array(stored[name]) for name in dequantize.input]
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in dequantize.attribute}
    zero = arrays[2].astype(np.int32) if len(arrays) == 3 else None
    return arrays[0].astype(np.int32), arrays[1], zero, attributes.get("axis"), attributes.get("block_size", 0)


STEPS = {
    "int4": (8, 7, 7.5, 8.5, 9, 9.5, 10, 10.5, 11, 12, 13, 14),
    "int8": (127, 128, 132, 136, 140, 146, 152, 160, 170, 180, 195, 210),
}
KEPT = (1, 0.96, 0.92, 0.88, 0.84, 0.8, 0.76, 0.72, 0.66, 0.6, 0.54, 0.5)


def candidates(weights, weight_type, axis, block):
    """(scale, zero point) arrays that a search chooses from, of groups that are not dead."""
    weights = np.asarray(weights, np.float32)
    for i in range(12):
        if weight_type in STEPS:
            low = np.minimum(grouped_extreme(weights, np.min, axis, block), 0)
            high = np.maximum(grouped_extreme(weights, np.max, axis, block), 0)
            sign = np.where((weight_type == "int4") & (high > -low), -1, 1)
            peak = (sign * np.maximum(-low, high)).astype(np.float32)
            yield peak / np.float32(STEPS[weight_type][i]), np.zeros(peak.shape, np.int32)
        else:
            yield scales_of(weights * np.float32(KEPT[i]), weight_type, axis, block)


def grouped_extreme(weights, reduce, axis, block):
    if axis is None:
        return reduce(weights)
    if block:
        shape = list(weights.shape)
        shape[axis : axis + 1] = [shape[axis] // block, block]
        return reduce(weights.reshape(shape), axis=axis + 1)
    return reduce(weights, axis=tuple(i for i in range(weights.ndim) if i != axis))


def squared_errors(weights, scale, zero, weight_type, axis, block):
    """Of each group, and the codes."""
    first, last = LIMITS[weight_type]
    s, z = spread(scale, weights.shape, axis, block), spread(zero, weights.shape, axis, block)
    codes = np.rint(np.clip(weights.astype(np.float32) / s, first - z, last - z))
    errors = (codes * s.astype(np.float64) - weights) ** 2
    return grouped_extreme(errors, np.sum, axis, block), (codes + z).astype(np.int32)


def assert_searched_codes(graph, node_name, weights, weight_type, axis=None, block=0):
    """The operator's scales are among the candidates and lose least, but for the rounding of sums; the codes follow."""
    codes, scale, zero, stored_axis, stored_block = stored_weight(graph, node_name)
    zero = np.zeros(scale.shape, np.int32) if zero is None else zero
    assert (stored_axis, stored_block) == (axis, block)
    got, want_codes = squared_errors(weights, scale, zero, weight_type, axis, block)
    np.testing.assert_array_equal(codes, want_codes)
    known = np.zeros(scale.shape, bool)
    for candidate, candidate_zero in candidates(weights, weight_type, axis, block):
        errors, _ = squared_errors(weights, candidate, candidate_zero, weight_type, axis, block)
        assert (got <= errors * (1 + 1e-5)).all()
        known |= (scale == candidate) & (zero == candidate_zero)
    assert known.all()


def assert_codes(graph, node_name, weights, weight_type, axis=None, block=0, input_number=1):
    """The operator's weights are the twin's, bit for bit."""
    codes, scale, zero, stored_axis, stored_block = stored_weight(graph, node_name, input_number)
    want, want_scale, want_zero = codes_of(weights, weight_type, axis, block)
    np.testing.assert_array_equal(codes, want)
    np.testing.assert_array_equal(scale, want_scale)
    assert (stored_axis, stored_block) == (axis, block)
    if LIMITS[weight_type][0] < 0:
        assert zero is None
    else:
        np.testing.assert_array_equal(zero, want_zero)
