#include "fold.h"

#include <algorithm>

#include <weightmill/base/error.h>
#include <weightmill/base/mapped_file.h>

#include "fold_ir.h"
#include "fold_onnx.h"

namespace weightmill {
namespace {

/// XML begins with '<', perhaps behind a byte order mark and blanks. No ONNX file does: '<' would be the end of a
/// group, and no field of a model has a blank for its tag.
bool is_xml(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '<';
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
