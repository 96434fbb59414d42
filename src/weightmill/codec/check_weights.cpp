#include "check_weights.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "code_value.h"
#include "codec.h"

namespace weightmill::mlw {

void check_weights(std::span<const std::int16_t> weights) {
  if (weights.size() > kDefaultMaxWeights) {
    fail(ErrorCode::bad_request, "weights",
         fmt::format("{} are too many for one stream: at most {}", weights.size(), kDefaultMaxWeights));
  }
  const auto out_of_range = [](std::int16_t weight) { return weight < -kMaxWeight || weight > kMaxWeight; };
  // Counted first: without a way out the loop runs many weights at a time.
  if (std::count_if(weights.begin(), weights.end(), out_of_range) == 0) return;
  const auto first = std::find_if(weights.begin(), weights.end(), out_of_range);
  fail(ErrorCode::bad_request, fmt::format("weight {}", first - weights.begin()),
       fmt::format("is {}, must be in {}..{}: take the zero point off first", *first, -kMaxWeight, kMaxWeight));
}

}  // namespace weightmill::mlw
