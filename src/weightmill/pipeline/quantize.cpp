#include "quantize.h"

#include <weightmill/base/error.h>

#include "model_file.h"
#include "quantize_ir.h"
#include "quantize_onnx.h"

namespace weightmill {

WeightQuantizeReport quantize_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                                      const WeightQuantizeOptions& options, const Progress& progress) {
  check(options);
  if (is_tflite(in))
    fail(ErrorCode::unsupported, in.string(),
         "is a TFLite model: weights alone are quantized in ONNX models and OpenVINO IR");
  if (is_xml(in)) return quantize_weights_ir(in, out, options, progress);
  return quantize_weights_onnx(in, out, options, progress);
}

}  // namespace weightmill
