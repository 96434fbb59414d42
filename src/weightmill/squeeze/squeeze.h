#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <weightmill/base/progress.h>

#include "programs.h"

namespace weightmill {

/// Makes a weight stream (docs/weight-stream.md) of weights in stream order, each in [-255, 255].
/// Called from several threads at once.
using StreamEncoder = std::function<std::vector<std::uint8_t>(std::span<const std::int16_t> weights)>;

struct SqueezeOptions {
  StreamEncoder encode;
  bool keep_dead = false;  ///< leave the zero bytes in that nothing reads
  unsigned jobs = 1;       ///< threads; the result does not depend on it
  Progress progress;
};

/// One stream before and after. Program, first_op and core are those of its first use, as in StreamRow.
struct StreamChange {
  std::string program;
  std::size_t first_op = 0;
  unsigned core = 0;
  std::uint64_t offset = 0;   ///< in the read-only tensor, before
  std::uint64_t weights = 0;  ///< decoded, filling included
  std::uint64_t bytes_before = 0, bytes_after = 0;
  std::uint64_t passes_before = 0, passes_after = 0;  ///< of the NPU's decoding loop; 0 for the fast format
};

/// What squeezing did. Bytes of streams; passes are those of the NPU's decoding loop over them, MLW streams only.
struct SqueezeSummary {
  std::size_t n_streams = 0;
  std::size_t n_replaced = 0;
  std::uint64_t n_weights = 0;
  std::uint64_t stream_bytes_before = 0, stream_bytes_after = 0;
  std::uint64_t passes_before = 0, passes_after = 0;
  std::uint64_t dead_bytes = 0;   ///< taken out of the read-only tensors
  std::size_t n_insertions = 0;   ///< register writes added to the command streams
  std::vector<StreamChange> streams;  ///< of each read-only tensor by offset

  SqueezeSummary& operator+=(const SqueezeSummary& other);
};

struct Squeezed {
  std::vector<std::vector<std::uint8_t>> payloads;  ///< one for each program
  std::vector<std::uint8_t> read_only;
  SqueezeSummary summary;
};

/// Makes the weight streams of a compiled model as small as `encode` can, takes out bytes that nothing reads, and
/// follows every address and length; the NPU computes the same. A stream that would not get smaller keeps its
/// bytes, unless the new one decodes in fewer passes.
///
/// Before anything is rewritten, the model is rebuilt without a change, which must give the same bytes; the result is
/// read again from scratch and must do the same with the same weights, operation by operation.
/// Throws: bad_file if the model breaks its own rules; unsupported for what is not understood, or where shortened
/// copies would get in each other's way (names the operator and the command word). Source: docs/compiled-models.md
/// §4-6.
Squeezed squeeze(const NpuPrograms& programs, const SqueezeOptions& options);

}  // namespace weightmill
