"""Drop-in for `ethosu.mlw_codec` of Vela 5.2.0: same functions, same bytes, errors instead of exits.

Differences: decode() raises weightmill.Error, a ValueError, where the original ends the process or decodes garbage;
encode([]) returns an empty bytearray instead of 16 bytes that cannot be decoded; `verbose` is taken and prints nothing.
"""

import operator

from weightmill import _weightmill


def encode(input, verbose=0, /):
    """list of integers in [-255, 255] -> bytearray. Raises ValueError, or TypeError for an object without length."""
    operator.index(verbose)
    if len(input) and not isinstance(input, list):
        raise ValueError("Invalid input")
    return _weightmill.mlw_encode_list(input) if len(input) else bytearray()


def decode(input, verbose=0, /):
    """bytearray -> list of int. Raises TypeError for anything but a bytearray, ValueError for a broken stream."""
    operator.index(verbose)
    if not isinstance(input, bytearray):
        name = "None" if input is None else type(input).__name__
        raise TypeError(f"argument 1 must be bytearray, not {name}")
    return _weightmill.mlw_decode_list(input)
