#include <fmt/format.h>

#include <weightmill/base/json_text.h>
#include <weightmill/formats/formats.h>
#include <weightmill/formats/packed_files.h>
#include <weightmill/pipeline/inspect_ir.h>
#include <weightmill/pipeline/inspect_onnx.h>
#include <weightmill/pipeline/squeeze.h>
#include <weightmill/report/inspect.h>
#include <weightmill/report/report.h>

#include "compiled_models.h"
#include "console.h"
#include "pack_table.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct InspectArguments {
  Common common;
  std::string file;
};

/// "-" where the file does not say or nothing can be counted.
std::string count_text(std::int64_t count, std::uint64_t n) {
  return count < 0 || n == 0 ? "-"
                             : fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) / static_cast<double>(n));
}

std::vector<std::string> cells_of(const InspectRow& row) {
  const std::string scales = !row.granularity.empty() ? row.granularity
                             : row.n_scales == 0      ? "-"
                             : row.n_scales == 1      ? "per tensor"
                                                      : fmt::format("per channel ({})", row.n_scales);
  const std::string zero_point = row.n_scales == 0 ? "-"
                                 : row.lowest_zero_point == row.highest_zero_point
                                     ? std::to_string(row.lowest_zero_point)
                                     : fmt::format("{}..{}", row.lowest_zero_point, row.highest_zero_point);
  return {std::to_string(row.node),
          row.op_name,
          row.name,
          std::string(name_of(row.dtype)),
          to_string(row.shape),
          scales,
          zero_point,
          with_thin_groups(row.n_weights),
          count_text(row.n_zero_weights, row.n_weights),
          row.n_distinct < 0 ? "-" : std::to_string(row.n_distinct),
          row.entropy_bits < 0 ? "-" : fmt::format("{:.2f}", row.entropy_bits)};
}

void print_table(const InspectReport& report) {
  fmt::print("{}  {}{}{}  {} operators, {} tensors\n\n", report.file, report.format,
             report.description.empty() ? "" : ", ", report.description, report.n_operators, report.n_tensors);
  std::vector<std::vector<std::string>> rows;
  for (const InspectRow& row : report.rows) rows.push_back(cells_of(row));
  fmt::print("{}", format_table({"node", "operator", "weights", "dtype", "shape", "scales", "zero point", "count",
                                 "zeros", "distinct", "entropy bits"},
                                rows, "><<<<<>>>>>"));
  for (const InspectRow& row : report.rows) {
    if (!row.note.empty()) fmt::print("  {} {}: {}\n", row.op_name, row.name, row.note);
  }
}

InspectReport inspect_model(const std::string& file) {
  if (is_onnx(file)) return inspect_onnx(file);
  return is_ir_path(file) ? inspect_ir(file) : inspect(read_model(file));
}

int run(const InspectArguments& arguments) {
  if (is_packed(arguments.file)) {
    const PackReport report = summarize(read_packed(arguments.file).packed);
    if (arguments.common.json)
      fmt::print("{}\n", json_text(to_json(report)));
    else
      print_pack_table(report);
    return 0;
  }
  if (is_compiled_file(arguments.file)) return inspect_compiled_model(arguments.file, arguments.common);
  const InspectReport report = inspect_model(arguments.file);
  if (arguments.common.json)
    fmt::print("{}\n", json_text(to_json(report)));
  else
    print_table(report);
  return 0;
}

}  // namespace

void add_inspect(Verbs& verbs) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App& verb =
      verbs.add("inspect", "What is in a file: one row for each weight-bearing operator or, compiled, weight stream",
                arguments->common, [arguments] { return run(*arguments); });
  verb.footer("Example:\n  weightmill inspect model_vela.tflite\n");
  verb.add_option("FILE", arguments->file, "Model, compiled model or packed folder")->required();
}

}  // namespace weightmill::cli
