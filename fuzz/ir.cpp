// The first four bytes say how long the .xml is; the rest is the .bin. The model is read, every Const looked at, and
// folded in all semantics without writing.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include <weightmill/base/error.h>
#include <weightmill/formats/openvino.h>
#include <weightmill/pipeline/fold_ir.h>

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
  return 0;
}
