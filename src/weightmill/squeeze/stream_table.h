#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "programs.h"

namespace weightmill {

/// One weight stream of a compiled model. Program, first_op, op, core and region are those of its first use.
struct StreamRow {
  std::string program;         ///< the NPU operator's name
  std::uint64_t offset = 0;    ///< in the read-only tensor
  std::uint64_t size_bytes = 0;
  std::string op;              ///< "conv" or "depthwise"
  std::size_t first_op = 0;    ///< counts the operator's CONV, DEPTHWISE, POOL, ELEMENTWISE and RESIZE from 0
  unsigned core = 0;           ///< core (U55, U65) or weight decoder (U85)
  unsigned region = 0;         ///< 0: read in place; else the region it is copied to
  std::size_t uses = 0;
  std::string format;          ///< "mlw" or "fast"
  bool sparse = false;         ///< U85's 2:4 sparse order
  std::uint64_t weights = 0;   ///< decoded, filling included
  std::uint64_t zeros = 0;
  std::uint64_t distinct = 0;
  std::uint64_t passes = 0;    ///< of the NPU's decoding loop; 0 for the fast format
  std::uint32_t crc32 = 0;     ///< of the decoded weights as little-endian int16

  double bits_per_weight() const {
    return weights == 0 ? 0 : 8.0 * static_cast<double>(size_bytes) / static_cast<double>(weights);
  }
};

/// How a read-only tensor's bytes divide; a byte counts in the first class that claims it.
struct TensorCoverage {
  std::uint64_t size_bytes = 0;
  std::uint64_t weights = 0, scales = 0;
  std::uint64_t copied = 0;        ///< look-up tables and other bytes that a DMA takes
  std::uint64_t constants = 0;     ///< constant feature maps
  std::uint64_t rest = 0;          ///< nothing reads them
  std::uint64_t rest_nonzero = 0;  ///< of these, not 0
  std::vector<std::pair<std::uint64_t, std::uint64_t>> dead;  ///< of these, whole 16-byte granules of zeros: begin, end
};

/// What `inspect` shows of NPU operators that share a read-only tensor.
struct CompiledReport {
  std::string product;                    ///< "U55", "U65" or "U85"
  std::string payload;                    ///< "COP1" or "COP2"
  std::uint32_t configuration = 0, architecture = 0;
  std::size_t n_programs = 0;
  std::vector<std::uint64_t> command_words;  ///< of each program, without the driver's header
  std::vector<std::uint64_t> hw_ops;         ///< of each program: CONV, DEPTHWISE, POOL, ELEMENTWISE, RESIZE
  TensorCoverage coverage;
  std::vector<StreamRow> streams;  ///< by offset
};

/// Lists the weight streams and what else is in the tensor.
/// Throws: bad_file or unsupported as squeeze() does for what it cannot follow.
CompiledReport inspect_programs(const NpuPrograms& programs, unsigned jobs);

}  // namespace weightmill
