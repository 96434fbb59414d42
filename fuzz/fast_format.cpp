#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

namespace mlw = weightmill::mlw;

/// The first two bytes say how many weights are wanted; the rest is a stream. What decodes and fits goes there and
/// back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t n_weights = data[0] | std::size_t{data[1]} << 8;
  try {
    const auto weights = mlw::decode_fast({data + 2, size - 2}, n_weights);
    if (weights.size() != n_weights) std::abort();
    for (const bool force_raw : {false, true}) {
      const auto stream = mlw::encode_fast(weights, force_raw);
      if (stream && mlw::decode_fast(*stream, n_weights) != weights) std::abort();
    }
  } catch (const weightmill::Error& error) {
    if (error.code != weightmill::ErrorCode::bad_stream) std::abort();
  }
  return 0;
}
