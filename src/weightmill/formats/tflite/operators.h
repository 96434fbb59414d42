#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/graph.h>

#include "container.h"

namespace weightmill {

/// What operators of one code have in common.
struct OperatorType {
  tflite::BuiltinOperator builtin = tflite::BuiltinOperator::CUSTOM;
  std::string name;  ///< "CONV_2D"; a custom operator's own; "BUILTIN_999" for one newer than this program
  int version = 1;
};

/// The file's table of operator codes. Throws: bad_file if a custom operator has no name or a code is negative.
std::vector<OperatorType> read_operator_types(Container& container);

/// One operator of a subgraph with `n_tensors` tensors; `where` names it in messages.
/// Throws: bad_file if an index is out of range or the options are missing or another operator's.
Node read_operator(Container& container, const tflite::Operator& source, const std::vector<OperatorType>& types,
                   std::size_t n_tensors, std::string_view where);

/// Checks that each of `tensors` is in [lowest, n_tensors).  Throws: bad_file (names `where`, `role` and the index).
void check_tensor_indices(const std::vector<int>& tensors, int lowest, std::size_t n_tensors, std::string_view role,
                          std::string_view where);

}  // namespace weightmill
