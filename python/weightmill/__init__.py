"""Weightmill: trained networks to the bytes an edge NPU fetches, every step verified."""

from weightmill._error import Error
from weightmill._model import Model, Node, Signature, Subgraph, Tensor, load

__all__ = ["Error", "Model", "Node", "Signature", "Subgraph", "Tensor", "load"]
