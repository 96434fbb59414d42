"""Orders of weights, their compression, and scale-and-bias records for Ethos-U, on numpy arrays."""

from __future__ import annotations

import dataclasses
from typing import Optional

import numpy as np

from weightmill import _weightmill
from weightmill._error import Error

WeightCache = _weightmill.WeightCache
quantise_scale = _weightmill.quantise_scale
reduced_quantise_scale = _weightmill.reduced_quantise_scale


@dataclasses.dataclass(frozen=True)
class BlockShape:
    """Extents of a block of a feature map."""

    width: int
    height: int
    depth: int


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """One Ethos-U configuration: name as Vela says it, family "u55", "u65" or "u85"."""

    name: str
    family: str
    macs_per_cycle: int
    cores: int
    ofm_ublocks: tuple[BlockShape, ...]
    ifm_ublock: BlockShape
    largest_ofm_block: BlockShape
    largest_sub_kernel: int


def accelerators() -> list[Accelerator]:
    """All configurations that this package knows."""
    return [_accelerator(record) for record in _weightmill.accelerators()]


def _accelerator(record: dict) -> Accelerator:
    blocks = {key: BlockShape(**record[key]) for key in ("ifm_ublock", "largest_ofm_block")}
    ublocks = tuple(BlockShape(**block) for block in record["ofm_ublocks"])
    return Accelerator(**{**record, **blocks, "ofm_ublocks": ublocks})


# ---- Order ---------------------------------------------------------------------------------------------------------


def brick_order(
    volume,
    accelerator: str = "ethos-u55-128",
    *,
    ofm_block_depth: int,
    traversal: str = "depth_first",
    zero_point: int = 0,
    fast: bool = False,
    **geometry,
) -> np.ndarray:
    """The weights in the order in which the NPU's decoder hands them out, as int16, with zeros where it wants padding.

    volume: integers [O, H, W, I]; for depthwise weights O = channels and I = 1.
    traversal: "depth_first", "part_kernel_first" or "depthwise". fast: the one order of all cores of U85's fast format.
    geometry: ifm_bits (8), dilation (1, 1) and stride (1, 1) as (y, x), ofm_ublock_depth and ifm_ublock_depth (the
    accelerator's), for U85 also ifm_block_depth (64), core (0) and sparse (False).
    U65-512: the two cores' channels are volume[0::2] and volume[1::2], each in an order of its own.
    Raises Error if something makes no sense.
    """
    values = _volume(volume, 4)
    return _weightmill.brick_order(
        values, zero_point, _geometry(accelerator, traversal, ofm_block_depth, **geometry), fast
    )


def brick_indices(
    shape,
    accelerator: str = "ethos-u55-128",
    *,
    ofm_block_depth: int,
    traversal: str = "depth_first",
    fast: bool = False,
    **geometry,
) -> np.ndarray:
    """Which weight of a volume of shape [O, H, W, I] each entry of brick_order() is, as an index into the flattened
    volume; -1 for padding. Arguments as there."""
    return _weightmill.brick_indices(tuple(shape), _geometry(accelerator, traversal, ofm_block_depth, **geometry), fast)


def reorder_encode(
    volume,
    accelerator: str = "ethos-u55-128",
    *,
    ofm_block_depth: int,
    traversal: str = "depth_first",
    zero_point: int = 0,
    effort: str = "reference",
    forms: str = "proven",
    **geometry,
) -> tuple[bytearray, int]:
    """encode(brick_order(...)) in one go: the stream and the number of weights it holds, padding included."""
    values = _volume(volume, 4)
    return _weightmill.reorder_encode(
        values, zero_point, _geometry(accelerator, traversal, ofm_block_depth, **geometry), effort, forms
    )


def _geometry(
    accelerator,
    traversal,
    ofm_block_depth,
    *,
    ifm_bits=8,
    dilation=(1, 1),
    stride=(1, 1),
    ofm_ublock_depth=None,
    ifm_ublock_depth=None,
    ifm_block_depth=64,
    core=0,
    sparse=False,
):
    geometry = _weightmill.geometry(accelerator, traversal)
    if min(dilation) < 1:
        raise Error(f"dilation: is {tuple(dilation)}, wanted at least 1", "bad_request")
    geometry.ifm_bits = ifm_bits
    geometry.ofm_block_depth = ofm_block_depth
    geometry.ifm_block_depth = ifm_block_depth
    geometry.ofm_ublock_depth = geometry.ofm_ublock_depth if ofm_ublock_depth is None else ofm_ublock_depth
    geometry.ifm_ublock_depth = geometry.ifm_ublock_depth if ifm_ublock_depth is None else ifm_ublock_depth
    geometry.sub_kernel_height, geometry.sub_kernel_width = 8 // dilation[0], 8 // dilation[1]
    geometry.stride_y, geometry.stride_x = stride
    geometry.core = core
    geometry.sparse = sparse
    return geometry


def _volume(array, ndim: int) -> np.ndarray:
    """The weights as a contiguous int8, uint8 or int16 array, refused where that would change one."""
    array = np.asarray(array)
    if array.ndim != ndim:
        raise Error(f"weights: have {array.ndim} dimensions, must have {ndim}", "bad_request")
    if array.dtype.kind not in "iu":
        raise Error(f"weights: are of type {array.dtype}, must be integers", "bad_request")
    if array.dtype not in (np.int8, np.uint8, np.int16):
        if array.size and (array.min() < -32768 or array.max() > 32767):
            raise Error("weights: do not fit 16 bits", "bad_request")
        array = array.astype(np.int16)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


# ---- The classic flow ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class CompressedWeights:
    """A weight tensor cut into bricks of output channels, each compressed for all cores."""

    compressed_values: list[bytes]  #: one stream for each brick: core after core
    substream_offsets: list[list[int]]  #: in each brick: 0, then the length after each core
    offsets: list[int]  #: of each brick from the first, then the total
    scales: list[float]  #: bytes / weights of a full brick, for each brick
    worst_scale: float
    mean_scale: float
    storage_shape: list[int]
    brick_size: tuple[int, int, int, int]  #: height, width, input and output channels
    block_traversal: str  #: Vela's word: "DepthFirst", "PartKernelFirst", "DepthWise", "Default"


def compress_weights(
    values,
    accelerator: str,
    *,
    ofm_block_depth: int,
    ofm_depth_step: Optional[int] = None,
    zero_point: int = 0,
    block_type: str = "convolution",
    ifm_bits: int = 8,
    dilation_hw=(1, 1),
    flip: bool = False,
    double_buffer: bool = False,
    effort: str = "reference",
    jobs: int = 1,
    cache: Optional[WeightCache] = None,
    equivalence_id: int = 0,
) -> CompressedWeights:
    """Compresses a weight tensor for U55 or U65 as the classic compressor of Vela does.

    values: integers [H, W, I, O] or [I, O]; depthwise weights have I = 1.
    ofm_depth_step: output channels of a brick; None: all. block_type: "convolution", "depthwise" or "vector_product", or
    Vela's words for them. flip: height and width reversed (transposed convolution).
    cache, equivalence_id: tensors with equal ids have equal values and are compressed once for each use.
    Raises Error if a weight minus zero_point is outside [-255, 255] or an argument makes no sense.
    """
    values = np.asarray(values)
    if values.ndim == 2:
        values = values[None, None]
    hwio = _volume(values, 4)
    step = max(hwio.shape[3], 1) if ofm_depth_step is None else ofm_depth_step
    options = _weightmill.CompressOptions(
        zero_point, ofm_block_depth, step, ifm_bits, tuple(dilation_hw), flip, double_buffer, jobs
    )
    return CompressedWeights(
        **_weightmill.compress_weights(hwio, accelerator, options, block_type, effort, cache, equivalence_id)
    )


# ---- Scales ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PackedScales:
    """Scale-and-bias records of a layer, cut into depth slices."""

    compressed_values: list[bytes]  #: one stream for each depth slice: core after core
    substream_offsets: list[list[int]]  #: in each slice: 0, then the length after each core
    storage_shape: tuple[int]  #: records that the streams take, padding rounded up to whole ones
    element_size_bytes: int  #: of a record


def pack_scales(
    biases,
    ifm_scale: float,
    ofm_scale: float,
    weight_scales,
    *,
    accelerator: str,
    ifm_dtype: str = "int8",
    ofm_depth_step: Optional[int] = None,
    scaling: str = "2020",
    rescale_for_activation: bool = False,
    fully_connected: bool = False,
    bias_is_64_bit: bool = False,
    ofm_ublock_depth: int = 16,
) -> PackedScales:
    """Makes multiplier and shift of each output channel and packs them with its bias.

    biases: one integer for each channel. weight_scales: one, or one for each channel; scales are real units per step and
    taken as float32. scaling: "2020", "vela5" or "regor", see docs/scale-records.md.
    rescale_for_activation: a fused sigmoid or tanh (rule "2020" only). ofm_ublock_depth: U85 only.
    Raises Error if a bias, multiplier or shift does not fit its record (names the channel).
    """
    biases = [int(bias) for bias in biases]
    step = max(len(biases), 1) if ofm_depth_step is None else ofm_depth_step
    scales = np.atleast_1d(np.asarray(weight_scales, np.float32)).tolist()
    options = _weightmill.ScaleOptions(
        scaling,
        np.dtype(ifm_dtype).name,
        float(np.float32(ifm_scale)),
        float(np.float32(ofm_scale)),
        fully_connected,
        bias_is_64_bit,
        rescale_for_activation,
    )
    return PackedScales(**_weightmill.pack_scales(biases, scales, options, accelerator, step, ofm_ublock_depth))


def quantise_pooling_scale(nr_kernel_elements: int, rescale_bits: int = 0) -> tuple[int, int]:
    """(multiplier, shift) of an average over nr_kernel_elements."""
    return _weightmill.quantise_pooling_scale(nr_kernel_elements, rescale_bits)


def elementwise_mul_scale(
    input_scale: float, input2_scale: float, output_scale: float, use_double: bool = False
) -> tuple[int, int]:
    """(multiplier, shift) of an elementwise product, from float32 arithmetic unless use_double."""
    return _weightmill.elementwise_mul_scale(input_scale, input2_scale, output_scale, use_double)


def simplified_elementwise_add_sub_scale(
    input1_scale: float, input2_scale: float, output_scale: float, input_shift: int = 16
) -> tuple[float, float, int, int]:
    """(rescale of operand 1, of operand 2, output multiplier, output shift) of an elementwise sum."""
    return _weightmill.simplified_elementwise_add_sub_scale(input1_scale, input2_scale, output_scale, input_shift)


def advanced_elementwise_add_sub_scale(
    input1_scale: float, input2_scale: float, output_scale: float, bitdepth: int
) -> tuple[int, int, int, int, int]:
    """(multiplier, shift, output multiplier, output shift, operand to scale: 1 or 2) of an elementwise sum."""
    return _weightmill.advanced_elementwise_add_sub_scale(input1_scale, input2_scale, output_scale, bitdepth)
