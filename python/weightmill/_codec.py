"""Weight streams of Ethos-U: numpy arrays in, bytes out, and back."""

import numpy as np

from weightmill import _weightmill
from weightmill._error import Error


def encode(weights, effort: str = "reference", forms: str = "proven") -> bytes:
    """Compresses weights for the weight decoder of Ethos-U55, U65 and U85.

    weights: N integers in [-255, 255] in the order in which the NPU wants them: an array of any integer type or a list.
    effort: "reference" gives the bytes of ethosu.mlw_codec, "regor" those of Vela's default compiler core;
        "fast", "best" and "max" give smaller streams, and never larger ones from "best" on.
    forms: what these three use of the format: "proven", as Vela's encoders do, or "all" that it allows.
    Returns a multiple of 16 bytes that decode() turns back into the weights; b"" for N = 0.
    Raises Error (bad_request) for a weight out of range, an array that is not one-dimensional or not of integers.
    """
    return _weightmill.encode(_int16(weights), effort, forms)


def decode(stream, max_weights: int = _weightmill.max_weights) -> np.ndarray:
    """Decompresses a weight stream, or several behind one another, into an int16 array.

    Raises Error (bad_stream) if the stream breaks a rule of the format or holds more than max_weights weights.
    """
    return _weightmill.decode(stream, max_weights)


def encode_fast(weights, force_raw: bool = False) -> bytes:
    """Compresses weights for the fast weight decoder of Ethos-U85: 2, 4 or 8 bits each. force_raw: 8 bits in any case.

    Raises Error: bad_request as encode(); unsupported where the weights do not fit 8 bits.
    """
    return _weightmill.encode_fast(_int16(weights), force_raw)


def decode_fast(stream, n_weights: int) -> np.ndarray:
    """Decompresses the first n_weights weights of a fast stream, which does not say how many it holds.

    Raises Error (bad_stream) if the stream is too short or its header contradicts itself.
    """
    return _weightmill.decode_fast(stream, n_weights)


def stream_statistics(stream) -> dict:
    """What a weight stream is made of: slices, palettes, codes, passes of the decoder's loop, bits of headers and end.

    Raises Error (bad_stream) as decode().
    """
    return _weightmill.stream_statistics(stream)


def _int16(weights) -> np.ndarray:
    """The weights as a contiguous int16 array, refused where that would change one."""
    array = np.asarray(weights)
    if array.ndim != 1:
        raise Error(f"weights: have {array.ndim} dimensions, must have 1: put them in the order of the NPU first")
    if array.size == 0:
        return np.empty(0, np.int16)
    if array.dtype.kind not in "iu":
        raise Error(f"weights: are of type {array.dtype}, must be integers")
    if array.dtype != np.int16:
        _check_range(array)
    return np.ascontiguousarray(array, dtype=np.int16)


def _check_range(array: np.ndarray) -> None:
    outside = np.flatnonzero((array < -255) | (array > 255))
    if outside.size:
        raise Error(f"weight {outside[0]}: is {array[outside[0]]}, must be in -255..255: take the zero point off first")
