"""Weightmill: trained networks to the bytes an edge NPU fetches, every step verified."""

from weightmill._error import Error
from weightmill import _weightmill

__all__ = ["Error"]
