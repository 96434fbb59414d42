"""Speed and size of the weight codecs beside those of the installed Vela: same input, same run, one thread."""

import pathlib

import numpy as np

import weightmill
from paired import Paired
from vela_codecs import RegorCodec
from weights import made, micro_wakeword, shared_models

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def main() -> None:
    import ethosu.mlw_codec as vela

    regor = RegorCodec()
    print(f"{'weights':<15} {'':<30} {'MW/s':>7} {'Vela':>7} {'faster':>8} {'spread':>7} {'bytes':>9} {'Vela':>9}")
    for case, arrays in (made() | micro_wakeword() | shared_models(REPOSITORY.parent / "shared/models")).items():
        measure(case, arrays, vela, regor)


def measure(case: str, arrays: list[np.ndarray], vela, regor: RegorCodec) -> None:
    lists = [array.tolist() for array in arrays]  # what Vela's encoder takes, made outside the measured time
    volumes = [as_volume(array) for array in arrays]
    ours = {effort: [weightmill.encode(array, effort) for array in arrays] for effort in ("reference", "regor")}
    theirs = [vela.encode(weights) for weights in lists]
    theirs_regor = [regor.encode(array) for array in arrays]
    assert [bytes(stream) for stream in theirs] == ours["reference"] and theirs_regor == ours["regor"]
    times = Paired(
        {
            "reference": lambda: [weightmill.encode(array) for array in arrays],
            "vela list": lambda: [vela.encode(weights) for weights in lists],
            "vela array": lambda: [vela.reorder_encode(8, 8, volume, 8, False, False, 8, 8, 8) for volume in volumes],
            "regor": lambda: [weightmill.encode(array, "regor") for array in arrays],
            "vela regor": lambda: [regor.encode(array) for array in arrays],
            "decode": lambda: [weightmill.decode(stream) for stream in theirs],
            "vela decode": lambda: [vela.decode(stream) for stream in theirs],
            "drop-in decode": lambda: [weightmill.compat.mlw_codec.decode(stream) for stream in theirs],
            "drop-in encode": lambda: [weightmill.compat.mlw_codec.encode(weights) for weights in lists],
        }
    )
    n_weights = sum(array.size for array in arrays)
    sizes = {"reference": total(ours["reference"]), "regor": total(ours["regor"])}
    vela_sizes = {"vela list": total(theirs), "vela regor": total(theirs_regor)}
    for ours_name, vela_name in (
        ("reference", "vela list"),
        ("reference", "vela array"),
        ("regor", "vela regor"),
        ("decode", "vela decode"),
        ("drop-in encode", "vela list"),
        ("drop-in decode", "vela decode"),
    ):
        ratio, spread = times.ratio(vela_name, ours_name)
        print(
            f"{case:<15} {ours_name + ' : ' + vela_name:<30} {n_weights / times.seconds(ours_name) / 1e6:7.1f}"
            f" {n_weights / times.seconds(vela_name) / 1e6:7.1f} {ratio:7.1f}x {spread:6.1f}x"
            f" {sizes.get(ours_name, ''):>9} {vela_sizes.get(vela_name, ''):>9}"
        )


def as_volume(array: np.ndarray) -> np.ndarray:
    """The weights as an OHWI volume for Vela's encoder of arrays: 8 output channels, cut to whole blocks."""
    size = array.size // 256 * 256
    return array[:size].reshape(8, 1, 1, size // 8)


def total(streams) -> int:
    return sum(len(stream) for stream in streams)


if __name__ == "__main__":
    import weightmill.compat.mlw_codec  # noqa: F401 (measured above)

    main()
