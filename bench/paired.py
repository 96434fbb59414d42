"""Measuring two things against each other on a machine that does other things as well."""

import statistics
import time
from collections.abc import Callable


class Paired:
    """Times of several functions, taken in turn, in CPU time of this thread.

    In each turn a function runs until it has taken a while, so that caches and branch predictors are its own. What matters
    is the ratio within one turn: both halves saw the same machine. Reported are its median and its spread, the distance
    between the quartiles.
    """

    _WHILE_SECONDS = 0.03

    def __init__(self, functions: dict[str, Callable[[], object]], turns: int = 7) -> None:
        self._times: dict[str, list[float]] = {name: [] for name in functions}
        n_calls = {name: 1 + int(self._WHILE_SECONDS / self._time(call, 1)) for name, call in functions.items()}
        for _ in range(turns):
            for name, call in functions.items():
                self._times[name].append(self._time(call, n_calls[name]))

    @staticmethod
    def _time(call: Callable[[], object], n_calls: int) -> float:
        """Seconds for one call, the mean of several."""
        begin = time.thread_time()
        for _ in range(n_calls):
            call()
        return (time.thread_time() - begin) / n_calls

    def seconds(self, name: str) -> float:
        return statistics.median(self._times[name])

    def ratio(self, slow: str, fast: str) -> tuple[float, float]:
        """How many times faster `fast` is: median and spread."""
        ratios = [a / b for a, b in zip(self._times[slow], self._times[fast], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        return middle, high - low
