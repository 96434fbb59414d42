#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

namespace mlw = weightmill::mlw;

namespace {

/// Weights from bytes: pairs of a weight and how often it comes, so that short inputs reach long runs.
std::vector<std::int16_t> weights_from(const std::uint8_t* data, std::size_t size, bool wide, bool repeats) {
  constexpr std::size_t kEnough = 200000;  // for several of regor's sections
  std::vector<std::int16_t> weights;
  for (std::size_t i = 0; i < size && weights.size() < kEnough; ++i) {
    const int value = static_cast<std::int8_t>(data[i]);
    std::size_t count = 1;
    if (repeats && i + 1 < size) {
      const std::size_t length = data[++i];
      count = length * length / 16 + 1;
    }
    weights.insert(weights.end(), count, static_cast<std::int16_t>(wide ? std::max(2 * value, -255) : value));
  }
  return weights;
}

mlw::Effort effort_of(std::uint8_t options) {
  if ((options & 16) == 0) return (options & 1) != 0 ? mlw::Effort::regor : mlw::Effort::reference;
  return (options & 1) != 0 ? mlw::Effort::fast : mlw::Effort::best;
}

std::size_t smaller_of_velas(const std::vector<std::int16_t>& weights) {
  return std::min(mlw::encode(weights, mlw::Effort::reference).size(), mlw::encode(weights, mlw::Effort::regor).size());
}

}  // namespace

/// The first byte chooses the encoder and how the others are read. A second decoder has its own test.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t options = data[0];
  const auto weights = weights_from(data + 1, size - 1, (options & 2) != 0, (options & 4) != 0);
  const auto forms = (options & 8) != 0 ? mlw::Forms::all : mlw::Forms::proven;
  const auto effort = effort_of(options);
  const auto stream = mlw::encode(weights, effort, forms);
  if (weights.empty()) return 0;
  const mlw::Decoded decoded = mlw::decode_with_statistics(stream);
  if (stream.size() % 16 != 0 || decoded.weights != weights) std::abort();
  if (forms == mlw::Forms::proven && decoded.statistics.unproven_palettes != 0) std::abort();
  if (effort == mlw::Effort::best && stream.size() > smaller_of_velas(weights)) std::abort();
  return 0;
}
