#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// The size of the input chooses codes, granularity and, for every second one, `op_types` in place of the usual ones.
inline WeightQuantizeOptions fuzz_quantize_options(std::size_t size, std::vector<std::string> op_types) {
  constexpr std::array kTypes{DType::i8, DType::u8, DType::i4, DType::u4};
  WeightQuantizeOptions options;
  options.jobs = 1;
  options.weight_type = kTypes[size % kTypes.size()];
  options.block_size = size % 3 == 0 ? 16 : 0;
  options.per_channel = options.block_size > 0 || size % 5 != 0;
  if (size % 2 == 0) options.op_types = std::move(op_types);
  return options;
}

}  // namespace weightmill
