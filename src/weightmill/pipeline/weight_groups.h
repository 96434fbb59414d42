#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <weightmill/model/weight_quantization.h>

#include "weight_coder.h"

namespace weightmill {

/// Where the weight of a row is stored.
struct WeightSource {
  std::size_t id = 0;        ///< equal for rows that read the same stored constant
  std::string other_reader;  ///< what else reads that, and is in no row; empty: nothing
};

/// Operators that read one constant in the same way, and so share its codes.
struct WeightGroup {
  std::vector<std::size_t> rows;
  ScalePlan plan;
};

/// A constant that stays in float for somebody is not stored a second time for the others: their rows say who that is.
void leave_shared(std::span<const WeightSource> sources, std::vector<QuantizedWeight>& rows);

/// The rows that have no reason to be left, in groups of those with one source, one plan and the same elements.
std::vector<WeightGroup> group_weights(std::span<const WeightSource> sources, std::span<const QuantizedWeight> rows,
                                       const std::function<ScalePlan(std::size_t row)>& plan_of,
                                       const std::function<bool(std::size_t a, std::size_t b)>& same_elements);

/// Writes what became of a group into its rows; the first one counts the bytes.
void record(const WeightGroup& group, const CodedWeight& coded, std::vector<QuantizedWeight>& rows);

/// A stored constant counts in the first row that has it.
void count_sources_once(std::span<const WeightSource> sources, std::vector<QuantizedWeight>& rows);

}  // namespace weightmill
