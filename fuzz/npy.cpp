#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <weightmill/base/error.h>
#include <weightmill/formats/npy.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto array = weightmill::parse_npy({data, size}, "input");
    const auto again = weightmill::make_npy(array.dtype, array.shape, array.data);
    const auto back = weightmill::parse_npy(again, "again");
    if (back.shape != array.shape ||
        !std::equal(back.data.begin(), back.data.end(), array.data.begin(), array.data.end()))
      std::abort();
  } catch (const weightmill::Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  return 0;
}
