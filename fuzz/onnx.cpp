#include <array>
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

/// The bytes of the input choose codes and granularity.
weightmill::WeightQuantizeOptions quantize_options(std::size_t size) {
  using weightmill::DType;
  constexpr std::array kTypes{DType::i8, DType::u8, DType::i4, DType::u4};
  weightmill::WeightQuantizeOptions options;
  options.jobs = 1;
  options.weight_type = kTypes[size % kTypes.size()];
  options.block_size = size % 3 == 0 ? 16 : 0;
  options.per_channel = options.block_size > 0 || size % 5 != 0;
  if (size % 2 == 0) options.op_types = {"MatMul", "Gemm", "Conv", "Gather"};
  return options;
}

/// What can be quantized can be read again, and holds no weight that can be quantized once more.
void quantize(const fs::path& in, const fs::path& out, const weightmill::WeightQuantizeOptions& options) {
  const auto report = weightmill::quantize_weights_onnx(in, out, options);
  const std::size_t n_left = report.count(weightmill::WeightOutcome::left);
  std::size_t n_float = 0;
  for (const auto& weight : weightmill::OnnxModel(out).float_weights()) n_float += weight.op.empty() ? 0 : 1;
  if (n_float > n_left) std::abort();
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
    quantize(in, out, quantize_options(size));
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
