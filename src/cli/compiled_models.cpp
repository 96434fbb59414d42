#include "compiled_models.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/parallel.h>
#include <weightmill/pipeline/squeeze.h>

#include "console.h"

namespace weightmill::cli {
namespace {

std::vector<std::string> cells_of(const StreamRow& row) {
  return {row.program,
          std::to_string(row.first_op),
          row.op,
          std::to_string(row.core),
          std::to_string(row.region),
          with_thin_groups(row.offset),
          with_thin_groups(row.size_bytes),
          with_thin_groups(row.weights),
          fmt::format("{:.2f}", row.bits_per_weight()),
          with_thin_groups(row.passes),
          with_thin_groups(row.zeros),
          std::to_string(row.distinct),
          std::to_string(row.uses),
          row.sparse ? row.format + ", sparse" : row.format};
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  const double percent = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{} ({:.1f} %)", with_thin_groups(part), percent);
}

void print_coverage(const TensorCoverage& coverage) {
  std::uint64_t dead = 0;
  for (const auto& [begin, end] : coverage.dead) dead += end - begin;
  const auto part = [&](std::uint64_t bytes) { return share(bytes, coverage.size_bytes); };
  fmt::print(
      "\nread-only tensor: {} bytes; weights {}, scales {}, tables and copies {}, constant feature maps {}, "
      "not read {}, of which squeeze takes out {}\n",
      with_thin_groups(coverage.size_bytes), part(coverage.weights), part(coverage.scales), part(coverage.copied),
      part(coverage.constants), part(coverage.rest), with_thin_groups(dead));
}

/// The last line of the table.
std::vector<std::string> total_of(const std::vector<StreamRow>& rows) {
  StreamRow total;
  for (const StreamRow& row : rows) {
    total.size_bytes += row.size_bytes;
    total.weights += row.weights;
    total.passes += row.passes;
    total.zeros += row.zeros;
  }
  return {"total",
          "",
          "",
          "",
          "",
          "",
          with_thin_groups(total.size_bytes),
          with_thin_groups(total.weights),
          fmt::format("{:.2f}", total.bits_per_weight()),
          with_thin_groups(total.passes),
          with_thin_groups(total.zeros),
          "",
          "",
          ""};
}

void print_group(const CompiledReport& group) {
  fmt::print("\n{} {}, configuration {:08X}\n", group.product, group.payload, group.configuration);
  std::vector<std::vector<std::string>> rows;
  for (const StreamRow& row : group.streams) rows.push_back(cells_of(row));
  rows.push_back(total_of(group.streams));
  fmt::print("{}", format_table({"operator", "op", "kind", "core", "region", "offset", "bytes", "weights",
                                 "bits/weight", "passes", "zeros", "distinct", "uses", "format"},
                                rows, "<><>>>>>>>>>><"));
  print_coverage(group.coverage);
}

}  // namespace

int inspect_compiled_model(const std::string& path, const Common& common) {
  const CompiledFileReport report = inspect_compiled(path, resolve_jobs(common.jobs));
  if (common.json) {
    fmt::print("{}\n", json_text(to_json(report)));
    return 0;
  }
  fmt::print("{}  {}  {} bytes  {} NPU operators, {} CPU operators\n", report.file, report.format,
             with_thin_groups(report.size_bytes), report.n_npu_operators, report.n_cpu_operators);
  for (const CompiledReport& group : report.groups) print_group(group);
  return 0;
}

int verify_compiled_models(const std::string& first, const std::string& second, const Common& common) {
  if (second.empty())
    fail(ErrorCode::bad_option, "B", "is missing: a compiled model is compared with another compiled model");
  const auto difference = compare_compiled(first, second);
  if (common.json) {
    const nlohmann::ordered_json json{
        {"schema", "weightmill.verify-compiled/1"},
        {"identical", !difference},
        {"difference", difference ? nlohmann::ordered_json(*difference) : nlohmann::ordered_json()}};
    fmt::print("{}\n", json_text(json));
  } else if (difference) {
    fmt::print("they differ: {}\n", *difference);
  } else {
    fmt::print("the same weights, scales, constants, tables and register values\n");
  }
  return difference ? 1 : 0;
}

}  // namespace weightmill::cli
