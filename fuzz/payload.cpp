// A driver payload with its read-only data: refused, or squeezed to a pair that does the same.
// Input: 4 bytes, the payload's length, little endian; the payload; the read-only data.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <weightmill/base/error.h>
#include <weightmill/pipeline/squeeze.h>
#include <weightmill/squeeze/compare.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const std::span<const std::uint8_t> rest(data + sizeof length, size - sizeof length);
  const auto payload = rest.first(std::min<std::size_t>(length, rest.size())), read_only = rest.subspan(payload.size());
  const weightmill::SqueezeOptions options{weightmill::stream_encoder("regor"), false, 1, {}};
  weightmill::SqueezedPair squeezed;
  try {
    squeezed = weightmill::squeeze_pair(payload, read_only, "payload", options);
  } catch (const weightmill::Error&) {
    return 0;  // to refuse is a right answer
  }
  const auto& blobs = squeezed.blobs;
  if (weightmill::compare_programs({{{"before", payload}}, read_only}, {{{"after", blobs.payload}}, blobs.read_only})) std::abort();
  return 0;
}
