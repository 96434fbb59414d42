"""Seeded weights for tests: each way of coding, and the borders between them, drawn on purpose."""

import numpy as np


def random_weights(seed: int, max_size: int = 3000) -> np.ndarray:
    """int16 [N], 1 <= N <= max_size: one to four pieces, each of a kind of its own."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, max_size + 1)) if rng.random() < 0.7 else int(rng.integers(1, 40))
    n_pieces = int(rng.integers(1, 5))
    pieces = [KINDS[rng.integers(len(KINDS))](rng, size // n_pieces + 1) for _ in range(n_pieces)]
    return np.clip(np.concatenate(pieces), -255, 255).astype(np.int16)[:size]


def _normal(rng, n):
    return np.rint(rng.normal(0, rng.choice([0.5, 2, 5, 12, 25, 45, 90]), n))


def _laplace(rng, n):
    return np.rint(rng.laplace(0, rng.choice([0.5, 2, 5, 12, 25, 60]), n))


def _uniform(rng, n):
    low = int(rng.integers(-255, 256))
    high = min(255, low + int(rng.integers(0, 511)))
    return rng.integers(low, high + 1, n)


def _sparse(rng, n):
    return _normal(rng, n) * (rng.random(n) < rng.choice([0.02, 0.1, 0.2, 0.3, 0.5]))


def _few_values(rng, n):
    return rng.choice(rng.integers(-255, 256, int(rng.choice([1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 34, 40]))), n)


def _runs(rng, n):
    lengths = rng.geometric(1 / rng.choice([2, 10, 100, 700]), n)
    return np.repeat(_normal(rng, n) * (rng.random(n) < 0.6), lengths)[:n]


def _long_zero_runs(rng, n):
    lengths = np.where(rng.random(n) < 0.3, rng.geometric(1 / rng.choice([20, 300]), n), 1)
    values = np.where(lengths > 1, 0, _laplace(rng, n))
    return np.repeat(values, lengths)[:n]


def _offset(rng, n):
    return _normal(rng, n) + rng.integers(-200, 200)


def _no_zeros(rng, n):
    values = _laplace(rng, n)
    return np.where(values == 0, rng.choice([-1, 1, 7]), values)


def _ramp(rng, n):
    return np.arange(n) * int(rng.integers(1, 9)) % 511 - 255


def _drift(rng, n):
    return np.rint(rng.normal(0, 1, n) * np.geomspace(0.6, rng.choice([5, 60, 200]), n))


def _zeros(rng, n):
    return np.zeros(n)


KINDS = [_normal, _laplace, _uniform, _sparse, _few_values, _runs, _long_zero_runs, _offset, _no_zeros, _ramp, _drift, _zeros]
