#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include <weightmill/base/parallel.h>
#include <weightmill/fold/constant_fold.h>

namespace weightmill {

/// Elements that are read or coded at a time, 1 MiB of float32: large enough for the disk, small enough for the cache;
/// codes of any width fill whole bytes.
constexpr std::uint64_t kBlockElements = std::uint64_t{1} << 18;

/// How many blocks are in work at a time: enough that `jobs` threads seldom wait for each other, or start anew.
constexpr std::size_t slots_for(unsigned jobs) { return jobs == 1 ? 1 : std::max<std::size_t>(jobs, 16); }

/// Walks through n elements in blocks: make(slot, first, count) for `slots` blocks at a time on `jobs` threads, then take(slot) for each of them in order. What take() sees does not depend on the number of threads.
template <class Make, class Take>
void for_each_block(std::uint64_t n, unsigned jobs, std::size_t slots, const Make& make, const Take& take) {
  for (std::uint64_t begin = 0; begin < n; begin += kBlockElements * slots) {
    const std::uint64_t n_blocks = std::min<std::uint64_t>(slots, (n - begin + kBlockElements - 1) / kBlockElements);
    parallel_for(n_blocks, jobs, [&](std::size_t slot) {
      const std::uint64_t first = begin + slot * kBlockElements;
      make(slot, first, std::min(kBlockElements, n - first));
    });
    for (std::size_t slot = 0; slot < n_blocks; ++slot) take(slot);
  }
}

/// Makes all codes of `fold` and gives them to `sink` in order.
BlockResult stream_codes(const ConstantFold& fold, unsigned jobs,
                         const std::function<void(std::span<const std::uint8_t>)>& sink);

}  // namespace weightmill
