"""Ordering and compressing in one call: our reorder_encode against that of the installed Vela, same input, same run.

    python bench/pack.py [MODEL.tflite ...]

Each layer's weights are given to both codecs in turn, several times; the ratio is of the medians, with the spread of the
quotients of neighbouring runs. Sizes are equal, because the bytes are.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time

import numpy as np

import weightmill
from ethosu import mlw_codec as vela
from weightmill.compat import mlw_codec as ours

REPEATS = 7
CONVOLUTIONS = ("CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")


def synthetic() -> list[tuple[str, list[np.ndarray]]]:
    """Weights as they are before and after pruning, and as trained networks have them."""
    numbers = np.random.default_rng(7)
    bell = np.clip(np.rint(numbers.normal(0, 30, (64, 3, 3, 64))), -127, 127).astype(np.int8)
    pruned = np.where(numbers.random(bell.shape) < 0.8, 0, bell).astype(np.int8)
    flat = numbers.integers(-128, 128, (64, 3, 3, 64)).astype(np.int8)
    return [("bell-shaped", [bell]), ("80 % zeros", [pruned]), ("uniform", [flat])]


def layers_of(path: pathlib.Path) -> list[np.ndarray]:
    """The int8 convolution and matrix weights of a model, as OHWI."""
    layers = []
    for subgraph in weightmill.load(path).subgraphs:
        for node in subgraph.nodes:
            weights = subgraph.tensors[node.inputs[1]] if node.op_name in CONVOLUTIONS else None
            if weights is not None and weights.data is not None and weights.dtype == "int8":
                array = np.asarray(weights.data).view(np.int8).reshape(weights.shape)
                layers.append(array if array.ndim == 4 else array[:, None, None, :])
    return layers


def run(codec, layers: list[np.ndarray]) -> tuple[float, list]:
    """Seconds and streams."""
    start = time.process_time()
    streams = [codec.reorder_encode(8, 8, layer, 64, 0, int(layer.shape[3] <= 8), 8, 8, 8) for layer in layers]
    return time.process_time() - start, streams


def compare(name: str, layers: list[np.ndarray]) -> str:
    """One line of the table."""
    times = {"vela": [], "ours": []}
    for _ in range(REPEATS):
        seconds, wanted = run(vela, layers)
        times["vela"].append(seconds)
        seconds, found = run(ours, layers)
        times["ours"].append(seconds)
        assert found == wanted, f"{name}: the bytes differ"
    n = sum(count for _, count in found)
    size = sum(len(stream) for stream, _ in found)
    quotients = sorted(v / max(o, 1e-9) for v, o in zip(times["vela"], times["ours"]))
    vela_s, ours_s = statistics.median(times["vela"]), statistics.median(times["ours"])
    return (
        f"{name:32} {n:>9} weights {size:>9} bytes   vela {1e9 * vela_s / n:7.1f} ns/weight   "
        f"ours {1e9 * ours_s / n:6.1f} ns/weight   {vela_s / ours_s:5.1f}x ({quotients[0]:.1f}-{quotients[-1]:.1f})"
    )


def main() -> None:
    for name, layers in synthetic():
        print(compare(name, layers))
    for path in map(pathlib.Path, sys.argv[1:]):
        if layers := layers_of(path):
            print(compare(path.stem, layers))


if __name__ == "__main__":
    main()
