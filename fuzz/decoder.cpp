#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

namespace mlw = weightmill::mlw;

/// Whatever decodes is within its bounds, and its weights survive both encoders.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxWeights = std::size_t{1} << 20;
  try {
    const auto [weights, statistics] = mlw::decode_with_statistics({data, size}, kMaxWeights);
    if (weights.size() > kMaxWeights || weights.size() > 64 * size || statistics.weights != weights.size()) {
      std::abort();
    }
    if (weights.empty()) return 0;
    for (const auto effort : {mlw::Effort::reference, mlw::Effort::regor}) {
      if (mlw::decode(mlw::encode(weights, effort)) != weights) std::abort();
    }
  } catch (const weightmill::Error& error) {
    if (error.code != weightmill::ErrorCode::bad_stream) std::abort();
  }
  return 0;
}
