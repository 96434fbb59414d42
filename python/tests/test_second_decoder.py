"""The library's decoder against a slow one that was written from docs/weight-stream.md alone."""

import os

import numpy as np
import pytest

import slow_decoder
import weightmill
from weight_kinds import random_weights

N_CASES = 50_000 if os.environ.get("WEIGHTMILL_LONG") else 5_000


@pytest.mark.parametrize("effort", ["reference", "regor"])
def test_both_decoders_agree_on_every_stream(effort):
    for seed in range(N_CASES):
        weights = random_weights(seed, max_size=150)
        stream = weightmill.encode(weights, effort)
        assert slow_decoder.decode(stream) == weights.tolist(), f"seed {seed}"
        assert weightmill.decode(stream).tolist() == weights.tolist(), f"seed {seed}"


def test_both_decoders_agree_on_concatenated_streams():
    for seed in range(200):
        parts = [random_weights(1000 * seed + k, max_size=100) for k in range(3)]
        stream = b"".join(weightmill.encode(part) for part in parts)
        assert slow_decoder.decode(stream) == np.concatenate(parts).tolist() == weightmill.decode(stream).tolist()


def outcome(decode, stream):
    try:
        return list(map(int, decode(stream)))
    except (slow_decoder.BadStream, weightmill.Error):
        return "refused"


def test_both_decoders_agree_on_broken_streams():
    """Flipped bits, cut ends, noise: what one takes the other takes, with the same weights."""
    n_taken = n_refused = 0
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        stream = bytearray(weightmill.encode(random_weights(seed, max_size=120), ("reference", "regor")[seed % 2]))
        for _ in range(int(rng.integers(1, 4))):
            stream[rng.integers(len(stream))] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            del stream[int(rng.integers(len(stream))) :]
        ours, theirs = outcome(weightmill.decode, bytes(stream)), outcome(slow_decoder.decode, bytes(stream))
        assert ours == theirs, f"seed {seed}"
        n_taken, n_refused = n_taken + (ours != "refused"), n_refused + (ours == "refused")
    assert n_taken > 100 and n_refused > 100
