#include "pack_table.h"

#include <fmt/format.h>

#include "console.h"

namespace weightmill::cli {
namespace {

std::string ohwi_text(const PackRow& row) {
  return fmt::format("{}x{}x{}x{}", row.ohwi[0], row.ohwi[1], row.ohwi[2], row.ohwi[3]);
}

std::vector<std::string> cells_of(const PackRow& row, const std::string& number) {
  const std::string bits =
      row.same_as >= 0 ? fmt::format("as {}", row.same_as) : fmt::format("{:.2f}", row.bits_per_weight());
  return {number,
          row.op_name,
          row.name,
          ohwi_text(row),
          row.traversal,
          with_thin_groups(row.n_weights),
          with_thin_groups(row.stream_bytes),
          bits,
          with_thin_groups(row.record_bytes),
          std::to_string(row.n_streams)};
}

}  // namespace

void print_pack_table(const PackReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < report.rows.size(); ++i) rows.push_back(cells_of(report.rows[i], std::to_string(i)));
  const PackRow& total = report.total;
  rows.push_back({"", "total", "", "", "", with_thin_groups(total.n_weights), with_thin_groups(total.stream_bytes),
                  fmt::format("{:.2f}", total.bits_per_weight()), with_thin_groups(total.record_bytes),
                  std::to_string(total.n_streams)});
  fmt::print("{}", format_table({"#", "operator", "weights", "OHWI", "traversal", "count", "bytes", "bits/weight",
                                 "record bytes", "streams"},
                                rows, "><<<<>>>>>"));
  if (total.stream_bytes > 0) {
    fmt::print("\n{}: {} weights in {} bytes, {:.1f} % of the {} bytes in the model; encoder {}, scaling {}\n",
               report.accelerator, with_thin_groups(total.n_weights), with_thin_groups(total.stream_bytes),
               100.0 * static_cast<double>(total.stream_bytes) / static_cast<double>(total.source_bytes),
               with_thin_groups(total.source_bytes), report.effort, report.scaling);
  }
  if (report.not_packed.empty()) return;
  fmt::print("\nnot packed:\n");
  for (const NotPacked& entry : report.not_packed) {
    fmt::print("  {} {}: {}\n", entry.op_name, entry.tensor, entry.reason);
  }
}

}  // namespace weightmill::cli
