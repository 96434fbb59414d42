#include "quantize_report.h"

#include <cmath>

namespace weightmill {
namespace {

nlohmann::ordered_json decibels(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const QuantizedWeight& weight) {
  nlohmann::ordered_json json;
  json["node"] = weight.node;
  json["op"] = weight.op;
  json["weight"] = weight.weight;
  json["outcome"] = name_of(weight.outcome);
  json["reason"] = weight.reason;
  json["excluded_by"] = weight.excluded_by;
  json["via"] = weight.via;
  json["shape"] = weight.shape;
  json["type_before"] = name_of(weight.type_before);
  json["type_after"] = name_of(weight.type_after);
  json["bytes_before"] = weight.bytes_before;
  json["bytes_after"] = weight.bytes_after;
  json["granularity"] = weight.granularity;
  json["n_scales"] = weight.n_scales;
  json["note"] = weight.note;
  json["sqnr_db"] = decibels(weight.sqnr_db);
  json["worst_sqnr_db"] = decibels(weight.worst_sqnr_db);
  json["max_error_steps"] = weight.max_error_steps;
  json["zero_channels"] = weight.zero_channels;
  json["negligible_channels"] = weight.negligible_channels;
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const WeightQuantizeReport& report) {
  nlohmann::ordered_json json;
  json["schema"] = "weightmill.quantize/1";
  json["input"] = report.input;
  json["output"] = report.output;
  json["format"] = report.format;
  json["weight_type"] = name_of(report.options.weight_type);
  json["scale_method"] = name_of(report.options.scale_method);
  json["per_channel"] = report.options.per_channel;
  json["block_size"] = report.options.block_size;
  json["min_sqnr_db"] = report.options.min_sqnr_db;
  json["bytes_before"] = report.bytes_before;
  json["bytes_after"] = report.bytes_after;
  json["quantized"] = report.count(WeightOutcome::quantized);
  json["left"] = report.count(WeightOutcome::left);
  json["below_min_sqnr"] = report.count_below_min_sqnr();
  json["folded_chains"] = report.n_folded_chains;
  json["weights"] = nlohmann::ordered_json::array();
  for (const QuantizedWeight& weight : report.weights) json["weights"].push_back(to_json(weight));
  json["notes"] = report.notes;
  return json;
}

}  // namespace weightmill
