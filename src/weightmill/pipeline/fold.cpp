#include "fold.h"

#include <algorithm>

#include <weightmill/base/error.h>
#include <weightmill/base/mapped_file.h>

#include "fold_ir.h"
#include "fold_onnx.h"

namespace weightmill {
namespace {

/// XML begins with '<', perhaps behind a byte order mark and blanks. No protobuf file does: it would be the end of a
/// group.
bool is_xml(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  const auto is_filling = [](std::uint8_t byte) { return byte <= ' ' || byte == 0xef || byte == 0xbb || byte == 0xbf; };
  const auto first = std::find_if_not(bytes.begin(), bytes.end(), is_filling);
  return first != bytes.end() && *first == '<';
}

/// A TFLite file says so in bytes 4 to 7.
bool is_tflite(const std::filesystem::path& path) {
  const MappedFile file(path);
  constexpr std::string_view kIdentifier = "TFL3";
  const auto bytes = file.bytes();
  return bytes.size() >= 8 && std::equal(kIdentifier.begin(), kIdentifier.end(), bytes.begin() + 4);
}

}  // namespace

FoldReport fold_file(const std::filesystem::path& in, const std::filesystem::path& out, const FoldOptions& options,
                     const Progress& progress) {
  if (is_tflite(in))
    fail(ErrorCode::unsupported, in.string(), "is a TFLite model, whose constants are integers already");
  return is_xml(in) ? fold_ir(in, out, options, progress) : fold_onnx(in, out, options, progress);
}

}  // namespace weightmill
