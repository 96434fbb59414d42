"""The TFLite reader against LiteRT: what the interpreter shows of a model, weightmill.load shows too, byte for byte."""

import os
import pathlib
import sys

import numpy as np
import pytest

import weightmill

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "testdata/tflite"))
interpreter = pytest.importorskip("ai_edge_litert.interpreter")
make_tflite = pytest.importorskip("make_tflite")

MODELS_DIR = pathlib.Path(os.environ.get("WEIGHTMILL_MODELS_DIR") or ROOT.parent / "shared/models")
REAL_MODELS = sorted(MODELS_DIR.rglob("*.tflite")) if MODELS_DIR.is_dir() else []
GOLDEN_DIR = pathlib.Path(os.environ.get("WEIGHTMILL_GOLDEN_DIR") or ROOT.parent / "shared/golden")
no_models = pytest.mark.skipif(not REAL_MODELS, reason="models not installed: set WEIGHTMILL_MODELS_DIR")

# Types that numpy has no word for, which LiteRT shows as something else.
OPAQUE = {"RESOURCE": "object", "STRING": "bytes", "VARIANT": "object"}


def open_litert(model):
    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    kernels = interpreter.OpResolverType.BUILTIN_REF
    return interpreter.Interpreter(**source, experimental_op_resolver_type=kernels)


def write(folder, model: bytes) -> pathlib.Path:
    path = folder / "m.tflite"
    path.write_bytes(model)
    return path


def check_tensor(ours, theirs, litert):
    quantization = theirs["quantization_parameters"]
    assert ours.name == theirs["name"]
    assert ours.shape == tuple(theirs["shape"])
    assert OPAQUE.get(ours.dtype, ours.dtype) == np.dtype(theirs["dtype"]).name
    assert np.array_equal(np.array(ours.scale, np.float32), quantization["scales"])
    assert ours.zero_point == list(quantization["zero_points"])
    if len(ours.scale) > 1:
        assert ours.axis == quantization["quantized_dimension"]
    if ours.data is not None:
        values = litert.get_tensor(theirs["index"])
        assert ours.data.tobytes() == values.tobytes()
        assert np.array_equal(ours.numpy(), values) or np.isnan(values).any()


def check_against_litert(path):
    litert, model = open_litert(path), weightmill.load(path)
    details = litert.get_tensor_details()
    assert details
    for theirs in details:
        check_tensor(model.subgraphs[0].tensors[theirs["index"]], theirs, litert)
    assert model.subgraphs[0].inputs == [d["index"] for d in litert.get_input_details()]
    assert model.subgraphs[0].outputs == [d["index"] for d in litert.get_output_details()]


def litert_loads(path):
    try:
        open_litert(path)
    except (RuntimeError, ValueError):
        return False
    return True


@no_models
@pytest.mark.parametrize("path", REAL_MODELS, ids=lambda path: path.stem)
def test_every_real_model_reads_as_litert_reads_it(path):
    if litert_loads(path):
        check_against_litert(path)
    else:  # older converters gave biases an axis that LiteRT refuses today
        assert weightmill.load(path).subgraphs[0].nodes


@pytest.mark.skipif(not (GOLDEN_DIR / "tflops").is_dir(), reason="tflops not installed: set WEIGHTMILL_GOLDEN_DIR")
def test_single_operator_models_read_as_litert_reads_them():
    refusals = []
    for path in sorted((GOLDEN_DIR / "tflops").glob("*.tflite")):
        if not litert_loads(path):
            continue
        try:
            check_against_litert(path)
        except weightmill.Error as error:
            refusals.append(str(error))
    # A convolution without options is loaded by LiteRT too, which then refuses its stride of 0.
    assert [text for text in refusals if "has no options" not in text] == []


@pytest.mark.parametrize("name", ["conv_int8", "conv_uint8", "conv_int16", "shared_buffer", "lstm", "svdf",
                                  "data_behind"])
def test_made_models_read_as_litert_reads_them(tmp_path, name):
    check_against_litert(write(tmp_path, make_tflite.MODELS[name]()))


@pytest.mark.parametrize("width", ["int32", "uint16", "uint8"])
@pytest.mark.parametrize("dtype, block", [("float32", (1, 1)), ("float32", (1, 4)), ("int8", (1, 1)), ("int8", (4, 2)),
                                          ("float16", (2, 1)), ("int8", (1, 16))])
def test_sparse_tensors_are_what_litert_densifies(tmp_path, dtype, block, width):
    for seed in range(5):
        dense = make_tflite.random_sparse((8, 32), dtype, seed)
        path = write(tmp_path, make_tflite.sparse_matrix(dense, block, width))
        litert = open_litert(path)
        litert.allocate_tensors()
        litert.invoke()
        tensor = weightmill.load(path).subgraphs[0].tensors[0]
        assert tensor.sparse
        assert np.array_equal(litert.get_tensor(1), dense)
        assert np.array_equal(tensor.numpy(), dense)


def test_int4_is_unpacked_low_nibble_first(tmp_path):
    tensor = weightmill.load(write(tmp_path, make_tflite.int4_fully_connected())).subgraphs[0].tensors[1]
    assert tensor.dtype == "int4"
    assert tensor.data.size == 8
    assert np.array_equal(tensor.numpy(), (np.arange(15) % 16 - 8).reshape(3, 5))


def test_constants_are_views_that_outlive_the_model(tmp_path):
    path = write(tmp_path, make_tflite.conv())
    weights = weightmill.load(path).subgraphs[0].tensors[1].numpy()
    path.unlink()
    assert not weights.flags.owndata and not weights.flags.writeable
    assert np.array_equal(weights, np.random.default_rng(1).integers(0, 100, (3, 2, 2, 4)))


def test_nodes_and_custom_operators(tmp_path):
    node = weightmill.load(write(tmp_path, make_tflite.custom_operator())).subgraphs[0].nodes[0]
    assert (node.op_name, node.custom, node.inputs, node.outputs) == ("ethos-u", True, [0], [1])
    assert node.custom_options.tolist() == [1, 4, 1]
    node = weightmill.load(write(tmp_path, make_tflite.lstm())).subgraphs[0].nodes[0]
    assert node.op_name == "UNIDIRECTIONAL_SEQUENCE_LSTM" and len(node.intermediates) == 5


def test_an_activation_has_no_array(tmp_path):
    tensor = weightmill.load(write(tmp_path, make_tflite.conv())).subgraphs[0].tensors[0]
    assert tensor.data is None
    with pytest.raises(ValueError, match="no constant"):
        tensor.numpy()


def test_a_name_need_not_be_sound_utf8(tmp_path):
    path = write(tmp_path, make_tflite.custom_operator().replace(b"ethos-u", b"ethos\xff\n"))
    assert weightmill.load(path).subgraphs[0].nodes[0].op_name == "ethos\ufffd\n"


@pytest.mark.parametrize("content, says", [(b"", "is no model"), (b"hello, this is text", "is no model"),
                                           (b"\0\0\0\0TFL3", "damaged")])
def test_what_is_no_model_is_refused(tmp_path, content, says):
    with pytest.raises(weightmill.Error, match=says) as caught:
        weightmill.load(write(tmp_path, content))
    assert caught.value.code == "bad_file"


def test_a_cut_model_is_refused(tmp_path):
    with pytest.raises(weightmill.Error, match="m.tflite"):
        weightmill.load(write(tmp_path, make_tflite.data_behind()[:-1]))


def test_the_seeds_of_the_fuzzer_are_what_the_script_makes():
    for name, make in make_tflite.MODELS.items():
        assert (ROOT / f"fuzz/seeds/tflite/{name}.tflite").read_bytes() == make(), name
