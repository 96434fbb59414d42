"""Weightmill: trained networks to the bytes an edge NPU fetches, every step verified."""

from weightmill._error import Error
from weightmill._codec import decode, decode_fast, encode, encode_fast, stream_statistics
from weightmill._packed import Packed, pack, verify
from weightmill._pack import (
    Accelerator,
    BlockShape,
    CompressedWeights,
    PackedScales,
    WeightCache,
    accelerators,
    advanced_elementwise_add_sub_scale,
    brick_indices,
    brick_order,
    compress_weights,
    elementwise_mul_scale,
    pack_scales,
    quantise_pooling_scale,
    quantise_scale,
    reduced_quantise_scale,
    reorder_encode,
    simplified_elementwise_add_sub_scale,
)
from weightmill._fold import FoldedTensor, FoldReport, fold
from weightmill._model import Model, Node, Signature, Subgraph, Tensor, load
from weightmill._quantize_weights import QuantizedWeight, QuantizeReport, quantize
from weightmill._simulate import Counts, Layer, Simulator, rounding_rules, simulate
from weightmill._squeeze import compare_compiled, inspect_compiled, squeeze
from weightmill._quantize import (
    Agreement, ConvPlan, Diagnostic, EngineView, Grid, ScaleChoice, WeightPlan, agreement, channel_agreement, model_weights,
    plan_conv, plan_weights, planner_weights, search_output_scale,
)

__all__ = ["Error"]
__all__ += ["Model", "Node", "Signature", "Subgraph", "Tensor", "load"]
__all__ += ["decode", "decode_fast", "encode", "encode_fast", "stream_statistics"]
__all__ += ["Counts", "Layer", "Simulator", "rounding_rules", "simulate"]
__all__ += ["Accelerator", "BlockShape", "CompressedWeights", "PackedScales", "WeightCache", "accelerators"]
__all__ += ["brick_indices", "brick_order", "compress_weights", "pack_scales", "reorder_encode"]
__all__ += ["advanced_elementwise_add_sub_scale", "elementwise_mul_scale", "quantise_pooling_scale", "quantise_scale"]
__all__ += ["reduced_quantise_scale", "simplified_elementwise_add_sub_scale"]
__all__ += ["compare_compiled", "inspect_compiled", "squeeze"]
__all__ += ["Agreement", "ConvPlan", "Diagnostic", "EngineView", "Grid", "ScaleChoice", "WeightPlan"]
__all__ += ["agreement", "channel_agreement", "model_weights", "plan_conv", "plan_weights", "planner_weights"]
__all__ += ["search_output_scale"]
__all__ += ["FoldReport", "FoldedTensor", "fold"]
__all__ += ["QuantizeReport", "QuantizedWeight", "quantize"]
__all__ += ["Packed", "pack", "verify"]
