"""A second decoder of weight streams, written from docs/weight-stream.md part one alone: one bit after the other, one line for each
sentence. It shares nothing with the library, and is there to disagree with it."""

from __future__ import annotations


class BadStream(Exception):
    pass


class Bits:
    """§1: bit p of the stream is bit p mod 8 of byte p // 8."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bit(self) -> int:
        if self.at >= 8 * len(self.data):
            raise BadStream("ends too early")
        bit = self.data[self.at // 8] >> (self.at % 8) & 1
        self.at += 1
        return bit

    def field(self, width: int) -> int:
        return sum(self.bit() << i for i in range(width))

    def skip_to_byte(self) -> None:
        self.at = (self.at + 7) // 8 * 8

    def ended(self) -> bool:
        return self.at >= 8 * len(self.data)


class Palette:
    """§2, §3: direct offset, entries and their width."""

    def __init__(self, bits: Bits) -> None:
        self.offset = bits.field(5)
        size = bits.field(5)
        self.width = bits.field(3) + 2
        self.entries = [bits.field(self.width) for _ in range(size + 1 if size else 0)]

    def weight(self, index: int) -> int:
        if index > 511:
            raise BadStream("index above 511")
        code = self.entries[index] if index < len(self.entries) else index - len(self.entries) + self.offset
        if code > 511:
            raise BadStream("code value above 511")
        return -(code >> 1) if code & 1 else code >> 1


class Quotients:
    """§5: quotients that are on their way; `done` are complete, in order."""

    def __init__(self) -> None:
        self.partial = 0

    def index_positions(self, plane0: list[int], plane1: list[int], truncated: bool) -> list[int]:
        done, ones = [], iter(plane1)
        for bit in plane0:
            second = next(ones) if bit else None
            self.partial += 0 if not bit else 1 + second
            if not bit or second == 0 or truncated:
                done.append(self.partial)
                self.partial = 0
        return done

    def run_bits(self, plane: list[int]) -> list[int]:
        done = []
        for bit in plane:
            if bit:
                self.partial += 1
            else:
                done.append(self.partial)
                self.partial = 0
        return done


def read_body(bits: Bits, n: int, n_runs: int, zdiv: int, wdiv: int, truncated: bool, palette: Palette) -> tuple[list[int], list[int]]:
    """§6: indices and runs of a slice."""
    uncompressed = wdiv == 7
    width = wdiv
    if uncompressed:
        width = (len(palette.entries) - 1).bit_length() if palette.entries else palette.width
    run_plane = 8 if zdiv == 3 else 12
    per_chunk = 8 if width > 5 else 12
    index_quotients, run_quotients = Quotients(), Quotients()
    indices: list[int] = []
    runs: list[int] = []
    weights_done = runs_done = 0
    waiting_weights: list[int] = []
    waiting_runs: list[int] = []
    while True:
        lead = weights_done - runs_done if zdiv < 4 else 0
        has_weights = weights_done < n and lead < 8
        has_runs = zdiv < 4 and runs_done < n_runs and lead >= 0
        plane0 = [bits.bit() for _ in range(12)] if has_weights and not uncompressed else []
        run_bits = [bits.bit() for _ in range(run_plane)] if has_runs else []
        plane1 = [bits.bit() for _ in range(sum(plane0))]
        indices += [(q << width) + bits.field(width) for q in waiting_weights]
        runs += [(q << zdiv) + bits.field(zdiv) for q in waiting_runs]
        if not has_weights and not has_runs:
            return indices, runs
        waiting_weights, waiting_runs = [], []
        if has_weights:
            if uncompressed:
                waiting_weights = [0] * min(per_chunk, n - weights_done)
            else:
                waiting_weights = index_quotients.index_positions(plane0, plane1, truncated)[: n - weights_done]
            if any(q << width > 511 for q in [*waiting_weights, index_quotients.partial]) and weights_done + len(waiting_weights) < n:
                raise BadStream("index above 511")
        if has_runs:
            waiting_runs = run_quotients.run_bits(run_bits)[: n_runs - runs_done]
        weights_done += len(waiting_weights)
        runs_done += len(waiting_runs)


def decode(data: bytes) -> list[int]:
    """§2, §4, §7: all slices of all streams."""
    bits, weights = Bits(data), []
    palette: Palette | None = None
    zero_runs_on = False
    while True:
        zdiv = bits.field(3)
        if zdiv == 7:
            bits.skip_to_byte()
            if bits.ended():
                return weights
            palette = None
            continue
        if zdiv in (4, 5):
            raise BadStream("ZDIV")
        n = bits.field(15) + 1
        wdiv, truncated, new_palette = bits.field(3), bits.bit() == 1, bits.bit() == 1
        if wdiv == 6:
            raise BadStream("WDIV")
        if not new_palette and (palette is None or zero_runs_on != (zdiv < 4)):
            raise BadStream("no palette")
        if new_palette:
            palette = Palette(bits)
        zero_runs_on = zdiv < 4
        n_runs = (n + 1 if new_palette else n) if zero_runs_on else 0
        indices, runs = read_body(bits, n, n_runs, zdiv, wdiv, truncated, palette)
        behind = iter(runs)
        if zero_runs_on and new_palette:
            weights += [0] * next(behind)
        for index in indices:
            weights.append(palette.weight(index))
            if zero_runs_on:
                weights += [0] * next(behind)
