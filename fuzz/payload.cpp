// A driver payload with its read-only data: refused, or squeezed to a pair that does the same.
// Input: 4 bytes, the payload's length, little endian; the payload; the read-only data.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>
#include <weightmill/squeeze/compare.h>
#include <weightmill/squeeze/squeeze.h>
#include <weightmill/squeeze/stream_table.h>

namespace {

std::vector<std::uint8_t> encode(std::span<const std::int16_t> weights) {
  return weightmill::mlw::encode(weights, weightmill::mlw::Effort::regor);
}

void check(const weightmill::NpuPrograms& programs) {
  const weightmill::Squeezed squeezed = weightmill::squeeze(programs, {encode, false, 1, {}});
  if (squeezed.read_only.size() > programs.read_only.size()) std::abort();
  if (weightmill::compare_programs(programs, {{{"after", squeezed.payloads[0]}}, squeezed.read_only})) std::abort();
  static_cast<void>(weightmill::inspect_programs(programs, 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const std::span<const std::uint8_t> rest(data + sizeof length, size - sizeof length);
  const auto payload = rest.first(std::min<std::size_t>(length, rest.size()));
  try {
    check({{{"before", payload}}, rest.subspan(payload.size())});
  } catch (const weightmill::Error&) {
    // To refuse is a right answer.
  }
  return 0;
}
