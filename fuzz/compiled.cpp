// The carriers of compiled models (TFLite, Vela's .npz, ExecuTorch's blob): a file is refused, or what is put into it can be
// read back from it, and what was in it gives the same file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/formats/compiled.h>

namespace {

using Parts = std::vector<std::vector<std::uint8_t>>;

bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// noexcept: that the result is refused is a finding too.
void require_parts(std::span<const std::uint8_t> bytes, const Parts& payloads, const Parts& read_only) noexcept {
  const weightmill::CompiledFile file = weightmill::open_compiled(bytes, "rewritten file");
  if (file.operators.size() != payloads.size() || file.read_only.size() != read_only.size()) std::abort();
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    if (!same(file.operators[i].payload, payloads[i])) std::abort();
  }
  for (std::size_t i = 0; i < read_only.size(); ++i) {
    if (!same(file.read_only[i], read_only[i])) std::abort();
  }
}

void check(std::span<const std::uint8_t> bytes) {
  const weightmill::CompiledFile file = weightmill::open_compiled(bytes, "file");
  Parts payloads, read_only;
  for (const auto& op : file.operators) payloads.emplace_back(op.payload.begin(), op.payload.end());
  for (const auto& tensor : file.read_only) read_only.emplace_back(tensor.begin(), tensor.end());
  const auto again = weightmill::replace_compiled(bytes, "file", payloads, read_only);
  if (file.format == weightmill::CompiledFormat::tflite && !same(again, bytes)) std::abort();
  for (auto& payload : payloads) payload.resize(payload.size() + 8, 1);
  for (auto& tensor : read_only) tensor.resize(tensor.size() / 2);
  const auto changed = weightmill::replace_compiled(bytes, "file", payloads, read_only);
  require_parts(changed, payloads, read_only);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(weightmill::is_compiled({data, size}));
  try {
    check({data, size});
  } catch (const weightmill::Error&) {
    // To refuse is a right answer.
  }
  return 0;
}
