#include "codec.h"

#include "check_weights.h"
#include "encoders.h"

namespace weightmill::mlw {

std::vector<std::uint8_t> encode(std::span<const std::int16_t> weights, Effort effort) {
  check_weights(weights);
  if (weights.empty()) return {};
  switch (effort) {
    case Effort::reference: return encode_reference(weights);
    case Effort::regor: return encode_regor(weights);
  }
  return {};
}

}  // namespace weightmill::mlw
