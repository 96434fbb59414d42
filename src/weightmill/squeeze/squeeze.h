#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
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

/// What squeezing did. Bytes of streams; passes are those of the NPU's decoding loop over them, MLW streams only.
struct SqueezeSummary {
  std::size_t n_streams = 0;
  std::size_t n_replaced = 0;
  std::uint64_t n_weights = 0;
  std::uint64_t stream_bytes_before = 0, stream_bytes_after = 0;
  std::uint64_t passes_before = 0, passes_after = 0;
  std::uint64_t dead_bytes = 0;   ///< taken out of the read-only tensors
  std::size_t n_insertions = 0;   ///< register writes added to the command streams

  SqueezeSummary& operator+=(const SqueezeSummary& other);
};

struct Squeezed {
  std::vector<std::vector<std::uint8_t>> payloads;  ///< one for each program
  std::vector<std::uint8_t> read_only;
  SqueezeSummary summary;
};

/// Makes the weight streams of a compiled model as small as `encode` can, takes out bytes that nothing reads, and
/// follows every address and length; the NPU computes the same. A stream that would not get smaller keeps its bytes.
///
/// Before anything is rewritten, the model is rebuilt without a change, which must give the same bytes; the result is
/// read again from scratch and must do the same with the same weights, operation by operation.
/// Throws: bad_file if the model breaks its own rules; unsupported for what is not understood, or where shortened
/// copies would get in each other's way (names the operator and the command word). Source: docs/compiled-models.md
/// §4-6.
Squeezed squeeze(const NpuPrograms& programs, const SqueezeOptions& options);

}  // namespace weightmill
