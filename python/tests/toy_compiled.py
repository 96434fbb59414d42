"""Small compiled models made from scratch: a driver payload, its read-only data, and TFLite files around them."""

import struct

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import weightmill

U55_128 = 0x00001807


def set_register(opcode: int, value: int) -> bytes:
    return struct.pack("<HH", opcode, value)


def set_address(opcode: int, value: int) -> bytes:
    return struct.pack("<HHI", opcode | 0x4000, 0, value)


def payload_of(commands: bytes) -> bytes:
    """A COP1 payload for U55-128."""
    n_words = len(commands) // 4
    action = 2 | (n_words >> 16) << 8 | (n_words & 0xFFFF) << 16
    return b"COP1" + struct.pack("<7I", 0x00100001, U55_128, 0x10066001, 5, 5, 5, action) + commands


def geometry() -> bytes:
    """Feature maps of 1 x 1 x 8 bytes in region 1, a 1 x 1 kernel: 256 weights."""
    words = b""
    for region, precision, width, base, stride, at in ((0x10F, 0x105, 0x10A, 0x000, 0x004, 0x8000),
                                                       (0x11F, 0x114, 0x11A, 0x010, 0x014, 0x9000)):
        words += set_register(region, 1) + set_register(precision, 1 << 8)
        words += b"".join(set_register(width + i, 0) for i in range(3)) + set_address(base, at)
        words += b"".join(set_address(stride + i, 8) for i in range(3))
    for opcode, value in ((0x104, 7), (0x113, 7), (0x117, 7), (0x120, 0), (0x121, 0), (0x122, 0)):
        words += set_register(opcode, value)
    return words


def conv(weights_at: int, size: int, scales_at: int) -> bytes:
    """A convolution that reads in place."""
    words = set_register(0x128, 0) + set_register(0x129, 0)
    words += set_address(0x20, weights_at) + set_address(0x21, size) + set_address(0x22, scales_at) + set_address(0x23, 80)
    return words + set_register(0x002, 0)


def loose_stream(seed: int) -> bytes:
    """A stream of 256 weights with 48 bytes that squeezing takes out."""
    weights = np.random.default_rng(seed).integers(-9, 10, 256)
    return weightmill.encode(weights) + b"\xff" * 48


def toy_parts(seed: int = 0, n_convolutions: int = 2) -> tuple[bytes, bytes]:
    """(payload, read_only): convolutions with streams of their own and shared scales."""
    scales, commands, read_only = bytes(range(1, 81)), geometry(), b""
    for i in range(n_convolutions):
        stream = loose_stream(seed + i)
        commands += conv(len(scales) + len(read_only), len(stream), 0)
        read_only += stream
    return payload_of(commands + set_register(0, 0xFFFF)), scales + read_only


class Builder:
    """Builds a TFLite model object by object."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "toy"
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs = [self.graph]
        self.custom = self.code(32, "ethos-u")

    def code(self, builtin: int, custom: str | None = None) -> int:
        code = schema.OperatorCodeT()
        code.deprecatedBuiltinCode, code.builtinCode, code.customCode, code.version = min(builtin, 127), builtin, custom, 1
        self.model.operatorCodes.append(code)
        return len(self.model.operatorCodes) - 1

    def buffer(self, data: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def tensor(self, shape: list, dtype: int, data: bytes | None = None, name: str = "t") -> int:
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.name = shape, dtype, name
        tensor.buffer = 0 if data is None else self.buffer(data)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def bytes_tensor(self, data: bytes, name: str) -> int:
        return self.tensor([len(data)], schema.TensorType.UINT8, data, name)

    def operator(self, code: int, inputs: list, outputs: list) -> schema.OperatorT:
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = code, inputs, outputs
        self.graph.operators.append(operator)
        return operator

    def npu(self, payload: bytes, read_only: int) -> schema.OperatorT:
        """An ethos-u operator on a read-only tensor made before."""
        commands = self.bytes_tensor(payload, "commands")
        scratch = self.tensor([4096], schema.TensorType.UINT8, name="scratch")
        input, output = (self.tensor([1, 1, 1, 8], schema.TensorType.INT8) for _ in range(2))
        operator = self.operator(self.custom, [commands, read_only, scratch, scratch, input], [output])
        operator.customOptions = [1, 4, 1]
        self.graph.inputs, self.graph.outputs = [*self.graph.inputs, input], [*self.graph.outputs, output]
        return operator

    def bytes(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        # Alignment of buffers as compilers write them: the object API alone aligns bytes to 4.
        builder.Finish(pack_aligned(self.model, builder), b"TFL3")
        return bytes(builder.Output())


def pack_aligned(model, builder) -> int:
    """ModelT.Pack() with every buffer's data aligned to 16 bytes."""
    original = schema.BufferT.Pack

    def pack(buffer, b):
        if buffer.data is None or len(buffer.data) == 0:
            return original(buffer, b)
        data = bytes(bytearray(buffer.data))
        b.StartVector(1, len(data), 16)
        b.head = b.head - len(data)
        b.Bytes[b.head : b.head + len(data)] = data
        vector = b.EndVector()
        schema.BufferStart(b)
        schema.BufferAddData(b, vector)
        if buffer.offset:
            schema.BufferAddOffset(b, buffer.offset)
        return schema.BufferEnd(b)

    schema.BufferT.Pack = pack
    try:
        return model.Pack(builder)
    finally:
        schema.BufferT.Pack = original


def toy_model() -> Builder:
    """One NPU operator."""
    payload, read_only = toy_parts()
    builder = Builder()
    builder.npu(payload, builder.bytes_tensor(read_only, "read_only"))
    return builder
