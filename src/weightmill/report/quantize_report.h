#pragma once

#include <nlohmann/json.hpp>

#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// Schema "weightmill.quantize/1"; an infinite number of decibels is null.  [docs/cli.md]
nlohmann::ordered_json to_json(const WeightQuantizeReport& report);

}  // namespace weightmill
