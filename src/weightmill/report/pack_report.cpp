#include "report.h"

#include <fmt/format.h>

#include <weightmill/model/dtype.h>

namespace weightmill {
namespace {

PackRow row_of(const PackedLayer& layer) {
  PackRow row;
  row.op_name = layer.role == "weights" ? layer.op_name : fmt::format("{} {}", layer.op_name, layer.role);
  row.name = layer.weights_name;
  row.ohwi = layer.ohwi;
  row.traversal = name_of(layer.traversal);
  if (layer.format != StreamFormat::standard) row.traversal += fmt::format(", {}", name_of(layer.format));
  row.n_weights = layer.n_source_weights;
  row.source_bytes = (layer.n_source_weights * size_bits(layer.weights_dtype) + 7) / 8;
  row.same_as = layer.same_as;
  row.record_bytes = layer.scales.size();
  row.stream_bytes = layer.same_as < 0 ? layer.weights_size_bytes : 0;
  for (const DepthSlice& slice : layer.slices) {
    row.n_streams += slice.streams.size();
    for (const PackedStream& stream : slice.streams) row.n_ordered += stream.n_ordered;
  }
  return row;
}

void add(PackRow& total, const PackRow& row) {
  total.n_weights += row.n_weights;
  total.n_ordered += row.n_ordered;
  total.source_bytes += row.source_bytes;
  total.stream_bytes += row.stream_bytes;
  total.record_bytes += row.record_bytes;
  total.n_streams += row.n_streams;
}

nlohmann::ordered_json sizes_of(const PackRow& row) {
  return {{"n_weights", row.n_weights},
          {"n_ordered", row.n_ordered},
          {"source_bytes", row.source_bytes},
          {"stream_bytes", row.stream_bytes},
          {"record_bytes", row.record_bytes},
          {"n_streams", row.n_streams},
          {"bits_per_weight", row.bits_per_weight()}};
}

}  // namespace

double PackRow::bits_per_weight() const noexcept {
  return n_weights == 0 || same_as >= 0 ? 0.0
                                        : 8.0 * static_cast<double>(stream_bytes) / static_cast<double>(n_weights);
}

PackReport summarize(const Packed& packed) {
  PackReport report{packed.accelerator.name, packed.effort, std::string(name_of(packed.scaling)), {}, {},
                    packed.not_packed};
  for (const PackedLayer& layer : packed.layers) {
    report.rows.push_back(row_of(layer));
    add(report.total, report.rows.back());
  }
  return report;
}

nlohmann::ordered_json to_json(const PackReport& report) {
  nlohmann::ordered_json json{{"schema", "weightmill.pack/1"},
                              {"accelerator", report.accelerator},
                              {"effort", report.effort},
                              {"scaling", report.scaling},
                              {"layers", nlohmann::ordered_json::array()}};
  for (const PackRow& row : report.rows) {
    nlohmann::ordered_json entry{{"op_name", row.op_name},
                                 {"name", row.name},
                                 {"ohwi", row.ohwi},
                                 {"traversal", row.traversal},
                                 {"same_as", row.same_as}};
    entry.update(sizes_of(row));
    json["layers"].push_back(std::move(entry));
  }
  json["total"] = sizes_of(report.total);
  json["not_packed"] = nlohmann::ordered_json::array();
  for (const NotPacked& entry : report.not_packed) {
    json["not_packed"].push_back({{"op_name", entry.op_name}, {"tensor", entry.tensor}, {"reason", entry.reason}});
  }
  return json;
}

}  // namespace weightmill
