#include "codec.h"

#include "check_weights.h"
#include "encoders.h"

namespace weightmill::mlw {

std::vector<std::uint8_t> encode(std::span<const std::int16_t> weights, Effort effort, Forms forms) {
  check_weights(weights);
  if (weights.empty()) return {};
  switch (effort) {
    case Effort::reference: return encode_reference(weights);
    case Effort::regor: return encode_regor(weights);
    case Effort::fast:
    case Effort::best:
    case Effort::max: return encode_small(weights, effort, forms);
  }
  return {};
}

}  // namespace weightmill::mlw
