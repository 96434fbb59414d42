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

}  // namespace

/// What can be folded can be read again, and a second fold finds nothing to do.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fs::path in = folder() / "in.onnx", out = folder() / "out.onnx";
  weightmill::FoldOptions options;
  options.jobs = 1;
  options.external_data = size % 2 == 0 ? weightmill::ExternalData::automatic : weightmill::ExternalData::always;
  weightmill::write_file(in, {data, size});
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
