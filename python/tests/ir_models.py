"""Random OpenVINO models of fake-quantized constants, and what their folded forms hold."""

import numpy as np
import openvino as ov
from openvino import opset8 as op

# `constant()` in OpenVINO's Python API checks ranges that a model file need not keep: tensors are made by hand.
_TYPES = {"f32": ov.Type.f32, "f16": ov.Type.f16, "bf16": ov.Type.bf16}


def to_bf16_bits(values: np.ndarray) -> np.ndarray:
    """To nearest, ties to even; NaN stays NaN."""
    bits = np.atleast_1d(values).astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(np.atleast_1d(values)), np.uint16(0x7FC0), rounded).reshape(np.shape(values))


def constant(values, dtype="f32"):
    values = np.asarray(values, np.float32)
    tensor = ov.Tensor(_TYPES[dtype], ov.Shape(list(values.shape)))
    if dtype == "bf16":
        tensor.data.view(np.uint16)[...] = to_bf16_bits(values)
    else:
        tensor.data[...] = values.astype(np.float32 if dtype == "f32" else np.float16)
    return ov.op.Constant(tensor)


def random_limits_shape(random, shape):
    rank = len(shape)
    kind = random.choice(["tensor", "ones", "channel", "channel", "element"])
    if kind == "tensor" or rank == 0:
        return []
    if kind == "ones":
        return [1] * int(random.integers(1, rank + 1))
    if kind == "element":
        return list(shape)
    axis = int(random.integers(0, rank))
    return [extent if i == axis else 1 for i, extent in enumerate(shape)]


def _limits(random, shape, levels):
    """A pair of limits of one of the shapes that quantizers choose."""
    high = np.abs(random.normal(size=shape)) * float(2.0 ** random.integers(-6, 6)) + 1e-3
    mode = random.choice(["symmetric", "asymmetric", "unsigned", "full", "integral", "offset", "inverted"])
    if mode == "symmetric":
        low = -high
    elif mode == "asymmetric":
        low, high = -high * random.random(), high * random.random() + 0.01
    elif mode == "unsigned":
        low = 0 * high
    elif mode == "full":
        low = -high * (levels // 2) / (levels - 1 - levels // 2)
    elif mode == "integral":
        step, below = high / 16, int(random.integers(0, levels))
        low, high = -step * below, step * (levels - 1 - below)
    elif mode == "offset":
        low, high = high, high * 3
    else:
        low, high = high, -high
    return np.asarray(low, np.float32), np.asarray(high, np.float32)


def random_case(random, special=False):
    """A FakeQuantize over a constant. `special`: some weights are NaN, Inf and such."""
    dtype = str(random.choice(["f32", "f32", "f32", "f16", "bf16"]))
    shape = [int(x) for x in random.integers(1, 9, random.integers(0, 5))]
    levels = int(
        random.choice(
            [3, 4, 15, 16, 16, 17, 100, 128, 200, 201, 254, 255, 255, 255, 256, 256, 256, random.integers(3, 257)]
        )
    )
    limits_shape = random_limits_shape(random, shape)
    low, high = _limits(random, limits_shape, levels)
    out_low, out_high = low, high
    if random.random() < 0.2:
        other = random_limits_shape(random, shape)
        out_high = np.asarray(np.abs(random.normal(size=other)) + 1e-3, np.float32)
        out_low = np.asarray(-out_high * random.random(), np.float32) if random.random() < 0.7 else np.float32(-1)
    if random.random() < 0.05:
        out_low = out_high = np.zeros(limits_shape, np.float32)
    weights = random.normal(size=shape) * float(2.0 ** random.integers(-6, 6))
    if random.random() < 0.5:  # on the grid and half-way between its points
        step = np.broadcast_to((high - low) / (levels - 1), shape)
        weights = np.broadcast_to(low, shape) + random.integers(-4, 2 * levels + 8, shape) / 2 * step
    weights = np.array(weights, np.float32).reshape(shape)
    if special and random.random() < 0.1 and weights.size:
        weights.reshape(-1)[random.integers(0, weights.size)] = random.choice([np.nan, np.inf, -np.inf, 3e38, 1e-42])
    return dict(dtype=dtype, levels=levels, weights=weights, limits=[low, high, out_low, out_high])


def quantize_node(case):
    dtype = case["dtype"]
    return op.fake_quantize(
        constant(case["weights"], dtype), *[constant(x, dtype) for x in case["limits"]], case["levels"]
    )


def model_of(nodes, names):
    for node, name in zip(nodes, names, strict=True):
        node.set_friendly_name(name)
    return ov.Model([op.result(node) for node in nodes], [])


def random_chain(random):
    """FakeQuantize -> Convert(integer) -> Convert(float) -> [Subtract] -> Multiply over a constant."""
    dtype = str(random.choice(["f32", "f32", "f16", "bf16"]))
    shape = [int(x) for x in random.integers(1, 7, random.integers(1, 4))]
    code_type = str(random.choice(["i8", "u8", "i4", "u4", "i16", "u16"]))
    bits = int(code_type[1:])
    lowest = -(2 ** (bits - 1)) if code_type[0] == "i" else 0
    highest = lowest + 2**bits - 1
    levels = min(
        65536,
        int(
            random.choice(
                [highest - lowest + 1, highest - lowest, random.integers(2, min(70000, 4 * (highest - lowest)))]
            )
        ),
    )
    limits_shape = random_limits_shape(random, shape)
    low = -(np.abs(random.normal(size=limits_shape)) + 0.1).astype(np.float32)
    high = (np.abs(random.normal(size=limits_shape)) + 0.1).astype(np.float32)
    out_low, out_high = [
        (lowest, highest),
        (lowest * 0.37, highest * 0.41),
        (lowest * 1.7 - 3, highest * 1.6 + 1),
        (int(random.integers(0, 5)), highest),
    ][random.integers(0, 4)]
    case = dict(
        dtype=dtype,
        levels=levels,
        weights=random.normal(size=shape).astype(np.float32),
        limits=[low, high, out_low, out_high],
    )
    back = op.convert(op.convert(quantize_node(case), code_type), dtype)
    if bits <= 8 and random.random() < 0.6:
        zero = random.choice(
            [random.integers(-5, 6), random.integers(-5, 6) + 0.25, random.integers(lowest, highest + 1), 1e-5, 5e-5]
        )
        back = op.subtract(back, constant(np.full(limits_shape, zero) if random.random() < 0.5 else zero, dtype))
    return op.multiply(back, constant(0.5, dtype))


def unpack(node):
    """Codes of an integer Constant, row-major."""
    kind = node.get_output_element_type(0).get_type_name()
    data = node.get_data().reshape(-1)
    if kind not in ("i4", "u4"):
        return data.astype(np.int64)
    data = data.view(np.uint8)
    codes = (
        np.stack([data & 15, data >> 4], axis=1)
        .reshape(-1)[: int(np.prod(list(node.get_output_shape(0))))]
        .astype(np.int64)
    )
    return (codes ^ 8) - 8 if kind == "i4" else codes


def _bits(node):
    data = node.get_data()
    return tuple(node.get_output_shape(0)), np.ascontiguousarray(data).tobytes()


def dequantizations(model):
    """Name of each Multiply -> (type, shape, codes, scale and zero point as shape and bits); None where it was left."""
    found = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Multiply":
            continue
        source, scale, zero = node.input_value(0).get_node(), node.input_value(1).get_node(), None
        if source.get_type_name() == "Subtract":
            zero = _bits(source.input_value(1).get_node())
            source = source.input_value(0).get_node()
        codes = source.input_value(0).get_node()
        if codes.get_type_name() != "Constant":
            found[node.get_friendly_name()] = None
            continue
        found[node.get_friendly_name()] = (
            codes.get_output_element_type(0).get_type_name(),
            tuple(codes.get_output_shape(0)),
            unpack(codes).tolist(),
            _bits(scale),
            zero,
        )
    return found


def count(model, kind):
    return sum(node.get_type_name() == kind for node in model.get_ordered_ops())
