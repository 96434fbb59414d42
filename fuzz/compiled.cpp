// The carriers of compiled models (TFLite, Vela's .npz, ExecuTorch's blob): a file is refused, or squeezed to one that can be
// opened and squeezed again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/formats/compiled.h>
#include <weightmill/pipeline/squeeze.h>

namespace {

/// Puts back what is in the file: that must be the file.
void require_same(std::span<const std::uint8_t> bytes) {
  const weightmill::CompiledFile file = weightmill::open_compiled(bytes, "file");
  if (file.format != weightmill::CompiledFormat::tflite) return;  // the others may be written in more than one way
  std::vector<std::vector<std::uint8_t>> payloads, read_only;
  for (const auto& op : file.operators) payloads.emplace_back(op.payload.begin(), op.payload.end());
  for (const auto& tensor : file.read_only) read_only.emplace_back(tensor.begin(), tensor.end());
  const auto again = weightmill::replace_compiled(bytes, "file", payloads, read_only);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  static_cast<void>(weightmill::is_compiled(bytes));
  const weightmill::SqueezeOptions options{weightmill::stream_encoder("regor"), false, 1, {}};
  std::vector<std::uint8_t> squeezed;
  try {
    require_same(bytes);
    squeezed = weightmill::squeeze_bytes(bytes, "file", options).bytes;
  } catch (const weightmill::Error&) {
    return 0;  // to refuse is a right answer
  }
  weightmill::squeeze_bytes(squeezed, "squeezed file", options);
  return 0;
}
