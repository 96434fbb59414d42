#include "fold.h"

#include <weightmill/base/error.h>

#include "fold_ir.h"
#include "fold_onnx.h"
#include "model_file.h"

namespace weightmill {

FoldReport fold_file(const std::filesystem::path& in, const std::filesystem::path& out, const FoldOptions& options,
                     const Progress& progress) {
  if (is_tflite(in))
    fail(ErrorCode::unsupported, in.string(), "is a TFLite model, whose constants are integers already");
  return is_xml(in) ? fold_ir(in, out, options, progress) : fold_onnx(in, out, options, progress);
}

}  // namespace weightmill
