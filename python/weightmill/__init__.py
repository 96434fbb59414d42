"""Weightmill: trained networks to the bytes an edge NPU fetches, every step verified."""

from weightmill._error import Error
from weightmill._codec import decode, decode_fast, encode, encode_fast, stream_statistics
from weightmill._model import Model, Node, Signature, Subgraph, Tensor, load
from weightmill._simulate import Counts, Layer, rounding_rules, simulate

__all__ = ["Error"]
__all__ += ["Model", "Node", "Signature", "Subgraph", "Tensor", "load"]
__all__ += ["decode", "decode_fast", "encode", "encode_fast", "stream_statistics"]
__all__ += ["Counts", "Layer", "rounding_rules", "simulate"]
