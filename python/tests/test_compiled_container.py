"""The TFLite file around NPU operators: everything in it survives, and what could not is refused."""

import struct

import numpy as np
import pytest

import weightmill

pytest.importorskip("ai_edge_litert")

from ai_edge_litert import schema_py_generated as schema
from toy_compiled import Builder, conv, geometry, loose_stream, payload_of, set_register, toy_model, toy_parts


def objects(data: bytes):
    return schema.ModelT.InitFromPackedBuf(data, 0)


def flat(value, path="model"):
    """Every leaf of an object tree, with its path."""
    if isinstance(value, (str, bytes, int, float, bool, type(None), np.generic)):
        yield path, value
    elif isinstance(value, np.ndarray):
        yield path, value.tolist()
    elif isinstance(value, list):
        yield path + ".length", len(value)
        for i, item in enumerate(value):
            yield from flat(item, f"{path}[{i}]")
    else:
        yield path + ".class", type(value).__name__
        for key, item in vars(value).items():
            yield from flat(item, f"{path}.{key}")


def squeeze_and_compare(builder: Builder, n_buffers: int) -> bytes:
    """Squeezes; all objects are equal but for `n_buffers` buffers, payloads and read-only data, and shapes of those."""
    data = builder.bytes()
    small = weightmill.squeeze(data)
    assert len(small) < len(data)
    assert (len(data) - len(small)) % 16 == 0
    before, after = dict(flat(objects(data))), dict(flat(objects(small)))
    assert before.keys() == after.keys()
    different = {path for path in before if before[path] != after[path]}
    buffers = {path for path in different if path.startswith("model.buffers")}
    shapes = {path for path in different if path.endswith(".shape")}
    assert different == buffers | shapes
    assert len(buffers) == n_buffers and 1 <= len(shapes) <= n_buffers
    return small


def test_one_operator():
    squeeze_and_compare(toy_model(), 2)


def test_two_operators_share_a_read_only_tensor():
    first, second, scales = loose_stream(1), loose_stream(2), bytes(range(1, 81))
    at = 80 + len(first)
    builder = Builder()
    read_only = builder.bytes_tensor(scales + first + second, "read_only")
    stop = set_register(0, 0xFFFF)
    builder.npu(payload_of(geometry() + conv(80, len(first), 0) + stop), read_only)
    builder.npu(payload_of(geometry() + conv(at, len(second), 0) + conv(80, len(first), 0) + stop), read_only)
    small = squeeze_and_compare(builder, 3)
    assert weightmill.squeeze(small) == small


def test_two_read_only_tensors():
    builder = Builder()
    for seed in (1, 5):
        payload, read_only = toy_parts(seed)
        builder.npu(payload, builder.bytes_tensor(read_only, f"read_only {seed}"))
    small = squeeze_and_compare(builder, 4)
    assert weightmill.squeeze(small) == small


OPTION_VECTORS = [
    (schema.BuiltinOptions.ConcatEmbeddingsOptions, schema.ConcatEmbeddingsOptionsT,
     {"numColumnsPerChannel": [1, 2], "embeddingDimPerChannel": [3, 4]}),
    (schema.BuiltinOptions.FullyConnectedOptions, schema.FullyConnectedOptionsT, {"quantSpec": [1, 2, 3]}),
    (schema.BuiltinOptions.ReshapeOptions, schema.ReshapeOptionsT, {"newShape": [1, 8]}),
    (schema.BuiltinOptions.SqueezeOptions, schema.SqueezeOptionsT, {"squeezeDims": [0]}),
    (schema.BuiltinOptions.VarHandleOptions, schema.VarHandleOptionsT, {"container": "c", "sharedName": "name"}),
    (schema.BuiltinOptions.BucketizeOptions, schema.BucketizeOptionsT, {"boundaries": [0.5, 1.5]}),
    (schema.BuiltinOptions.Conv2DOptions, schema.Conv2DOptionsT, {"strideW": 2, "strideH": 3}),
]


def add_cpu_operators(builder: Builder) -> None:
    for kind, make, fields in OPTION_VECTORS:
        inputs = [builder.tensor([1, 8], schema.TensorType.FLOAT32, np.arange(8, dtype=np.float32).tobytes()), -1]
        operator = builder.operator(builder.code(kind), inputs, [builder.tensor([1, 8], schema.TensorType.FLOAT32)])
        operator.builtinOptionsType, operator.builtinOptions = kind, make()
        for name, value in fields.items():
            setattr(operator.builtinOptions, name, value)
        operator.intermediates, operator.mutatingVariableInputs = inputs[:1], [True, False]


def decorate_tensors(builder: Builder) -> None:
    """Quantization with custom details, sparsity and a variant's sub-type."""
    tensor = builder.graph.tensors[-1]
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.scale, tensor.quantization.zeroPoint = [0.5], [3]
    tensor.quantization.min, tensor.quantization.max = [0.0], [1.0]
    tensor.quantization.detailsType = schema.QuantizationDetails.CustomQuantization
    tensor.quantization.details = schema.CustomQuantizationT()
    tensor.quantization.details.custom = [7, 8]
    tensor.shapeSignature = [-1, 8]
    tensor.sparsity = schema.SparsityParametersT()
    tensor.sparsity.traversalOrder, tensor.sparsity.blockMap = [0, 1], [0]
    tensor.sparsity.dimMetadata = []
    for kind, make in ((1, schema.Int32VectorT), (2, schema.Uint16VectorT), (3, schema.Uint8VectorT)):
        metadata = schema.DimensionMetadataT()
        metadata.arraySegmentsType = metadata.arrayIndicesType = kind
        metadata.arraySegments, metadata.arrayIndices = make(), make()
        metadata.arraySegments.values, metadata.arrayIndices.values = [0, 1], [1, 2, 3]
        tensor.sparsity.dimMetadata.append(metadata)
    variant = schema.VariantSubTypeT()
    variant.shape = [1, 2]
    tensor.variantTensors = [variant]


def add_signature_and_metadata(builder: Builder) -> None:
    signature, entry = schema.SignatureDefT(), schema.TensorMapT()
    entry.name, entry.tensorIndex = "input", 4
    signature.inputs, signature.outputs, signature.signatureKey = [entry], [entry], "serve"
    builder.model.signatureDefs = [signature]
    metadata = schema.MetadataT()
    metadata.name, metadata.buffer = "OfflineMemoryAllocation", builder.buffer(struct.pack("<3i", 0, 1, 2))
    builder.model.metadata = [metadata]
    builder.model.metadataBuffer = [1]


@pytest.mark.parametrize("npu_first", [True, False])
def test_everything_else_in_the_file_survives(npu_first):
    builder = Builder()
    payload, read_only = toy_parts()
    if npu_first:
        builder.npu(payload, builder.bytes_tensor(read_only, "read_only"))
    add_cpu_operators(builder)
    decorate_tensors(builder)
    add_signature_and_metadata(builder)
    if not npu_first:
        builder.npu(payload, builder.bytes_tensor(read_only, "read_only"))
    squeeze_and_compare(builder, 2)


@pytest.mark.parametrize("change, difference", [
    (lambda b: b.model.buffers[b.graph.tensors[b.graph.operators[2].inputs[0]].buffer].data.__setitem__(5, 77),
     "subgraph 0, operator 2: its input 0 differs"),
    (lambda b: setattr(b.graph.tensors[b.graph.operators[3].inputs[0]], "shape", [8, 1]), "subgraph 0, operator 3: its input 0 differs"),
    (lambda b: setattr(b.graph.tensors[b.graph.operators[3].inputs[0]], "type", schema.TensorType.INT32), "its input 0 differs"),
    (lambda b: setattr(b.graph.tensors[b.graph.operators[4].inputs[0]], "buffer", 0), "operator 4: another number of constant inputs"),
    (lambda b: setattr(b.graph.operators[1], "opcodeIndex", b.graph.operators[2].opcodeIndex), "operator 1: another CPU operator"),
    (lambda b: setattr(b.graph.operators[5], "customOptions", [1]), "operator 5: its custom options differ"),
    (lambda b: b.graph.operators.pop(), "7 CPU operators in the first, 6 in the second"),
])
def test_verify_compares_what_the_cpu_runs(change, difference, tmp_path):
    paths = tmp_path / "a.tflite", tmp_path / "b.tflite"
    for path, is_changed in zip(paths, (False, True), strict=True):
        builder = toy_model()
        add_cpu_operators(builder)
        for buffer in builder.model.buffers[1:]:
            buffer.data = np.array(buffer.data)
        if is_changed:
            change(builder)
        path.write_bytes(builder.bytes())
    assert difference in weightmill.compare_compiled(*paths)
    assert weightmill.compare_compiled(paths[0], paths[0]) is None


def refused(data: bytes, code: str, reason: str) -> None:
    with pytest.raises(weightmill.Error, match=reason) as caught:
        weightmill.squeeze(data)
    assert caught.value.code == code


def test_refuses_other_custom_options():
    builder = toy_model()
    builder.graph.operators[0].customOptions = [1, 4, 2]
    refused(builder.bytes(), "bad_file", "subgraph 0, operator 0: its custom options are not 01 04 01")


def test_refuses_custom_options_of_another_format():
    builder = toy_model()
    builder.graph.operators[0].customOptionsFormat = 1
    refused(builder.bytes(), "bad_file", "subgraph 0, operator 0: its custom options are not 01 04 01")


def test_refuses_too_few_inputs():
    builder = toy_model()
    builder.graph.operators[0].inputs = builder.graph.operators[0].inputs[:3]
    refused(builder.bytes(), "bad_file", "subgraph 0, operator 0: has 3 inputs")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("field, value", [("shape", [5]), ("shape", [1, 5]), ("type", schema.TensorType.INT8), ("shape", [])])
def test_refuses_tensors_that_are_not_their_bytes(which, field, value):
    builder = toy_model()
    tensor = builder.graph.tensors[builder.graph.operators[0].inputs[which]]
    setattr(tensor, field, value)
    refused(builder.bytes(), "bad_file", f"subgraph 0, operator 0: input {which} .* is not UINT8 of one dimension")


@pytest.mark.parametrize("which", [0, 1])
def test_refuses_shared_buffers(which):
    builder = toy_model()
    tensor = builder.graph.tensors[builder.graph.operators[0].inputs[which]]
    other = builder.tensor([4], schema.TensorType.UINT8)
    builder.graph.tensors[other].buffer = tensor.buffer
    refused(builder.bytes(), "bad_file", "shares its buffer")


@pytest.mark.parametrize("which", [0, 1])
def test_refuses_other_users_of_the_npus_tensors(which):
    builder = toy_model()
    tensor = builder.graph.operators[0].inputs[which]
    builder.operator(builder.code(22), [tensor], [builder.tensor([1], schema.TensorType.UINT8)])
    refused(builder.bytes(), "bad_file", f"subgraph 0, tensor {tensor}: .* something else uses it too")


@pytest.mark.parametrize("which", [0, 1])
def test_refuses_buffers_that_metadata_uses(which):
    builder = toy_model()
    metadata = schema.MetadataT()
    metadata.name, metadata.buffer = "copy", builder.graph.tensors[builder.graph.operators[0].inputs[which]].buffer
    builder.model.metadata = [metadata]
    refused(builder.bytes(), "bad_file", "shares its buffer")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_refuses_the_npus_tensors_as_the_networks_own(which, side):
    builder = toy_model()
    tensor = builder.graph.operators[0].inputs[which]
    setattr(builder.graph, side, [*getattr(builder.graph, side), tensor])
    refused(builder.bytes(), "bad_file", f"subgraph 0, tensor {tensor}: .* something else uses it too")


def test_refuses_one_operators_commands_as_another_ones_data():
    builder = toy_model()
    builder.npu(toy_parts()[0], builder.graph.operators[0].inputs[0])
    refused(builder.bytes(), "bad_file", "subgraph 0, tensor .* something else uses it too")


def test_refuses_a_command_tensor_of_two_operators():
    builder = toy_model()
    first = builder.graph.operators[0]
    second = builder.operator(builder.custom, list(first.inputs), list(first.outputs))
    second.customOptions = [1, 4, 1]
    refused(builder.bytes(), "bad_file", "subgraph 0, operator 1: shares its command tensor")


def test_refuses_data_behind_the_flatbuffer():
    builder = toy_model()
    builder.model.buffers[1].offset = 4096
    refused(builder.bytes(), "unsupported", "buffer 1 is stored behind the flatbuffer")
    builder = toy_model()
    builder.graph.operators[0].largeCustomOptionsOffset = 64
    refused(builder.bytes(), "unsupported", "subgraph 0, operator 0: has options behind the flatbuffer")


def test_refuses_newer_tables():
    builder = toy_model()
    operator = builder.operator(builder.code(206), [], [])
    operator.builtinOptions2Type = schema.BuiltinOptions2.StablehloConcatenateOptions
    operator.builtinOptions2 = schema.StablehloConcatenateOptionsT()
    refused(builder.bytes(), "unsupported", "an Operator has options of type 1")
    builder = toy_model()
    builder.graph.tensors[0].externalBuffer = 1
    refused(builder.bytes(), "unsupported", "a Tensor has field 10, of a newer schema")


def test_refuses_indices_out_of_range():
    for change in (
        lambda b: setattr(b.graph.operators[0], "opcodeIndex", 9),
        lambda b: setattr(b.graph.operators[0], "inputs", [99, 0, 0, 0]),
        lambda b: setattr(b.graph.tensors[0], "buffer", 99),
        lambda b: setattr(b.graph, "outputs", [99]),
    ):
        builder = toy_model()
        change(builder)
        refused(builder.bytes(), "bad_file", "of ")


def field_location(table, field: int) -> int:
    """Where field number `field` of a table of the schema module stands in the file."""
    return table._tab.Pos + table._tab.Offset(4 + 2 * field)


def redirected(data: bytes, location: int, target: int) -> bytes:
    """The file with the offset at `location` leading to `target`."""
    assert target > location
    return data[:location] + struct.pack("<I", target - location) + data[location + 4 :]


def target_of(data: bytes, location: int) -> int:
    return location + struct.unpack_from("<I", data, location)[0]


def test_refuses_vectors_of_two_owners():
    """Writers may share equal vectors; what is shared cannot change its length for one alone."""
    data = toy_model().bytes()
    graph = schema.Model.GetRootAs(data, 0).Subgraphs(0)
    shapes = sorted((field_location(graph.Tensors(i), 0) for i in range(graph.TensorsLength())), key=lambda at: target_of(data, at))
    payload_shape = field_location(graph.Tensors(graph.Operators(0).Inputs(0)), 0)
    other = next(at for at in shapes if at != payload_shape and target_of(data, payload_shape) > at)
    refused(redirected(data, other, target_of(data, payload_shape)), "unsupported", "the vector at byte .* is used for two things")


def test_refuses_strings_inside_what_would_move():
    """The description leads to word 4 of the payload, a filling action, which reads as a string of 5 characters."""
    data = toy_model().bytes()
    model = schema.Model.GetRootAs(data, 0)
    payload = model.Buffers(model.Subgraphs(0).Tensors(model.Subgraphs(0).Operators(0).Inputs(0)).Buffer())
    inside = target_of(data, field_location(payload, 0)) + 4 + 16
    refused(redirected(data, field_location(model, 3), inside), "unsupported", f"bytes {inside} to {inside + 9} are used for two things")


def test_refuses_broken_tables():
    data = toy_model().bytes()
    root = target_of(data, 0)
    refused(data[:root] + struct.pack("<i", root + 8) + data[root + 4 :], "bad_file", f"the table at byte {root} has no description")
    vtable = root - struct.unpack_from("<i", data, root)[0]
    for size in (0, 3):
        refused(data[:vtable] + struct.pack("<H", size) + data[vtable + 2 :], "bad_file", f"the table at byte {root} has a broken description")
    entry = vtable + 4 + 2 * 2
    refused(data[:entry] + struct.pack("<H", 60000) + data[entry + 2 :], "bad_file", f"field 2 of the table at byte {root} is outside the table")
    refused(redirected(data, 0, len(data) + 40), "bad_file", "outside the file")
    refused(data[:4] + b"TFL2" + data[8:], "bad_file", "is no TFLite file")


def test_every_cut_and_every_changed_offset_is_refused_or_harmless():
    data = toy_model().bytes()
    for size in range(0, len(data), 37):
        with pytest.raises(weightmill.Error):
            weightmill.squeeze(data[:size])
    rng = np.random.default_rng(1)
    for _ in range(2000):
        broken = bytearray(data)
        at = int(rng.integers(0, len(data)))
        broken[at] ^= int(rng.integers(1, 256))
        try:
            weightmill.squeeze(bytes(broken))
        except weightmill.Error as error:
            assert error.code in ("bad_file", "unsupported", "bad_stream")
