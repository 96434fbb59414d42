#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <weightmill/model/graph.h>

namespace weightmill {

/// The weights of one operator, as the file has them.
struct InspectRow {
  int subgraph = 0;
  int node = 0;
  std::string op_name;
  std::string name;  ///< of the weight tensor
  DType dtype = DType::other;
  Shape shape;  ///< in the format's own axis order
  DType ifm_dtype = DType::other;
  std::size_t n_scales = 0;  ///< 0: not quantized; 1: per tensor
  std::int64_t lowest_zero_point = 0, highest_zero_point = 0;
  bool constant = false;
  bool sparse = false;
  std::string granularity;  ///< of the scales, in words; empty: as many as n_scales, along the output channels
  std::string note;         ///< what is worth knowing about how the weights are stored; empty: nothing
  std::uint64_t n_weights = 0;
  std::uint64_t size_bytes = 0;
  // Of integer constants of at most 8 bits; -1 elsewhere.
  std::int64_t n_zero_weights = -1;  ///< equal to their zero point
  std::int64_t n_distinct = -1;
  double entropy_bits = -1;  ///< a weight, of order zero: what no coder of single weights gets below
};

/// What a model file holds.
struct InspectReport {
  std::string file;
  std::string format;
  std::string description;
  std::size_t n_subgraphs = 0, n_operators = 0, n_tensors = 0;
  std::vector<InspectRow> rows;  ///< one for each weight tensor of a weight-bearing operator, in the model's order
};

InspectReport inspect(const Model& model);

/// Schema "weightmill.inspect/1".
nlohmann::ordered_json to_json(const InspectReport& report);

}  // namespace weightmill
