#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bit_writer.h"
#include "cost.h"
#include "golomb_rice.h"
#include "palette.h"
#include "slice.h"

namespace weightmill::mlw {

/// What a section sends: an index for each weight or, with zero runs on, for each weight that is not zero, and then
/// also indices + 1 runs: the zeros before the first index, and those behind each.
struct Symbols {
  std::vector<std::uint16_t> indices;
  std::vector<std::uint32_t> runs;
};

/// Turns the weights of a section into `symbols`.  [docs/weight-stream.md §12]
void to_symbols(std::span<const std::int16_t> weights, const PaletteChoice& choice, bool zero_runs, Symbols& symbols);

/// A section ready to be written: symbols and the codes of their segments. No run segments where zero runs are off.
struct CodedSection {
  const PaletteChoice& choice;
  const Symbols& symbols;
  const WeightSegments& weight_segments;
  const RunSegments& run_segments;
};

/// Appends the slices of `section` to `out`, cut where a segment ends or the length field is full. Returns the number
/// of passes that the decoder will make. Writer is BitWriter, or CostMeter to learn the cost.
/// [docs/weight-stream.md §15]
template <class Writer>
std::uint64_t put_section(Writer& out, const CodedSection& section, SlicePlanes& planes);

extern template std::uint64_t put_section(BitWriter&, const CodedSection&, SlicePlanes&);
extern template std::uint64_t put_section(CostMeter&, const CodedSection&, SlicePlanes&);

/// What an encoder keeps from one section to the next, so that memory is asked for once.
struct SectionScratch {
  Symbols symbols;
  SlicePlanes planes;
};

}  // namespace weightmill::mlw
