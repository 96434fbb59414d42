// TFLite files with NPU operators.
#include "carrier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  carrier::check({data, size});
  return 0;
}
