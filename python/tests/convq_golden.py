"""The recorded convolution plans: cases of convq.json with their arrays from convq.npz."""

from __future__ import annotations

import functools
import json

import numpy as np

from tflite_layers import GOLDEN

SET = GOLDEN / "convq"


@functools.cache
def _npz():
    return np.load(SET / "convq.npz")


def cases() -> list[dict]:
    return json.loads((SET / "convq.json").read_text())["cases"]


def arrays_of(case: dict) -> dict[str, np.ndarray]:
    return {name: _npz()[f"{case['id']}_{name}"] for name in case["arrays"]}


def padding_of(case: dict) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in case["pad"]]
