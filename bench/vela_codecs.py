"""The codecs of the installed Vela, as black boxes to be measured and compared with."""

import ctypes
import importlib.util

import numpy as np


class RegorCodec:
    """The weight codec of Vela's default compiler core, through the C functions that its extension module exports.

    raises ImportError where Vela is not installed.
    """

    STANDARD, FAST = 0, 2

    def __init__(self) -> None:
        spec = importlib.util.find_spec("ethosu.regor")
        if spec is None or spec.origin is None:
            raise ImportError("ethos-u-vela is not installed")
        self._library = ctypes.CDLL(spec.origin)
        self._library.mle_create_context.restype = ctypes.c_void_p
        self._library.mle_encode.restype = ctypes.c_int
        self._library.mle_free.restype = None
        self._library.mle_destroy_context.restype = None

    def encode(self, weights: np.ndarray, syntax: int = STANDARD) -> bytes:
        """The stream of an int16 array."""
        weights = np.ascontiguousarray(weights, np.int16)
        context = ctypes.c_void_p(self._library.mle_create_context(syntax))
        result = _Result()
        size = self._library.mle_encode(
            context, ctypes.byref(result), ctypes.c_void_p(weights.ctypes.data), ctypes.c_size_t(weights.size), 0
        )
        try:
            if size < 0:
                raise ValueError("Regor cannot encode these weights")
            return ctypes.string_at(result.data, size)
        finally:
            self._library.mle_free(ctypes.byref(result))
            self._library.mle_destroy_context(context)


class _Result(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint32), ("unknown", ctypes.c_uint32 * 61)]
