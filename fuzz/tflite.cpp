#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/formats/tflite.h>

namespace {

/// A byte of every constant's first and last: a view that leaves the file is then a finding.
unsigned touch(const weightmill::Model& model) {
  unsigned sum = 0;
  for (const auto& subgraph : model.subgraphs) {
    for (const auto& tensor : subgraph.tensors) {
      if (!tensor.data.empty()) sum += tensor.data.front() + tensor.data.back();
    }
    for (const auto& node : subgraph.nodes) {
      if (!node.custom_options.empty()) sum += node.custom_options.front() + node.custom_options.back();
    }
  }
  for (const auto& metadata : model.metadata) {
    if (!metadata.data.empty()) sum += metadata.data.front() + metadata.data.back();
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> file(data, data + size);  // aligned, as a mapped file is
  try {
    const auto model = weightmill::parse_tflite(file, "input", {.dense_bytes = 1 << 20});
    volatile unsigned sum = touch(model);
    (void)sum;
  } catch (const weightmill::Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  return 0;
}
