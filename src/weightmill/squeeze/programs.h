#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weightmill {

/// One NPU operator of a compiled model: the bytes that its driver gets. A view; the carrier's bytes must outlive it.
struct NpuProgram {
  std::string name;                       ///< where it stands in its file, for messages: "subgraph 0, operator 3"
  std::span<const std::uint8_t> payload;  ///< driver header (COP1 or COP2) and command stream
};

/// The NPU operators that share one read-only tensor, and that tensor: what has to be squeezed together, because a byte
/// that moves in the tensor moves for all of them.  [docs/compiled-models.md §1]
struct NpuPrograms {
  std::vector<NpuProgram> programs;
  std::span<const std::uint8_t> read_only;  ///< region 0: weight streams, scale records, tables, constants
};

}  // namespace weightmill
