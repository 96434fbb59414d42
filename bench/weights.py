"""Weights to measure codecs on: made from a seed, and taken out of real models."""

import importlib.util
import pathlib

import numpy as np

import weightmill

N_WEIGHTS = 131_072  # what Vela's default core hands to its codec at a time


def made() -> dict[str, list[np.ndarray]]:
    """Cases of int16 arrays that are the same everywhere."""
    rng = np.random.default_rng(7)
    dense = np.rint(rng.normal(0, 25, N_WEIGHTS)).clip(-127, 127).astype(np.int16)
    keep = rng.random(N_WEIGHTS) < 0.2
    return {"dense": [dense], "sparse80": [(dense * keep).astype(np.int16)]}


def micro_wakeword() -> dict[str, list[np.ndarray]]:
    """The int8 weights of the models in the wheel pymicro-wakeword; empty where it is not installed."""
    spec = importlib.util.find_spec("pymicro_wakeword")
    if spec is None or spec.origin is None:
        return {}
    models = sorted((pathlib.Path(spec.origin).parent / "models").glob("*.tflite"))
    return {"micro_wakeword": [array for model in models for array in _weights_of(model)]} if models else {}


def shared_models(folder: pathlib.Path) -> dict[str, list[np.ndarray]]:
    """The int8 weights of larger models in `folder`; empty where there is none."""
    names = ("mobilenet_v2_1.0_224_int8", "person_detect_int8", "resnet8_int8", "kws_dscnn_int8", "vww_96_int8")
    models = [folder / f"{name}.tflite" for name in names]
    arrays = [array for model in models if model.exists() for array in _weights_of(model)]
    return {"models_int8": arrays} if arrays else {}


def _weights_of(model: pathlib.Path) -> list[np.ndarray]:
    """The int8 constants of a model's main graph as int16, in pieces of at most N_WEIGHTS; small ones are left out."""
    pieces = []
    for tensor in weightmill.load(model).subgraphs[0].tensors:
        if tensor.data is None or tensor.dtype != "int8" or len(tensor.shape) < 2 or tensor.data.size < 512:
            continue
        flat = tensor.numpy().astype(np.int16).ravel()
        pieces += [flat[begin : begin + N_WEIGHTS] for begin in range(0, flat.size, N_WEIGHTS)]
    return pieces
