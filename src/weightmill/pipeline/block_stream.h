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

/// Walks through n elements in blocks: make(i, first, count) for `jobs` blocks at a time on as many threads, i < jobs;
/// then take(i) for each of them in order. What take() sees does not depend on the number of threads.
template <class Make, class Take>
void for_each_block(std::uint64_t n, unsigned jobs, const Make& make, const Take& take) {
  for (std::uint64_t begin = 0; begin < n; begin += kBlockElements * jobs) {
    const std::uint64_t n_blocks = std::min<std::uint64_t>(jobs, (n - begin + kBlockElements - 1) / kBlockElements);
    parallel_for(n_blocks, jobs, [&](std::size_t i) {
      const std::uint64_t first = begin + i * kBlockElements;
      make(i, first, std::min(kBlockElements, n - first));
    });
    for (std::size_t i = 0; i < n_blocks; ++i) take(i);
  }
}

/// Makes all codes of `fold` and gives them to `sink` in order.
BlockResult stream_codes(const ConstantFold& fold, unsigned jobs,
                         const std::function<void(std::span<const std::uint8_t>)>& sink);

}  // namespace weightmill
