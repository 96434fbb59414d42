"""The encoders for small streams beside Vela's two: bytes, decoding passes and speed on the weights of real integer models.

    python bench/encoders.py [MODEL.tflite ...]

Without arguments: the models of the wheel pymicro-wakeword, and those of ../shared/models (or WEIGHTMILL_MODELS_DIR) where they are installed.
For each class of accelerators the streams of all layers, in that NPU's order, are coded by every encoder. Ratios of bytes and passes are to the
smaller total, and the smaller number of passes, of Vela's two encoders; our `reference` and `regor` give their bytes. The entropy is the zero-order
entropy of each stream, without a table. Speed is CPU time of one thread, in turn with the installed Vela's default core on the same arrays.
"""

import pathlib
import sys

import numpy as np

import weightmill
from pack_files import label, models
from paired import Paired
from vela_codecs import RegorCodec

ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
ENCODERS = [(effort, forms) for effort in ("fast", "best", "max") for forms in ("proven", "all")]
TIMED = ("regor", "fast", "best")
TIMED_STREAMS = 150  # of each class, evenly chosen: Vela's encoder takes its time


def streams_of(model: pathlib.Path, accelerator: str) -> list[np.ndarray]:
    """What the NPU decodes for each layer, slice and core."""
    try:
        packed = weightmill.pack(model, accelerator, effort="regor", format="standard")
    except weightmill.Error:
        return []
    streams = []
    for layer in packed.manifest["layers"]:
        if layer["same_as"] >= 0:
            continue
        blob = bytes(packed.blob(layer["weights_blob"]))
        places = [place for part in layer["slices"] for place in part["streams"] if place["size_bytes"]]
        streams += [weightmill.decode(blob[place["offset"] : place["offset"] + place["size_bytes"]]) for place in places]
    return streams


def entropy_bytes(weights: np.ndarray) -> float:
    counts = np.unique(weights, return_counts=True)[1]
    return float(-(counts * np.log2(counts / weights.size)).sum() / 8)


def measure(streams: list[np.ndarray], effort: str, forms: str = "proven") -> tuple[int, int]:
    """Bytes and passes."""
    coded = [weightmill.encode(weights, effort, forms) for weights in streams]
    return sum(map(len, coded)), sum(weightmill.stream_statistics(stream)["passes"] for stream in coded)


def report_sizes(accelerator: str, by_model: dict[str, list[np.ndarray]]) -> None:
    print(f"\n{accelerator}: {sum(w.size for streams in by_model.values() for w in streams)} weights in {sum(map(len, by_model.values()))} streams")
    names = [label(*encoder) for encoder in ENCODERS]
    print(f"{'':<40} {'reference':>10} {'regor':>10} {'entropy':>8}" + "".join(f" {name:>15}" for name in names))
    total = np.zeros((2 + len(ENCODERS), 2))
    total_entropy = 0.0
    for name, streams in by_model.items():
        found = np.array([measure(streams, "reference"), measure(streams, "regor"), *(measure(streams, *encoder) for encoder in ENCODERS)])
        entropy = sum(map(entropy_bytes, streams))
        print_row(name, found, entropy)
        total, total_entropy = total + found, total_entropy + entropy
    print_row("all", total, total_entropy)
    passes = total[2:, 1] / total[:2, 1].min()
    print(f"{'passes':<40} {total[0, 1]:>10.0f} {total[1, 1]:>10.0f} {'':>8}" + "".join(f" {ratio:>15.4f}" for ratio in passes))


def print_row(name: str, found: np.ndarray, entropy: float) -> None:
    smaller = found[:2, 0].min()
    ratios = "".join(f" {bytes_ / smaller:>15.4f}" for bytes_ in found[2:, 0])
    print(f"{name:<40} {found[0, 0]:>10.0f} {found[1, 0]:>10.0f} {entropy / smaller:>8.4f}{ratios}")


def report_speed(accelerator: str, streams: list[np.ndarray]) -> None:
    chosen = streams[:: max(1, len(streams) // TIMED_STREAMS)]
    n_weights = sum(weights.size for weights in chosen)
    vela = RegorCodec()
    functions = {"Vela's default core": lambda: [vela.encode(weights) for weights in chosen]}
    for effort in TIMED:
        functions[effort] = lambda effort=effort: [weightmill.encode(weights, effort) for weights in chosen]
    times = Paired(functions, turns=5)
    print(f"{accelerator}: {n_weights} weights in {len(chosen)} streams")
    for name in functions:
        ratio, spread = times.ratio("Vela's default core", name)
        print(f"  {name:<20} {n_weights / times.seconds(name) / 1e6:7.1f} M weights/s {ratio:6.2f}x (spread {spread:.2f})")


def main() -> None:
    files = [pathlib.Path(name) for name in sys.argv[1:]] or models()
    for accelerator in ACCELERATORS:
        by_model = {file.name: streams for file in files if (streams := streams_of(file, accelerator))}
        report_sizes(accelerator, by_model)
        report_speed(accelerator, [weights for streams in by_model.values() for weights in streams])


if __name__ == "__main__":
    main()
