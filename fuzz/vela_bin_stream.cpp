// The blob of ExecuTorch's Ethos-U backend. The first name is put in place: without it the bytes would be another
// carrier's.
#include <algorithm>
#include <string_view>

#include "carrier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kFirst = "vela_bin_stream";
  std::vector<std::uint8_t> bytes(data, data + size);
  if (bytes.size() < kFirst.size()) return 0;
  std::copy(kFirst.begin(), kFirst.end(), bytes.begin());
  carrier::check(bytes);
  return 0;
}
