"""Our safetensors and npy files against the packages that define them: each reads what the other writes."""

import io

import numpy as np
import pytest

import weightmill
from weightmill import _weightmill

safetensors_numpy = pytest.importorskip("safetensors.numpy")
safe_open = pytest.importorskip("safetensors").safe_open

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64"]


def random_array(random, dtype):
    shape = tuple(random.integers(0, 5, random.integers(0, 4)))
    return np.asarray(random.random(shape) * 100).astype(dtype)


def as_bytes(array):
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def as_entry(name, array):
    return name, array.dtype.name, list(array.shape), as_bytes(array)


def random_tensors(seed):
    random = np.random.default_rng(seed)
    count = random.integers(0, 12)
    return {f"layer.{i} \u00fc \"x\"": random_array(random, random.choice(DTYPES)) for i in range(count)}


@pytest.mark.parametrize("seed", range(30))
def test_safetensors_reads_what_we_write(tmp_path, seed):
    tensors = random_tensors(seed)
    path = tmp_path / "t.safetensors"
    _weightmill.write_safetensors(path, [as_entry(*item) for item in tensors.items()], {"seed": str(seed)})
    theirs = safetensors_numpy.load_file(path)
    assert theirs.keys() == tensors.keys()
    for name, array in tensors.items():
        assert theirs[name].dtype == array.dtype and np.array_equal(theirs[name], array)
    with safe_open(path, "np") as file:
        assert file.metadata() == {"seed": str(seed)}


@pytest.mark.parametrize("seed", range(30))
def test_we_read_what_safetensors_writes(tmp_path, seed):
    tensors = random_tensors(seed)
    path = tmp_path / "t.safetensors"
    safetensors_numpy.save_file(tensors, path, metadata={"seed": str(seed)})
    ours, metadata = _weightmill.read_safetensors(path)
    assert metadata == {"seed": str(seed)}
    assert {name for name, *_ in ours} == tensors.keys()
    for name, dtype, shape, data in ours:
        assert (dtype, shape) == (tensors[name].dtype.name, tensors[name].shape)
        assert data.tobytes() == tensors[name].tobytes()


def test_safetensors_and_we_refuse_the_same_damage(tmp_path):
    path = tmp_path / "t.safetensors"
    _weightmill.write_safetensors(path, [as_entry("a", np.arange(5, dtype=np.int16))], {})
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole + b"\0", whole.replace(b"[0,10]", b"[0,12]"), whole.replace(b"I16", b"I64"),
                    whole[:9], b""):
        path.write_bytes(damaged)
        with pytest.raises(Exception):
            safetensors_numpy.load_file(path)
        with pytest.raises(weightmill.Error):
            _weightmill.read_safetensors(path)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_npy_files_are_numpy_s_byte_for_byte(tmp_path, dtype, seed):
    array = random_array(np.random.default_rng(seed), dtype)
    path = tmp_path / "a.npy"
    _weightmill.write_npy(path, dtype, list(array.shape), as_bytes(array))
    expected = io.BytesIO()
    np.save(expected, array)
    assert path.read_bytes() == expected.getvalue()


def test_a_long_npy_header_is_version_2_like_numpy_s(tmp_path):
    shape = (1,) * 32
    array = np.ones(shape, np.int8)
    path = tmp_path / "a.npy"
    _weightmill.write_npy(path, "int8", list(shape), as_bytes(array))
    assert np.array_equal(np.load(path), array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_we_read_what_numpy_saves(tmp_path, dtype, order, version):
    array = random_array(np.random.default_rng(7), np.dtype(dtype).newbyteorder(order))
    path = tmp_path / "a.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    name, shape, data = _weightmill.read_npy(path)
    assert (name, shape) == (dtype, array.shape)
    assert np.array_equal(data.view(name).reshape(shape), array)


@pytest.mark.parametrize("array, says", [
    (np.asfortranarray(np.ones((2, 3), np.int16)), "ascontiguousarray"),
    (np.array([{}, 1], dtype=object), "pickled"),
    (np.zeros(2, dtype=[("x", "<i2")]), "records"),
    (np.zeros(2, dtype=complex), "'<c16'"),
    (np.array(["text"]), "type"),
])
def test_other_arrays_are_refused_with_a_remedy(tmp_path, array, says):
    path = tmp_path / "a.npy"
    np.save(path, array)
    with pytest.raises(weightmill.Error, match=says) as caught:
        _weightmill.read_npy(path)
    assert caught.value.code == "unsupported"
