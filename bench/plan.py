"""Planning speed of one layer on one core, beside a numpy planner that computes the same plan.

    .venv/bin/python bench/plan.py

The two are timed in turns; a row gives the least time of each.
"""

import time

import numpy as np

import numpy_planner
import weightmill

SHAPES = {
    "3x3 3->8": (3, 3, 3, 1, 8),
    "1x1 8->16": (1, 1, 8, 1, 16),
    "3x3 dw 64": (3, 3, 1, 64, 1),
    "3x3 dw 256": (3, 3, 1, 256, 1),
    "3x3 256->256": (3, 3, 256, 1, 256),
    "3x3 512->512": (3, 3, 512, 1, 512),
    "1x1 1280->1000": (1, 1, 1280, 1, 1000),
}
MODES = ("mult31_i8", "pow2_folded_i8", "mult7_i8")


def least_times(calls, budget_s: float) -> list[float]:
    """The least time of each call, taken in turns (CPU time: other programs do not count)."""
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + budget_s
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.process_time_ns()
            call()
            least[i] = min(least[i], (time.process_time_ns() - start) / 1e9)
    return least


def row(name: str, shape: tuple[int, ...], mode: str) -> str:
    rng = np.random.default_rng(1)
    weights = (rng.normal(size=shape) * 0.05).astype(np.float32)
    bias = rng.normal(size=shape[-2] * shape[-1]).astype(np.float32)
    grid = weightmill.Grid(20.0, -128)
    fields = dict(weights=weights, bias=bias, input_quant=grid, output_range=(-3.0, 9.0), mode=mode)
    from weightmill import _quantize, _weightmill

    ready = _quantize._request(**fields)  # the planner alone: no copy of its arrays into Python
    calls = [lambda: _weightmill.plan_conv(ready)]
    if mode in numpy_planner.MODES:
        request = numpy_planner.Request(weights, bias, 20.0, -128, (-3.0, 9.0), mode)
        calls.append(lambda: numpy_planner.plan(request))
    times = least_times(calls, 0.5)
    cells = [name, mode, f"{weights.size}", f"{times[0] * 1e6:.1f}", f"{weights.size / times[0] / 1e9:.2f}"]
    cells += [f"{times[1] * 1e6:.0f}", f"{times[1] / times[0]:.0f}x"] if len(times) > 1 else ["", ""]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    print("| layer | mode | weights | us | G weights/s | numpy us | ratio |")
    print("|---|---|---|---|---|---|---|")
    for mode in MODES:
        for name, shape in SHAPES.items():
            print(row(name, shape, mode), flush=True)


if __name__ == "__main__":
    main()
