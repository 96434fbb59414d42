#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <weightmill/base/error.h>
#include <weightmill/formats/safetensors.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::size_t covered = 0;
    for (const auto& tensor : weightmill::parse_safetensors({data, size}, "input").tensors)
      covered += tensor.data.size();
    if (covered > size) std::abort();
  } catch (const weightmill::Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  return 0;
}
