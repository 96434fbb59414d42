"""The scale-and-bias records that a compiled model's convolutions read: a walk through its command streams."""

from __future__ import annotations

import dataclasses

import numpy as np

from tflite_layers import read

_CONVOLUTION, _DEPTHWISE = 2, 3
_SCALE_REGION, _OFM_DEPTH, _OFM_PRECISION, _PARALLEL = 0x129, 0x113, 0x114, 0x123  # written by one-word commands
_SCALE_BASE, _SCALE_LENGTH = 0x022, 0x023  # written by two-word commands


@dataclasses.dataclass
class NpuOperation:
    """One convolution of the command stream. `records`: (bias, multiplier, shift) of each output channel."""

    records: list[tuple[int, int, int]]
    rounding: int  # U55, U65: 0 double, 1 truncate, 2 natural


def npu_operations(path) -> list[NpuOperation]:
    """All convolutions of a file that was compiled so that scales are read in place (memory mode Sram_Only)."""
    model = read(path)
    found = []
    for graph in model.subgraphs:
        for node in graph.operators:
            if model.operatorCodes[node.opcodeIndex].customCode == b"ethos-u":
                payload, read_only = (_bytes(model, graph, node.inputs[i]) for i in (0, 1))
                found += _walk(payload, read_only)
    return found


def _bytes(model, graph, number: int) -> bytes:
    return np.asarray(model.buffers[graph.tensors[number].buffer].data, np.uint8).tobytes()


def _walk(payload: bytes, read_only: bytes) -> list[NpuOperation]:
    words = np.frombuffer(payload, "<u4").tolist()
    is_u85 = words[2] >> 28 == 2
    one_word, two_words, found, i = {}, {}, [], 8
    while i < len(words):
        command, parameter = words[i] & 0x3FF, words[i] >> 16
        if words[i] >> 14 & 3:
            two_words[command] = words[i + 1]
            i += 2
            continue
        if command in (_CONVOLUTION, _DEPTHWISE) and two_words.get(_SCALE_LENGTH):
            in_place = one_word[_SCALE_REGION] == 0 and not one_word.get(_PARALLEL)
            assert in_place, "scales are not read in place by one core"
            n_channels = one_word[_OFM_DEPTH] + 1
            assert 10 * n_channels <= two_words[_SCALE_LENGTH]
            records = [record_of(read_only[two_words[_SCALE_BASE] + 10 * c:][:10], is_u85) for c in range(n_channels)]
            found.append(NpuOperation(records, one_word[_OFM_PRECISION] >> 14))
        one_word[command] = parameter
        i += 1
    return found


def record_of(data: bytes, is_u85: bool) -> tuple[int, int, int]:
    """U55: bias 40 bits, multiplier 32, shift 6. U85: bias 32, multiplier 31, shift 6."""
    bias_bytes = 4 if is_u85 else 5
    bias = int.from_bytes(data[:bias_bytes], "little", signed=True)
    multiplier = int.from_bytes(data[bias_bytes:bias_bytes + 4], "little")
    return bias, multiplier, data[bias_bytes + 4] & 63
