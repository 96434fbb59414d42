"""What is in a model file: plain records, with the constants as arrays that view the mapped file."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from weightmill import _weightmill

# How the bytes of a tensor become an array; 4-bit and 16-bit brain floats have no type in numpy.
_NUMPY_TYPES = {name: np.dtype(name) for name in (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor of a graph.

    `dtype` is numpy's word, or "int4", "uint4", "bfloat16" and so on where numpy has none. `scale` and `zero_point` are
    equally long lists, empty where the tensor is not quantized; `axis` counts where there are several. `data` holds a
    constant's bytes as uint8, row-major and little endian, and is None for an activation.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    scale: list[float]
    zero_point: list[int]
    axis: int
    quantization_details: str
    variable: bool
    sparse: bool
    buffer: int
    data: np.ndarray | None = dataclasses.field(repr=False)

    def numpy(self) -> np.ndarray:
        """The constant as an array of `shape`: a read-only view of the file, or for 4-bit types a copy with one value
        in each int8 or uint8. Raises ValueError for an activation and for types that numpy cannot hold."""
        if self.data is None:
            raise ValueError(f"tensor {self.name!r} is no constant: it has no data in the file")
        if self.dtype in ("int4", "uint4"):
            return _unpack_nibbles(self.data, int(np.prod(self.shape)), self.dtype == "int4").reshape(self.shape)
        if self.dtype not in _NUMPY_TYPES:
            raise ValueError(f"tensor {self.name!r} is {self.dtype}, which numpy does not know: use its bytes, .data")
        return self.data.view(_NUMPY_TYPES[self.dtype]).reshape(self.shape)


@dataclasses.dataclass(frozen=True)
class Node:
    """One operator. Numbers in `inputs`, `outputs` and `intermediates` index the subgraph's tensors; -1: absent."""

    op_name: str
    custom: bool
    version: int
    inputs: list[int]
    outputs: list[int]
    intermediates: list[int]
    custom_options: np.ndarray = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Subgraph:
    """A graph in the order of execution."""

    name: str
    tensors: list[Tensor]
    nodes: list[Node]
    inputs: list[int]
    outputs: list[int]


@dataclasses.dataclass(frozen=True)
class Signature:
    """A named entry into a subgraph: names of its inputs and outputs, each with the tensor's number."""

    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Model:
    """A model file. `metadata` are (name, bytes as uint8) pairs."""

    description: str
    subgraphs: list[Subgraph]
    metadata: list[tuple[str, np.ndarray]] = dataclasses.field(repr=False)
    signatures: list[Signature]


def load(path: str | os.PathLike) -> Model:
    """Opens a model file, whatever its format (docs/tflite.md). Weights stay in the mapped file until they are used.

    Raises Error, with the tensor or operator named, if the file is damaged or of a format that is not read.
    """
    record = _weightmill.read_model(os.fspath(path))
    return Model(
        description=record["description"],
        subgraphs=[_subgraph(subgraph) for subgraph in record["subgraphs"]],
        metadata=record["metadata"],
        signatures=[Signature(**signature) for signature in record["signatures"]],
    )


def _subgraph(record: dict) -> Subgraph:
    tensors = [Tensor(**tensor) for tensor in record["tensors"]]
    nodes = [Node(**node) for node in record["nodes"]]
    return Subgraph(record["name"], tensors, nodes, record["inputs"], record["outputs"])


def _unpack_nibbles(data: np.ndarray, count: int, signed: bool) -> np.ndarray:
    """One value for each nibble, low nibble first."""
    nibbles = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[:count]
    return ((nibbles ^ 8).astype(np.int8) - 8) if signed else nibbles
