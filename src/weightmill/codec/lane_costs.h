#pragma once

#include <cstdint>

#include <weightmill/kernels/cheapest_path.h>

namespace weightmill::mlw {

/// Bits of each index in each weight code: lane k is WeightCode(k). `uncompressed`: price of an index in uncompressed
/// mode.
LaneCosts index_costs(unsigned uncompressed) noexcept;

/// From this run on all divisors but the largest are so far behind that it does not matter how far.
inline constexpr std::uint32_t kLongRun = 1024;

/// Bits of each run in each run code, over those of the cheapest: lane k is RunCode(k). kLongRun stands for all runs
/// from there on.
LaneCosts run_costs() noexcept;

}  // namespace weightmill::mlw
