#include "compare.h"

#include "analysis.h"
#include "stream_coding.h"
#include "trace.h"

namespace weightmill {

std::optional<std::string> compare_programs(const NpuPrograms& before, const NpuPrograms& after) {
  const Analysis first = analyze(before), second = analyze(after);
  return first_difference(first, second,
                          [&](const Stream& a, const Stream& b) { return same_weights(first, a, second, b); });
}

}  // namespace weightmill
