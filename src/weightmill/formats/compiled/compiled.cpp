#include "compiled.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "compiled/compiled_tflite.h"
#include "compiled/vela_bin_stream.h"
#include "compiled/vela_raw.h"

namespace weightmill {
namespace {

CompiledFormat format_of(std::span<const std::uint8_t> file) {
  if (is_zip(file)) return CompiledFormat::vela_raw;
  return is_vela_bin_stream(file) ? CompiledFormat::vela_bin_stream : CompiledFormat::tflite;
}

CompiledFile file_of(CompiledFormat format, const CompiledParts& parts, std::string_view name) {
  CompiledFile file;
  file.format = format;
  file.operators.push_back({std::string(name), parts.payload, 0});
  file.read_only.push_back(parts.read_only);
  return file;
}

}  // namespace

bool is_compiled(std::span<const std::uint8_t> file) noexcept {
  return is_zip(file) || is_vela_bin_stream(file) || is_compiled_tflite(file);
}

CompiledFile open_compiled(std::span<const std::uint8_t> file, std::string_view name) {
  const CompiledFormat format = format_of(file);
  switch (format) {
    case CompiledFormat::tflite: return open_compiled_tflite(file, name);
    case CompiledFormat::vela_raw: return file_of(format, open_vela_raw(file, name), name);
    case CompiledFormat::vela_bin_stream: return file_of(format, open_vela_bin_stream(file, name), name);
  }
  fail(ErrorCode::internal, name, "format without a reader");
}

std::vector<std::uint8_t> replace_compiled(std::span<const std::uint8_t> file, std::string_view name,
                                           const std::vector<std::vector<std::uint8_t>>& payloads,
                                           const std::vector<std::vector<std::uint8_t>>& read_only) {
  const CompiledFormat format = format_of(file);
  if (format == CompiledFormat::tflite) return replace_compiled_tflite(file, name, payloads, read_only);
  if (payloads.size() != 1 || read_only.size() != 1) {
    fail(ErrorCode::bad_request, name,
         fmt::format("{} payloads and {} read-only tensors for one operator", payloads.size(), read_only.size()));
  }
  return format == CompiledFormat::vela_raw ? replace_vela_raw(file, name, payloads[0], read_only[0])
                                            : replace_vela_bin_stream(file, name, payloads[0], read_only[0]);
}

}  // namespace weightmill
