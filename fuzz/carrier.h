#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/formats/compiled.h>

/// What every carrier of compiled models must do: a file is refused, or what is put into it can be read back from it.
namespace carrier {

using Bytes = std::span<const std::uint8_t>;
using Parts = std::vector<std::vector<std::uint8_t>>;

inline bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

/// noexcept: that the result is refused is a finding too.
inline void require_parts(Bytes bytes, const Parts& payloads, const Parts& read_only) noexcept {
  const weightmill::CompiledFile file = weightmill::open_compiled(bytes, "rewritten file");
  if (file.operators.size() != payloads.size() || file.read_only.size() != read_only.size()) std::abort();
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    if (!same(file.operators[i].payload, payloads[i])) std::abort();
  }
  for (std::size_t i = 0; i < read_only.size(); ++i) {
    if (!same(file.read_only[i], read_only[i])) std::abort();
  }
}

/// Puts in what was there, then longer payloads and shorter tensors. With what was there, a TFLite file stays as it
/// was byte for byte.
inline void check_opened(Bytes bytes) {
  const weightmill::CompiledFile file = weightmill::open_compiled(bytes, "file");
  Parts payloads, read_only;
  for (const auto& op : file.operators) payloads.emplace_back(op.payload.begin(), op.payload.end());
  for (const auto& tensor : file.read_only) read_only.emplace_back(tensor.begin(), tensor.end());
  const auto again = weightmill::replace_compiled(bytes, "file", payloads, read_only);
  if (file.format == weightmill::CompiledFormat::tflite && !same(again, bytes)) std::abort();
  require_parts(again, payloads, read_only);
  for (auto& payload : payloads) payload.resize(payload.size() + 8, 1);
  for (auto& tensor : read_only) tensor.resize(tensor.size() / 2);
  require_parts(weightmill::replace_compiled(bytes, "file", payloads, read_only), payloads, read_only);
}

inline void check(Bytes bytes) {
  static_cast<void>(weightmill::is_compiled(bytes));
  try {
    check_opened(bytes);
  } catch (const weightmill::Error&) {
    // To refuse is a right answer.
  }
}

}  // namespace carrier
