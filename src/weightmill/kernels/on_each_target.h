#pragma once

#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace weightmill {

/// For tests: runs body() on each SIMD target that this processor has.
template <class Body>
void on_each_target(const Body& body) {
  for (auto rest = static_cast<std::uint64_t>(hwy::SupportedTargets()); rest != 0; rest &= rest - 1) {
    const auto target = static_cast<std::int64_t>(rest & (~rest + 1));
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace weightmill
