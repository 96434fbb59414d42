"""The weight codecs: properties, refusals, and byte for byte against the installed Vela."""

import os
import pathlib
import sys

import numpy as np
import pytest

import weightmill
from weight_kinds import random_weights
from weightmill.compat import mlw_codec

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

N_CASES = 100_000 if os.environ.get("WEIGHTMILL_LONG") else 10_000


@pytest.fixture(scope="module")
def vela_codec():
    return pytest.importorskip("ethosu.mlw_codec", reason="ethos-u-vela is not installed")


@pytest.fixture(scope="module")
def regor_codec():
    from vela_codecs import RegorCodec

    try:
        return RegorCodec()
    except ImportError as error:
        pytest.skip(str(error))


def test_reference_makes_the_bytes_of_vela(vela_codec):
    for seed in range(N_CASES):
        weights = random_weights(seed)
        stream = bytes(vela_codec.encode(weights.tolist()))
        assert weightmill.encode(weights) == stream, f"seed {seed}"
        assert np.array_equal(weightmill.decode(stream), weights), f"seed {seed}"


def test_reference_makes_the_bytes_of_vela_for_large_inputs(vela_codec):
    for seed in range(40):
        weights = random_weights(seed, max_size=200_000)
        assert weightmill.encode(weights) == bytes(vela_codec.encode(weights.tolist())), f"seed {seed}"


def test_regor_makes_the_bytes_of_velas_default_core(regor_codec):
    for seed in range(N_CASES):
        weights = random_weights(seed)
        stream = regor_codec.encode(weights)
        assert weightmill.encode(weights, "regor") == stream, f"seed {seed}"
        assert np.array_equal(weightmill.decode(stream), weights), f"seed {seed}"


def test_regor_makes_the_bytes_of_velas_default_core_for_whole_sections(regor_codec):
    for seed in range(40):
        weights = random_weights(seed, max_size=131_072)  # what the core hands to its codec at a time
        assert weightmill.encode(weights, "regor") == regor_codec.encode(weights), f"seed {seed}"


def test_fast_format_makes_the_bytes_of_velas_default_core(regor_codec):
    for seed in range(2000):
        weights = random_weights(seed)
        try:
            stream = regor_codec.encode(weights, regor_codec.FAST)
        except ValueError:
            with pytest.raises(weightmill.Error):
                weightmill.encode_fast(weights)
            continue
        assert weightmill.encode_fast(weights) == stream, f"seed {seed}"
        assert np.array_equal(weightmill.decode_fast(stream, weights.size), weights), f"seed {seed}"


@pytest.mark.parametrize("effort", ["reference", "regor"])
def test_vela_decodes_our_streams(vela_codec, effort):
    for seed in range(500):
        weights = random_weights(seed)
        assert vela_codec.decode(bytearray(weightmill.encode(weights, effort))) == weights.tolist(), f"seed {seed}"


def test_accepts_every_integer_type_and_list():
    expected = weightmill.encode(np.array([1, 2, 3], np.int16))
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, ">i2"):
        assert weightmill.encode(np.array([1, 2, 3], dtype)) == expected
    assert weightmill.encode([1, 2, 3]) == expected
    assert weightmill.encode(np.array([1, 9, 2, 9, 3, 9])[::2]) == expected


def test_decode_accepts_everything_that_has_bytes():
    stream = weightmill.encode([1, 2, 3])
    for form in (bytes, bytearray, memoryview, lambda stream: np.frombuffer(stream, np.uint8)):
        assert weightmill.decode(form(stream)).tolist() == [1, 2, 3]
    assert weightmill.decode(stream).dtype == np.int16


@pytest.mark.parametrize(
    "weights, message",
    [
        (np.array([0, 256], np.int16), "weight 1: is 256"),
        (np.array([0, 1, -256], np.int64), "weight 2: is -256"),
        (np.array([2**16], np.uint32), "weight 0: is 65536"),
        (np.array([1.0]), "float64"),
        (np.array([True]), "bool"),
        ([2**70], "object"),
        ([[1]], "2 dimensions"),
    ],
)
def test_refuses_what_is_no_list_of_weights(weights, message):
    with pytest.raises(weightmill.Error, match=message) as error:
        weightmill.encode(weights)
    assert error.value.code == "bad_request"


def test_refuses_an_unknown_effort():
    with pytest.raises(weightmill.Error, match="reference, regor") as error:
        weightmill.encode([1], "hardest")
    assert error.value.code == "bad_option"


def test_empty_input_is_an_empty_stream_and_no_stream_is_refused():
    assert weightmill.encode([]) == b""
    assert mlw_codec.encode([]) == bytearray()
    with pytest.raises(weightmill.Error, match="ends"):
        weightmill.decode(b"")


def test_refuses_every_truncation():
    stream = weightmill.encode(random_weights(3, 400))
    last = len(stream.rstrip(b"\xff"))  # what is cut off behind it is filling
    for size in range(last):
        with pytest.raises(weightmill.Error) as error:
            weightmill.decode(stream[:size])
        assert error.value.code == "bad_stream"


def test_refuses_more_weights_than_wanted():
    stream = weightmill.encode(np.zeros(5000, np.int16))
    assert weightmill.decode(stream, max_weights=5000).size == 5000
    with pytest.raises(weightmill.Error, match="more than 4999 weights"):
        weightmill.decode(stream, max_weights=4999)


def test_statistics_add_up():
    statistics = weightmill.stream_statistics(weightmill.encode([0] * 900 + [5, 6] * 50))
    assert statistics["weights"] == 1000
    assert statistics["streams"] == 1
    assert sum(statistics["slices_of_weight_code"]) == sum(statistics["slices_of_run_code"]) == statistics["slices"]
    assert statistics["zero_run_slices"] >= 1


def outcome(function, *args, **kwargs):
    """What a call gives: its result, or the kind and text of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


class WithoutInteger:
    def __index__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "args",
    [
        ((1, 2),), (np.ones(3, int),), (b"ab",), ("ab",), ({1: 2},), (5,), (None,),
        ([1.5],), (["a"],), ([None],), ([2**70],), ([256],), ([-256],), ([2**62],), ([2**32],), ([WithoutInteger(), 3],),
        (["a", 300],), ([300, "a"],), ([2**70, 300],), ([True, np.int8(3), -7],), ([1], 1.5), ([1], "a"), ([1], None),
        ([0] * 100,), ([1, 2, 3], 0),
    ],
)  # fmt: skip
def test_drop_in_encode_accepts_and_refuses_as_the_original(vela_codec, args):
    assert outcome(mlw_codec.encode, *args) == outcome(vela_codec.encode, *args)


@pytest.mark.parametrize("args", [(b"ab",), ("ab",), (None,), ([1],), (bytearray(b"\xff"), 1.5), (bytearray(b"\xff" * 16),)])
def test_drop_in_decode_accepts_and_refuses_as_the_original(vela_codec, args):
    assert outcome(mlw_codec.decode, *args) == outcome(vela_codec.decode, *args)


def test_drop_in_takes_positions_only():
    for call in (lambda: mlw_codec.encode(input=[1]), lambda: mlw_codec.decode(input=bytearray(16))):
        with pytest.raises(TypeError):
            call()


def test_drop_in_round_trips(vela_codec):
    for seed in range(300):
        weights = random_weights(seed).tolist()
        stream = mlw_codec.encode(weights)
        assert type(stream) is bytearray and stream == vela_codec.encode(weights)
        assert mlw_codec.decode(stream) == weights


def test_drop_in_decode_raises_where_the_original_ends_the_process():
    stream = mlw_codec.encode([1, 2, 3] * 100)
    for broken in (bytearray(), stream[:10], bytearray(b"\x04" * 16)):
        with pytest.raises(ValueError):
            mlw_codec.decode(broken)
