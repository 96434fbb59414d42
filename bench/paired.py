"""Measuring two things against each other on a machine that does other things as well."""

import statistics
import time
from collections.abc import Callable


class Paired:
    """Times of several functions, taken in turn, in CPU time of this thread.

    What matters is the ratio within one turn: both halves saw the same machine. Reported are its median and its spread,
    the distance between the quartiles.
    """

    def __init__(self, functions: dict[str, Callable[[], object]], turns: int = 7) -> None:
        self._times: dict[str, list[float]] = {name: [] for name in functions}
        for _ in range(turns):
            for name, function in functions.items():
                begin = time.thread_time()
                function()
                self._times[name].append(time.thread_time() - begin)

    def seconds(self, name: str) -> float:
        return statistics.median(self._times[name])

    def ratio(self, slow: str, fast: str) -> tuple[float, float]:
        """How many times faster `fast` is: median and spread."""
        ratios = [a / b for a, b in zip(self._times[slow], self._times[fast], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        return middle, high - low
