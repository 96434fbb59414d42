"""ONNX Runtime and onnx.checker as judges of written models."""

import numpy as np
import onnx
import onnxruntime

LEVELS = onnxruntime.GraphOptimizationLevel


def session(path_or_model, level=LEVELS.ORT_ENABLE_BASIC):
    """An engine for a path or a ModelProto. BASIC: the highest level that leaves the arithmetic as the graph has it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    source = path_or_model.SerializeToString() if isinstance(path_or_model, onnx.ModelProto) else str(path_or_model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(int32)": np.int32,
}


def random_inputs(engine, seed=1, free_extent=2):
    """Inputs for every input of the model; open extents are `free_extent`."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for entry in engine.get_inputs():
        shape = [extent if isinstance(extent, int) else free_extent for extent in entry.shape]
        dtype = _TYPES[entry.type]
        inputs[entry.name] = (
            rng.normal(0, 1, shape) if np.issubdtype(dtype, np.floating) else rng.integers(0, 2, shape)
        ).astype(dtype)
    return inputs


def outputs(path_or_model, inputs=None, level=LEVELS.ORT_ENABLE_BASIC):
    engine = session(path_or_model, level)
    return engine.run(None, inputs or random_inputs(engine))


def assert_same_results(before, after, inputs=None, levels=(LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_BASIC)):
    """Both models give the same bits, before and after the engine's own folding of constants."""
    for level in levels:
        for want, got in zip(outputs(before, inputs, level), outputs(after, inputs, level), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
