#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>
#include <weightmill/formats_onnx/onnx.h>
#include <weightmill/pipeline/fold_onnx.h>
#include <weightmill/pipeline/quantize_onnx.h>

#include "quantize_options.h"

namespace {

namespace fs = std::filesystem;

/// A folder of its own for each process, with files that external data may name.
const fs::path& folder() {
  static const fs::path path = [] {
    const fs::path made = fs::temp_directory_path() / ("weightmill-fuzz-onnx-" + std::to_string(::getpid()));
    fs::create_directories(made / "sub");
    weightmill::write_file(made / "w.bin", std::string(256, 'w'));
    weightmill::write_file(made / "sub" / "v.bin", std::string(64, 'v'));
    std::atexit(
        [] { fs::remove_all(fs::temp_directory_path() / ("weightmill-fuzz-onnx-" + std::to_string(::getpid()))); });
    return made;
  }();
  return path;
}

/// What can be quantized can be read again, and holds no weight that can be quantized once more.
void quantize(const fs::path& in, const fs::path& out, const weightmill::WeightQuantizeOptions& options) {
  const auto report = weightmill::quantize_weights_onnx(in, out, options);
  if (weightmill::OnnxModel(out).float_weights().size() > report.count(weightmill::WeightOutcome::left)) std::abort();
}

}  // namespace

/// What can be folded can be read again, and a second fold finds nothing to do.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fs::path in = folder() / "in.onnx", out = folder() / "out.onnx";
  weightmill::FoldOptions options;
  options.jobs = 1;
  options.external_data = size % 2 == 0 ? weightmill::ExternalData::automatic : weightmill::ExternalData::always;
  weightmill::write_file(in, {data, size});
  try {
    quantize(in, out, weightmill::fuzz_quantize_options(size, {"MatMul", "Gemm", "Conv", "Gather"}));
  } catch (const weightmill::Error& error) {
    if (error.code == weightmill::ErrorCode::internal) std::abort();
  }
  try {
    weightmill::OnnxModel(in).weights();
    weightmill::fold_onnx(in, out, options);
  } catch (const weightmill::Error& error) {
    if (error.code == weightmill::ErrorCode::internal) std::abort();
    return 0;  // to refuse is a right answer
  }
  if (weightmill::fold_onnx(out, {}, options).count(weightmill::FoldOutcome::folded) != 0) std::abort();
  return 0;
}
