#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/quantize.h>
#include <weightmill/report/quantize_report.h>

#include "console.h"
#include "progress_bar.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct QuantizeArguments {
  Common common;
  std::string input, output;
  std::string weight_type = "int8", scale_method = "auto", external_data = "auto";
  WeightQuantizeOptions options;
  bool weights_only = false, per_tensor = false, dry_run = false;
};

WeightQuantizeReport quantize_input(QuantizeArguments& arguments) {
  if (!arguments.weights_only) {
    fail(ErrorCode::bad_option, "--weights-only",
         "is missing: activations are not quantized yet, only weights; add it to say that this is wanted");
  }
  if (arguments.output.empty() && !arguments.dry_run) {
    fail(ErrorCode::bad_option, "--output", "is missing: -o OUT says where the result goes (--dry-run writes nothing)");
  }
  WeightQuantizeOptions& options = arguments.options;
  options.weight_type = weight_type(arguments.weight_type);
  options.scale_method = scale_method(arguments.scale_method);
  options.external_data = external_data(arguments.external_data);
  options.per_channel = !arguments.per_tensor;
  options.jobs = arguments.common.jobs;
  ProgressBar bar(arguments.common.quiet);
  return quantize_weights(arguments.input, arguments.dry_run ? "" : arguments.output, options, bar.callback());
}

std::string decibels(double value) { return std::isfinite(value) ? fmt::format("{:.1f}", value) : "exact"; }

/// What a reader should know of a weight beside its numbers.
std::string remarks(const QuantizedWeight& weight) {
  if (weight.outcome == WeightOutcome::left) return "left: " + weight.reason;
  std::vector<std::string> parts;
  if (!weight.note.empty()) parts.push_back(weight.note);
  if (!weight.zero_channels.empty())
    parts.push_back(fmt::format("zero channels {}", fmt::join(weight.zero_channels, ", ")));
  if (!weight.negligible_channels.empty())
    parts.push_back(fmt::format("negligible channels {}", fmt::join(weight.negligible_channels, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<std::string> row_of(const QuantizedWeight& weight) {
  const bool left = weight.outcome == WeightOutcome::left;
  return {weight.op,
          weight.node,
          weight.weight,
          to_string(weight.shape),
          left ? std::string(name_of(weight.type_before))
               : fmt::format("{} -> {}", name_of(weight.type_before), name_of(weight.type_after)),
          weight.granularity,
          with_thin_groups(weight.bytes_before),
          with_thin_groups(weight.bytes_after),
          left ? "" : decibels(weight.sqnr_db),
          left ? "" : decibels(weight.worst_sqnr_db),
          remarks(weight)};
}

void print_report(const WeightQuantizeReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const QuantizedWeight& weight : report.weights) rows.push_back(row_of(weight));
  fmt::print("{}\n", format_table({"operator", "node", "weight", "shape", "type", "scales", "bytes before", "after",
                                   "SQNR dB", "worst channel", ""},
                                  rows, "<<<<<<>>>><"));
  fmt::print("{} quantized, {} left; {} -> {} bytes\n", report.count(WeightOutcome::quantized),
             report.count(WeightOutcome::left), with_thin_groups(report.bytes_before),
             with_thin_groups(report.bytes_after));
}

int run(QuantizeArguments& arguments) {
  const WeightQuantizeReport report = quantize_input(arguments);
  if (arguments.common.json) {
    fmt::print("{}\n", json_text(to_json(report)));
  } else {
    print_report(report);
  }
  if (!arguments.common.quiet) {
    for (const std::string& note : report.notes) print_note(note);
  }
  if (report.count_below_min_sqnr() == 0) return 0;
  print_error(fmt::format("{}: {} weights are below {} dB: nothing was written", arguments.input,
                          report.count_below_min_sqnr(), report.options.min_sqnr_db));
  return 1;
}

}  // namespace

void add_quantize(Verbs& verbs) {
  auto arguments = std::make_shared<QuantizeArguments>();
  WeightQuantizeOptions& options = arguments->options;
  CLI::App& verb = verbs.add("quantize", "Float weights of an ONNX model or OpenVINO IR -> integers", arguments->common,
                             [arguments] { return run(*arguments); });
  verb.footer(
      "Example:\n  weightmill quantize model.onnx --weights-only -o model_int8.onnx\n"
      "  weightmill quantize model.xml --weights-only --weight-type uint4 --block-size 32 -o model_u4.xml\n");
  verb.add_option("MODEL", arguments->input, "ONNX model or OpenVINO IR (.xml, with its .bin beside it), of any size")
      ->required();
  verb.add_option("-o,--output", arguments->output, "Where the result goes; not the input");
  verb.add_flag("--weights-only", arguments->weights_only,
                "Activations stay in floating point; no sample data is needed");
  verb.add_option("--weight-type", arguments->weight_type,
                  "int8 and int4 (symmetric), uint8 and uint4 (with zero points); 4 bits for matrices only")
      ->check(CLI::IsMember({"int8", "uint8", "int4", "uint4"}))
      ->capture_default_str();
  verb.add_option("--scale-method", arguments->scale_method,
                  "Scales from the largest weight (minmax) or with the least squared error (mse); auto: mse for 4 bits")
      ->check(CLI::IsMember({"auto", "minmax", "mse"}))
      ->capture_default_str();
  verb.add_flag("--per-tensor", arguments->per_tensor, "One scale for a weight, not one for each output channel");
  verb.add_option("--block-size", options.block_size,
                  "Matrices: so many inputs of an output share a scale; a power of two from 16 on");
  verb.add_option("--op-types", options.op_types,
                  "Operators to quantize, in the model's words; Gather only if named here")
      ->delimiter(',');
  verb.add_option("--exclude", options.exclude, "Names of operators that stay as they are; * and ? match any letters")
      ->delimiter(',');
  verb.add_option("--min-sqnr", options.min_sqnr_db, "Write nothing if a weight has fewer decibels; exit status 1");
  verb.add_flag("--strict", options.fail_on_left, "A float weight that cannot be quantized is an error");
  verb.add_option("--external-data", arguments->external_data,
                  "ONNX: tensors beside the model file: auto, never or always")
      ->check(CLI::IsMember({"auto", "never", "always"}))
      ->capture_default_str();
  verb.add_flag("--dry-run", arguments->dry_run, "Do all the work, write nothing");
}

}  // namespace weightmill::cli
