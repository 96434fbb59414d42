"""Float OpenVINO models, and the integers that stand in their weights' places once they are quantized."""

import dataclasses

import numpy as np
import openvino as ov
from openvino import opset13 as op

import weightmill
from ir_models import constant, unpack
from openvino_engine import OPTIONS

CORE = ov.Core()
EXACT = {**OPTIONS, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
FLOATS = {"f32": ov.Type.f32, "f16": ov.Type.f16, "bf16": ov.Type.bf16}


def quantized(model, path, **options):
    """`model`, an ov.Model or a path, quantized and read again; and the report."""
    source = path / "in.xml"
    if isinstance(model, ov.Model):
        ov.serialize(model, str(source))
    else:
        source = model
    report = weightmill.quantize(source, path / "out.xml", weights_only=True, **options)
    return CORE.read_model(path / "out.xml"), report


@dataclasses.dataclass
class Stored:
    """Weights as integers. `codes`, `scale` and `zero` (or None) are as stored, `block` is 0 without blocks."""

    kind: str
    codes: np.ndarray
    scale: np.ndarray
    zero: np.ndarray | None
    shape: tuple
    reads: str

    def values(self):
        """float32, in the operator's shape."""
        steps = self.codes if self.zero is None else self.codes - self.zero
        return (steps.astype(np.float32) * self.scale).reshape(self.shape)


def _integers(node):
    return unpack(node).reshape(list(node.get_output_shape(0)))


def _source(node, number):
    return node.input_value(number).get_node()


def stored(node, number=1):
    """What is behind input `number` of an operator; None where no integers are."""
    node = _source(node, number)
    shape, reads, zero = tuple(node.get_output_shape(0)), node.get_output_element_type(0).get_type_name(), None
    while node.get_type_name() in ("Convert", "Reshape"):
        node = _source(node, 0)
    if node.get_type_name() != "Multiply" or _source(node, 1).get_type_name() != "Constant":
        return None
    scale, node = _source(node, 1).get_data(), _source(node, 0)
    if node.get_type_name() not in ("Convert", "Subtract"):
        return None
    if node.get_type_name() == "Subtract":
        convert, node = _source(node, 1), _source(node, 0)
        assert convert.get_type_name() == "Convert"
        zero = _integers(_source(convert, 0))
    codes = _source(node, 0)
    assert node.get_type_name() == "Convert" and codes.get_type_name() == "Constant"
    kind = codes.get_output_element_type(0).get_type_name()
    return Stored(kind, _integers(codes), scale, zero, shape, reads)


def operator(model, name):
    return next(node for node in model.get_ops() if node.get_friendly_name() == name)


def with_float_weights(model):
    """The model with integers evaluated: what it means."""
    model = model.clone()
    for node in model.get_ordered_ops():
        for number in range(node.get_input_size() if node.get_type_name() in WEIGHTED else 0):
            found = stored(node, number)
            if found is not None:
                node.input(number).replace_source_output(constant(found.values(), found.reads).output(0))
    return model


WEIGHTED = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Gather")


def compiled(model):
    return CORE.compile_model(model, "CPU", EXACT)


def random_inputs(model, seed=3):
    random = np.random.default_rng(seed)
    types = {"f32": np.float32, "f16": np.float16}
    return [
        random.normal(0, 1, list(port.shape)).astype(types[port.get_element_type().get_type_name()])
        if port.get_element_type().get_type_name() in types
        else random.integers(0, 7, list(port.shape))
        for port in model.inputs
    ]


def outputs(model, inputs):
    return [np.array(value) for value in compiled(model)(inputs).values()]


def assert_runs_as_it_means(model, inputs=None, rtol=3e-6):
    """OpenVINO gives what the dequantized weights give, but for the order of float sums."""
    inputs = random_inputs(model) if inputs is None else inputs
    for want, got in zip(outputs(with_float_weights(model), inputs), outputs(model, inputs), strict=True):
        assert np.isfinite(want).all()
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * max(1e-30, np.abs(want).max()))


def weight_types(model):
    """Element types of the weights that FullyConnected layers of the compiled model have."""
    types = []
    for node in compiled(model).get_runtime_model().get_ops():
        if node.get_rt_info()["layerType"].astype(str) == "FullyConnected":
            types.append(node.input(1).get_element_type().get_type_name())
    return types


# Float models


def layer(kind, name, weights, x, reads="f32", **options):
    """An operator called `name` over constant weights of type `reads`, or that and a Convert to it from `stored`."""
    kept = options.pop("stored", reads)
    w = constant(weights, kept)
    w.set_friendly_name(name + "_w")
    if kept != reads:
        w = op.convert(w, reads)
    strides = [1] * (np.ndim(weights) - (3 if kind.startswith("group") else 2))
    if kind == "matmul":
        node = op.matmul(x, w, options.get("a", False), options.get("b", False))
    elif kind == "left":
        node = op.matmul(w, x, options.get("a", False), options.get("b", False))
    elif kind.endswith("conv"):
        make = op.group_convolution if kind.startswith("group") else op.convolution
        node = make(x, w, strides, [1, 1], [1, 1], strides)
    else:
        make = op.group_convolution_backprop_data if kind.startswith("group") else op.convolution_backprop_data
        node = make(x, w, [2, 2])
    node.set_friendly_name(name)
    return node


# name -> kind, shape of the weights, of the input, options, axes of the output channels
LAYERS = {
    "conv": ("conv", (8, 3, 3, 3), (1, 3, 6, 6), {}, (0,)),
    "depthwise": ("group_conv", (8, 1, 1, 3, 3), (1, 8, 6, 6), {}, (0, 1)),
    "grouped": ("group_conv", (2, 3, 4, 3, 3), (1, 8, 6, 6), {}, (0, 1)),
    "up": ("backprop", (8, 6, 2, 2), (1, 8, 4, 4), {}, (1,)),
    "up_grouped": ("group_backprop", (2, 4, 3, 2, 2), (1, 8, 4, 4), {}, (0, 2)),
    "up_grouped_points": ("group_backprop", (2, 4, 3, 1, 1), (1, 8, 4, 4), {}, (0, 2)),
    "up_depthwise": ("group_backprop", (8, 1, 1, 2, 2), (1, 8, 4, 4), {}, (0, 2)),
    "product": ("matmul", (64, 24), (5, 64), {}, (1,)),
    "turned": ("matmul", (24, 64), (5, 64), {"b": True}, (0,)),
    "both_turned": ("matmul", (24, 64), (64, 5), {"a": True, "b": True}, (0,)),
    "square": ("matmul", (64, 64), (5, 64), {"b": True}, (0,)),
    "batch": ("matmul", (3, 64, 24), (3, 5, 64), {}, (2,)),
    "batch_of_one": ("matmul", (1, 24, 64), (3, 5, 64), {"b": True}, (1,)),
    "left": ("left", (24, 64), (64, 5), {}, (0,)),
    "left_turned": ("left", (64, 24), (64, 5), {"a": True}, (1,)),
    "vector": ("matmul", (64,), (5, 64), {}, ()),
}
MATRICES = [name for name, (kind, *_) in LAYERS.items() if kind in ("matmul", "left") and name != "vector"]
#: Those that OpenVINO computes in FullyConnected with packed weights.
COMPRESSED = ["product", "turned", "both_turned", "square", "batch_of_one"]


def weights_for(name, seed=1):
    """Channels of very different sizes."""
    shape, axes = LAYERS[name][1], LAYERS[name][4]
    random = np.random.default_rng([seed, len(name)])
    spread = [extent if i in axes else 1 for i, extent in enumerate(shape)]
    return (random.normal(0, 1, shape) * np.exp(random.normal(0, 1, spread))).astype(np.float32)


def model_of(names, reads="f32", stored_type=None, seed=1):
    """Layers side by side, and their weights as they are stored."""
    parameters, results, weights = [], [], {}
    for name in names:
        kind, _, x_shape, options, _ = LAYERS[name]
        x = op.parameter(list(x_shape), {"f32": np.float32, "f16": np.float16, "bf16": ov.Type.bf16}[reads])
        values = weights_for(name, seed)
        node = layer(kind, name, values, x, reads, **options, **({"stored": stored_type} if stored_type else {}))
        parameters.append(x)
        results.append(op.result(node))
        kept = stored_type or reads
        if kept == "f16":
            values = values.astype(np.float16).astype(np.float32)
        elif kept == "bf16":
            from ir_models import to_bf16_bits

            values = (to_bf16_bits(values).astype(np.uint32) << 16).view(np.float32)
        weights[name] = values
    return ov.Model(results, parameters), weights
