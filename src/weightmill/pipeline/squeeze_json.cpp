#include <fmt/format.h>

#include "squeeze.h"

namespace weightmill {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const StreamRow& row) {
  return {{"operator", row.program},   {"op", row.op},           {"first_op", row.first_op},
          {"core", row.core},          {"region", row.region},   {"offset", row.offset},
          {"bytes", row.size_bytes},   {"weights", row.weights}, {"bits_per_weight", row.bits_per_weight()},
          {"zeros", row.zeros},        {"distinct", row.distinct}, {"uses", row.uses},
          {"format", row.format},      {"sparse", row.sparse},   {"passes", row.passes},
          {"crc32", fmt::format("{:08x}", row.crc32)}};
}

Json coverage_json(const TensorCoverage& coverage) {
  return {{"bytes", coverage.size_bytes},   {"weights", coverage.weights}, {"scales", coverage.scales},
          {"copied", coverage.copied},      {"constants", coverage.constants}, {"rest", coverage.rest},
          {"rest_nonzero", coverage.rest_nonzero}, {"dead", coverage.dead}};
}

Json group_json(const CompiledReport& group) {
  Json streams = Json::array();
  for (const StreamRow& row : group.streams) streams.push_back(row_json(row));
  return {{"product", group.product},
          {"payload", group.payload},
          {"configuration", fmt::format("{:08x}", group.configuration)},
          {"architecture", fmt::format("{:08x}", group.architecture)},
          {"npu_operators", group.n_programs},
          {"command_words", group.command_words},
          {"hw_ops", group.hw_ops},
          {"coverage", coverage_json(group.coverage)},
          {"streams", std::move(streams)}};
}

Json change_json(const StreamChange& change) {
  return {{"operator", change.program},
          {"first_op", change.first_op},
          {"core", change.core},
          {"offset", change.offset},
          {"weights", change.weights},
          {"bytes_before", change.bytes_before},
          {"bytes_after", change.bytes_after},
          {"passes_before", change.passes_before},
          {"passes_after", change.passes_after}};
}

}  // namespace

Json to_json(const SqueezeReport& report) {
  const SqueezeSummary& summary = report.summary;
  Json changes = Json::array();
  for (const StreamChange& change : summary.streams) changes.push_back(change_json(change));
  return {{"schema", "weightmill.squeeze/1"},
          {"smaller", report.is_smaller()},
          {"bytes_before", report.bytes_before},
          {"bytes_after", report.bytes_after},
          {"npu_operators", report.n_npu_operators},
          {"streams", summary.n_streams},
          {"streams_replaced", summary.n_replaced},
          {"weights", summary.n_weights},
          {"stream_bytes_before", summary.stream_bytes_before},
          {"stream_bytes_after", summary.stream_bytes_after},
          {"passes_before", summary.passes_before},
          {"passes_after", summary.passes_after},
          {"dead_bytes", summary.dead_bytes},
          {"register_writes_added", summary.n_insertions},
          {"stream_changes", std::move(changes)}};
}

Json to_json(const CompiledFileReport& report) {
  Json groups = Json::array();
  for (const CompiledReport& group : report.groups) groups.push_back(group_json(group));
  return {{"schema", "weightmill.inspect-compiled/1"},
          {"file", report.file},
          {"format", report.format},
          {"bytes", report.size_bytes},
          {"npu_operators", report.n_npu_operators},
          {"cpu_operators", report.n_cpu_operators},
          {"read_only_tensors", std::move(groups)}};
}

}  // namespace weightmill
