#include "block_stream.h"

#include <vector>

namespace weightmill {

BlockResult stream_codes(const ConstantFold& fold, unsigned jobs,
                         const std::function<void(std::span<const std::uint8_t>)>& sink) {
  const std::size_t slots = slots_for(jobs);
  std::vector<std::vector<std::uint8_t>> buffers(slots);
  std::vector<BlockResult> results(slots);
  BlockResult total;
  const auto make = [&](std::size_t i, std::uint64_t first, std::uint64_t count) {
    buffers[i].resize(code_bytes(fold.code_type(), count));
    results[i] = fold.codes(first, count, buffers[i]);
  };
  const auto take = [&](std::size_t i) {
    total.merge(results[i]);
    sink(buffers[i]);
  };
  for_each_block(n_elements(fold.shape(), "codes"), jobs, slots, make, take);
  return total;
}

}  // namespace weightmill
