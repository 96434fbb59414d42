"""Drop-in for `ethosu.mlw_codec` of Vela 5.2.0: same functions, same bytes, errors instead of exits.

Differences: decode() raises weightmill.Error, a ValueError, where the original ends the process or decodes garbage;
encode([]) returns an empty bytearray instead of 16 bytes that cannot be decoded; `verbose` is taken and prints nothing.
"""

import operator

import numpy as np

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


def reorder_encode(
    ifm_ublock_depth,
    ofm_ublock_depth,
    input,
    ofm_block_depth,
    is_depthwise,
    is_partkernel,
    ifm_bitdepth,
    decomp_h,
    decomp_w,
    verbose=0,
    /,
):
    """Reorders weights [O, H, W, I] for the NPU and compresses them -> (bytearray, number of reordered weights).

    input: an array castable to int16, or nested lists of integers. Raises ValueError for input that is no such volume,
    for weights outside -255..255 and for depths and extents that are not positive.
    """
    numbers = (ifm_ublock_depth, ofm_ublock_depth, ofm_block_depth, ifm_bitdepth, decomp_h, decomp_w, verbose)
    ifm_ublock_depth, ofm_ublock_depth, ofm_block_depth, ifm_bitdepth, decomp_h, decomp_w, _ = map(
        operator.index, numbers
    )
    depthwise, part_kernel = bool(operator.index(is_depthwise)), bool(operator.index(is_partkernel))
    volume = _int16_volume(input)
    if depthwise and part_kernel:  # one input channel with the rounding of the part-kernel traversal
        volume, ifm_ublock_depth, depthwise = np.ascontiguousarray(volume[..., :1]), 1, False
    traversal = "depthwise" if depthwise else "part_kernel_first" if part_kernel else "depth_first"
    geometry = _weightmill.geometry("ethos-u55-128", traversal)
    geometry.ifm_ublock_depth, geometry.ofm_ublock_depth = ifm_ublock_depth, ofm_ublock_depth
    geometry.ofm_block_depth, geometry.ifm_bits = ofm_block_depth, ifm_bitdepth
    geometry.sub_kernel_height, geometry.sub_kernel_width = decomp_h, decomp_w
    return _weightmill.reorder_encode(volume, 0, geometry, "reference", "proven")


def _int16_volume(input) -> np.ndarray:
    """The first four dimensions of an array as contiguous int8, uint8 or int16. Raises ValueError with the original's texts."""
    try:
        array = input if isinstance(input, np.ndarray) else _array_of_lists(input)
        if not np.can_cast(array.dtype, np.int16, "safe"):
            raise TypeError(array.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError("Invalid input array") from error
    if array.ndim < 4:
        raise ValueError("Invalid input shape")
    for axis, name in ((0, "output depth"), (3, "input depth"), (1, "kernel height"), (2, "kernel width")):
        if array.shape[axis] == 0:
            raise ValueError(f"Invalid {name}")
    array = array[(slice(None),) * 4 + (0,) * (array.ndim - 4)]
    keeps_type = array.dtype in (np.int8, np.uint8)
    return np.ascontiguousarray(array, dtype=array.dtype if keeps_type else np.int16)


def _array_of_lists(lists) -> np.ndarray:
    array = np.asarray(lists)
    if array.dtype.kind not in "iub":
        raise TypeError(array.dtype)
    if array.size and (array.min() < -32768 or array.max() > 32767):
        raise OverflowError("does not fit 16 bits")
    return array.astype(np.int16)
