// The first four bytes say how long the .xml is; the rest is the .bin. The model is read, every Const looked at, folded in
// all semantics without writing, and its float weights are quantized.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include <unistd.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>
#include <weightmill/formats/openvino.h>
#include <weightmill/pipeline/fold_ir.h>
#include <weightmill/pipeline/quantize_ir.h>

#include "quantize_options.h"

namespace {

namespace fs = std::filesystem;

/// A folder of its own for each process.
const fs::path& folder() {
  static const fs::path path = [] {
    const fs::path made = fs::temp_directory_path() / ("weightmill-fuzz-ir-" + std::to_string(::getpid()));
    fs::create_directories(made);
    std::atexit(
        [] { fs::remove_all(fs::temp_directory_path() / ("weightmill-fuzz-ir-" + std::to_string(::getpid()))); });
    return made;
  }();
  return path;
}

/// What can be quantized can be read again, and holds no weight that can be quantized once more.
void quantize(std::span<const std::uint8_t> xml, std::span<const std::uint8_t> bin) {
  const auto options = weightmill::fuzz_quantize_options(xml.size() + bin.size(),
                                                         {"MatMul", "Convolution", "GroupConvolution", "Gather"});
  const fs::path in = folder() / "in.xml", out = folder() / "out.xml";
  weightmill::write_file(in, xml);
  weightmill::write_file(folder() / "in.bin", bin);
  try {
    weightmill::quantize_weights_ir(in, out, options);
  } catch (const weightmill::Error& error) {
    if (error.code == weightmill::ErrorCode::internal) std::abort();
    return;  // to refuse is a right answer
  }
  try {
    weightmill::quantize_weights_ir(out, {}, options);
    std::abort();
  } catch (const weightmill::Error& error) {
    using enum weightmill::ErrorCode;
    if (error.code != unsupported) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  std::uint32_t xml_size;
  std::memcpy(&xml_size, data, sizeof xml_size);
  const std::span<const std::uint8_t> rest(data + 4, size - 4);
  const auto xml = rest.first(std::min<std::size_t>(xml_size, rest.size()));
  const auto bin = rest.subspan(xml.size());
  try {
    using enum weightmill::FoldSemantics;
    for (const auto semantics : {strict, openvino, mo2021}) {
      weightmill::FoldOptions options;
      options.semantics = semantics;
      options.jobs = 1;
      options.fold_16_bit = options.zero_points_of_chains = true;
      if (weightmill::plan_fold_ir(xml, bin, options).tensors.size() > size) std::abort();
    }
  } catch (const weightmill::Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  quantize(xml, bin);
  return 0;
}
