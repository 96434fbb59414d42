"""Drop-in for the weight functions of `ethosu.vela.api` of Vela 5.2.0: same signatures, accepted types, assertions, bytes.

Differences: weights outside -255..255 and block depths that are not positive raise weightmill.Error, a ValueError, where
the original writes a stream of other weights or never returns.
"""

from enum import Enum

import numpy as np

from weightmill import _weightmill
from weightmill.compat.mlw_codec import _int16_volume

API_VERSION_MAJOR = 1
API_VERSION_MINOR = 5
API_VERSION = f"{API_VERSION_MAJOR}.{API_VERSION_MINOR}"


class NpuAccelerator(Enum):
    """The accelerators that weights can be encoded for."""

    Ethos_U55_32 = 1
    Ethos_U55_64 = 2
    Ethos_U55_128 = 3
    Ethos_U55_256 = 4
    Ethos_U65_256 = 5
    Ethos_U65_512 = 6


class NpuBlockTraversal(Enum):
    """Which way the NPU walks through the weights of a block."""

    DEPTH_FIRST = 1
    PART_KERNEL_FIRST = 2


def npu_get_api_version() -> int:
    """Major version in the upper, minor version in the lower 16 bits."""
    return API_VERSION_MAJOR << 16 | API_VERSION_MINOR


def _accelerator_name(accelerator) -> str:
    """Also of a member of the original's enumeration."""
    members = NpuAccelerator.__members__
    name = getattr(accelerator, "name", None)
    assert isinstance(accelerator, Enum) and name in members, f"Unsupported accelerator {accelerator}"
    return name


def _is_part_kernel(block_traversal) -> bool:
    assert isinstance(block_traversal, Enum) and block_traversal.name in NpuBlockTraversal.__members__
    return block_traversal.name == "PART_KERNEL_FIRST"


def npu_encode_weights(
    accelerator: NpuAccelerator,
    weights_volume: np.ndarray,
    dilation_xy: tuple[int, int],
    ifm_bitdepth: int,
    ofm_block_depth: int,
    is_depthwise: bool,
    block_traversal: NpuBlockTraversal,
) -> bytearray:
    """Reorders and compresses the weights of one core.

    weights_volume: [O, H, W, I], castable to int16, zero point subtracted; depthwise weights have I = 1.
    dilation_xy: each 1 or 2. For two cores the caller deals out the channels and halves the block depth.
    Raises AssertionError for arguments of wrong types, ValueError for weights that cannot be encoded.
    """
    name = _accelerator_name(accelerator)
    assert isinstance(weights_volume, np.ndarray)
    assert isinstance(dilation_xy, tuple)
    assert isinstance(ifm_bitdepth, int)
    assert isinstance(ofm_block_depth, int)
    assert isinstance(is_depthwise, bool)
    part_kernel = _is_part_kernel(block_traversal)
    assert len(weights_volume.shape) == 4, "weights ndarray should have a shape of 4"
    assert not (is_depthwise and part_kernel), "encode_weights :: partkernel and depthwise are mutually exclusive"
    for axis, dilation in zip("xy", (dilation_xy[0], dilation_xy[1])):
        assert dilation in (1, 2), f"encode_weights :: dilation {axis} should be 1 or 2 not {dilation}"
    traversal = "depthwise" if is_depthwise else "part_kernel_first" if part_kernel else "depth_first"
    geometry = _weightmill.geometry(name, traversal)
    geometry.ifm_bits = ifm_bitdepth
    geometry.ofm_block_depth = ofm_block_depth
    geometry.sub_kernel_width, geometry.sub_kernel_height = 8 // dilation_xy[0], 8 // dilation_xy[1]
    return _weightmill.reorder_encode(_int16_volume(weights_volume), 0, geometry, "reference", "proven")[0]


def npu_encode_bias(bias: np.int64, scale: int, shift: int) -> bytearray:
    """The 10-byte record of one output channel: bias in 40 bits, scale in 32, shift in 6.

    Raises AssertionError for arguments of wrong types or out of range.
    """
    assert isinstance(bias, np.int64)
    assert isinstance(scale, int)
    assert isinstance(shift, int)
    assert -(1 << 39) <= bias < (1 << 39)
    assert 0 <= scale < (1 << 32)
    assert 0 <= shift < (1 << 6)
    return _weightmill.pack_record(int(bias), scale, shift)
