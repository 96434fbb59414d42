"""Makes small TFLite models, each to show one thing of the container; `python make_tflite.py FOLDER` writes all."""

import pathlib
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {"float32": "FLOAT32", "float16": "FLOAT16", "int8": "INT8", "uint8": "UINT8", "int16": "INT16",
         "int32": "INT32", "int64": "INT64"}


class Builder:
    """A model of one subgraph, put together tensor by tensor."""

    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "made by make_tflite.py"
        self.model.buffers = [schema.BufferT()]  # buffer 0 is the empty one
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs = [self.graph]

    def buffer(self, data) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(bytes(data), np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def tensor(self, name, shape, dtype, scale=(), zero_point=None, axis=0, buffer=0) -> int:
        """`dtype`: numpy's name, or a name of the schema."""
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
        tensor.type = getattr(schema.TensorType, TYPES.get(dtype, dtype))
        tensor.quantization = schema.QuantizationParametersT()
        if len(scale):
            tensor.quantization.scale = [float(s) for s in scale]
            tensor.quantization.zeroPoint = list(zero_point or [0] * len(scale))
            tensor.quantization.quantizedDimension = axis
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, name, values, **quantization) -> int:
        return self.tensor(name, values.shape, values.dtype.name, buffer=self.buffer(values.tobytes()), **quantization)

    def operator(self, name, inputs, outputs, options=None, custom=None):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.customCode = custom
        self.model.operatorCodes.append(code)
        op = schema.OperatorT()
        op.opcodeIndex = len(self.model.operatorCodes) - 1
        op.inputs, op.outputs = list(inputs), list(outputs)
        if options is not None:
            op.builtinOptions = options
            op.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
        self.graph.operators.append(op)
        return op

    def bytes(self, inputs, outputs) -> bytes:
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)
        builder = flatbuffers.Builder()
        builder.Finish(self.model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def conv_options(stride=1):
    options = schema.Conv2DOptionsT()
    options.strideH = options.strideW = stride
    options.dilationHFactor = options.dilationWFactor = 1
    return options


def conv(weight_dtype="int8", bias_dtype="int32", io_dtype="int8", per_channel=True) -> bytes:
    """A convolution of 3 output and 4 input channels."""
    build, random = Builder(), np.random.default_rng(1)
    channels = 3 if per_channel else 1
    weights = random.integers(0, 100, (3, 2, 2, 4)).astype(weight_dtype)
    x = build.tensor("x", [1, 6, 6, 4], io_dtype, [0.5])
    w = build.constant("w", weights, scale=[0.25] * channels, zero_point=[0 if per_channel else 3] * channels)
    b = build.constant("b", np.arange(3).astype(bias_dtype), scale=[0.125] * channels)
    y = build.tensor("y", [1, 6, 6, 3], io_dtype, [1.0])
    build.operator("CONV_2D", [x, w, b], [y], conv_options())
    return build.bytes([x], [y])


def int4_fully_connected() -> bytes:
    """Weights of 3 x 5 values from -8 to 7, two to a byte, the low half first."""
    build = Builder()
    values = (np.arange(15) % 16 - 8) & 15
    nibbles = np.append(values, 0).astype(np.uint8).reshape(-1, 2)
    packed = nibbles[:, 0] | nibbles[:, 1] << 4
    x = build.tensor("x", [1, 5], "int8", [0.5])
    w = build.tensor("w", [3, 5], "INT4", [0.5], buffer=build.buffer(packed.tobytes()))
    y = build.tensor("y", [1, 3], "int8", [0.5])
    build.operator("FULLY_CONNECTED", [x, w, -1], [y], schema.FullyConnectedOptionsT())
    return build.bytes([x], [y])


def shared_buffer() -> bytes:
    """Two weight tensors with the bytes of one buffer."""
    build = Builder()
    x = build.tensor("x", [1, 4, 4, 2], "int8", [0.5])
    w = build.constant("w", np.ones((2, 1, 1, 2), np.int8), scale=[0.5])
    again = build.tensor("w again", [2, 1, 1, 2], "int8", [0.25], buffer=build.graph.tensors[w].buffer)
    y, z = (build.tensor(name, [1, 4, 4, 2], "int8", [0.5]) for name in "yz")
    build.operator("CONV_2D", [x, w, -1], [y], conv_options())
    build.operator("CONV_2D", [y, again, -1], [z], conv_options())
    return build.bytes([x], [z])


def custom_operator() -> bytes:
    """A custom operator with options, as compiled models have one."""
    build = Builder()
    x, y = (build.tensor(name, [1, 4], "int8", [0.5]) for name in "xy")
    op = build.operator("CUSTOM", [x], [y], custom="ethos-u")
    op.customOptions = np.array([1, 4, 1], np.uint8)
    return build.bytes([x], [y])


def index_vector(values, width):
    table = {"int32": schema.Int32VectorT, "uint16": schema.Uint16VectorT, "uint8": schema.Uint8VectorT}[width]()
    table.values = np.asarray(values, width)
    return getattr(schema.SparseIndexVector, type(table).__name__.removesuffix("T")), table


def sparse_matrix(dense, block=(1, 1), width="int32") -> bytes:
    """A DENSIFY operator over a matrix stored by rows of blocks, of which only those with anything in them are kept."""
    build = Builder()
    rows, columns = dense.shape[0] // block[0], dense.shape[1] // block[1]
    blocks = dense.reshape(rows, block[0], columns, block[1]).transpose(0, 2, 1, 3)
    kept = blocks.reshape(rows, columns, -1).any(axis=-1)
    cut = [axis for axis in (0, 1) if block[axis] > 1]
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder = list(range(2 + len(cut)))
    sparsity.blockMap = cut
    levels = [dense_level(rows), sparse_level(kept, width)] + [dense_level(block[axis]) for axis in cut]
    sparsity.dimMetadata = levels
    stored = np.ascontiguousarray(blocks[kept])
    w = build.tensor("w", dense.shape, dense.dtype.name, buffer=build.buffer(stored.tobytes()))
    build.graph.tensors[w].sparsity = sparsity
    y = build.tensor("y", dense.shape, dense.dtype.name)
    build.operator("DENSIFY", [w], [y], schema.DensifyOptionsT())
    return build.bytes([], [y])


def dense_level(size):
    level = schema.DimensionMetadataT()
    level.format, level.denseSize = schema.DimensionType.DENSE, size
    return level


def sparse_level(kept, width):
    level = schema.DimensionMetadataT()
    level.format = schema.DimensionType.SPARSE_CSR
    level.arraySegmentsType, level.arraySegments = index_vector(np.append(0, np.cumsum(kept.sum(axis=1))), width)
    level.arrayIndicesType, level.arrayIndices = index_vector(np.nonzero(kept)[1], width)
    return level


def random_sparse(shape, dtype, seed, density=0.3):
    random = np.random.default_rng(seed)
    return (random.integers(1, 100, shape) * (random.random(shape) < density)).astype(dtype)


def data_behind() -> bytes:
    """A convolution whose weights lie behind the flatbuffer, as in files of more than 2 GB."""
    build = Builder()
    x = build.tensor("x", [1, 4, 4, 2], "int8", [0.5])
    w = build.constant("w", np.ones((2, 1, 1, 2), np.int8), scale=[0.5])
    y = build.tensor("y", [1, 4, 4, 2], "int8", [0.5])
    build.operator("CONV_2D", [x, w, -1], [y], conv_options())
    behind, build.model.buffers[1] = build.model.buffers[1].data, schema.BufferT()
    place = build.model.buffers[1]
    place.offset = place.size = 1
    place.offset, place.size = -(-len(build.bytes([x], [y])) // 16) * 16, len(behind)
    return build.bytes([x], [y]).ljust(place.offset, b"\0") + behind.tobytes()


def lstm() -> bytes:
    """An LSTM with its state and intermediates; the numbers mean nothing."""
    build = Builder()
    x = build.tensor("x", [1, 2, 3], "int8", [0.5])
    w = [build.constant(f"w{i}", np.full((2, 3 if i < 4 else 2), i, np.int8), scale=[0.5]) for i in range(8)]
    b = [build.constant(f"b{i}", np.zeros(2, np.int32), scale=[0.25]) for i in range(4)]
    state, cell = build.tensor("state", [1, 2], "int8", [0.5]), build.tensor("cell", [1, 2], "int16", [2.0**-11])
    for i in (state, cell):
        build.graph.tensors[i].isVariable = True
    y = build.tensor("y", [1, 2, 2], "int8", [0.5])
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    inputs = [x, *w, -1, -1, -1, *b, -1, -1, state, cell, -1, -1, -1, -1]
    op = build.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], options)
    op.intermediates = [build.tensor(f"i{i}", [0], "float32") for i in range(5)]
    return build.bytes([x], [y])


def svdf() -> bytes:
    build = Builder()
    x = build.tensor("x", [1, 3], "int8", [0.5])
    features = build.constant("features", np.ones((4, 3), np.int8), scale=[0.5])
    time = build.constant("time", np.ones((4, 2), np.int16), scale=[0.5])
    state = build.tensor("state", [1, 8], "int16", [0.5])
    build.graph.tensors[state].isVariable = True
    y = build.tensor("y", [1, 4], "int8", [0.5])
    options = schema.SVDFOptionsT()
    options.rank = 1
    build.operator("SVDF", [x, features, time, -1, state], [y], options)
    return build.bytes([x], [y])


MODELS = {
    "conv_int8": conv,
    "conv_uint8": lambda: conv("uint8", io_dtype="uint8", per_channel=False),
    "conv_int16": lambda: conv(bias_dtype="int64", io_dtype="int16"),
    "int4_fully_connected": int4_fully_connected,
    "shared_buffer": shared_buffer,
    "custom_operator": custom_operator,
    "sparse_rows": lambda: sparse_matrix(random_sparse((4, 6), "float32", 1), width="uint8"),
    "sparse_blocks": lambda: sparse_matrix(random_sparse((8, 8), "int8", 2), (4, 2), width="uint16"),
    "data_behind": data_behind,
    "lstm": lstm,
    "svdf": svdf,
}


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        (folder / f"{name}.tflite").write_bytes(make())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
