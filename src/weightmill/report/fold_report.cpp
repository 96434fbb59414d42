#include "fold_report.h"

#include <string>

namespace weightmill {
namespace {

nlohmann::ordered_json to_json(const FoldedTensor& tensor) {
  nlohmann::ordered_json json;
  json["name"] = tensor.name;
  json["constant"] = tensor.constant;
  json["outcome"] = name_of(tensor.outcome);
  json["reason"] = tensor.reason;
  json["shape"] = tensor.shape;
  json["type_before"] = name_of(tensor.type_before);
  json["type_after"] = name_of(tensor.type_after);
  json["bytes_before"] = tensor.bytes_before;
  json["bytes_after"] = tensor.bytes_after;
  json["max_error_steps"] = tensor.max_error_steps;
  json["bound_steps"] = tensor.bound_steps;
  json["zero_point_dropped"] = tensor.zero_point_dropped;
  json["zero_point_kept"] = tensor.zero_point_kept;
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const FoldReport& report) {
  nlohmann::ordered_json json;
  json["schema"] = "weightmill.fold/1";
  json["input"] = report.input;
  json["output"] = report.output;
  json["format"] = report.format;
  json["semantics"] = name_of(report.semantics);
  json["bytes_before"] = report.bytes_before;
  json["bytes_after"] = report.bytes_after;
  json["folded"] = report.count(FoldOutcome::folded);
  json["zero_points"] = report.count(FoldOutcome::zero_point);
  json["left"] = report.count(FoldOutcome::left);
  json["tensors"] = nlohmann::ordered_json::array();
  for (const FoldedTensor& tensor : report.tensors) json["tensors"].push_back(to_json(tensor));
  json["notes"] = report.notes;
  return json;
}

}  // namespace weightmill
