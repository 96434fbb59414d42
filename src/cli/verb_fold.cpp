#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/fold.h>
#include <weightmill/report/fold_report.h>

#include "console.h"
#include "progress_bar.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct FoldArguments {
  Common common;
  std::string input, output;
  std::string semantics = "strict", external_data = "auto";
  FoldOptions options;
  bool disable_compression = false, dry_run = false;
};

FoldReport fold_input(FoldArguments& arguments) {
  if (arguments.output.empty() && !arguments.dry_run) {
    fail(ErrorCode::bad_option, "--output", "is missing: -o OUT says where the result goes (--dry-run writes nothing)");
  }
  arguments.options.semantics = fold_semantics(arguments.semantics);
  arguments.options.external_data = external_data(arguments.external_data);
  arguments.options.compress_weights = !arguments.disable_compression;
  arguments.options.jobs = arguments.common.jobs;
  ProgressBar bar(arguments.common.quiet);
  return fold_file(arguments.input, arguments.dry_run ? "" : arguments.output, arguments.options, bar.callback());
}

std::string zero_point_word(const FoldedTensor& tensor) {
  if (tensor.zero_point_dropped) return "dropped";
  return tensor.zero_point_kept ? "kept" : "";
}

std::vector<std::string> row_of(const FoldedTensor& tensor) {
  const bool left = tensor.outcome == FoldOutcome::left;
  return {tensor.name,
          fmt::format("{} -> {}", name_of(tensor.type_before), name_of(tensor.type_after)),
          with_thin_groups(tensor.bytes_before),
          with_thin_groups(tensor.bytes_after),
          left ? "" : fmt::format("{:.2g}", tensor.max_error_steps),
          zero_point_word(tensor),
          left ? "left: " + tensor.reason : std::string(name_of(tensor.outcome))};
}

void print_report(const FoldReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const FoldedTensor& tensor : report.tensors) rows.push_back(row_of(tensor));
  if (!rows.empty()) {
    fmt::print("{}\n", format_table({"tensor", "type", "bytes before", "after", "error in steps", "zero point", ""},
                                    rows, "<<>>><<"));
  }
  fmt::print("{} folded, {} zero points dropped, {} left; {} -> {} bytes\n", report.count(FoldOutcome::folded),
             std::ranges::count_if(report.tensors, &FoldedTensor::zero_point_dropped), report.count(FoldOutcome::left),
             with_thin_groups(report.bytes_before), with_thin_groups(report.bytes_after));
}

int run(FoldArguments& arguments) {
  const FoldReport report = fold_input(arguments);
  if (arguments.common.json) {
    fmt::print("{}\n", json_text(to_json(report)));
  } else {
    print_report(report);
  }
  if (arguments.common.quiet) return 0;
  for (const std::string& note : report.notes) print_note(note);
  return 0;
}

}  // namespace

void add_fold(Verbs& verbs) {
  auto arguments = std::make_shared<FoldArguments>();
  CLI::App& verb = verbs.add("fold", "Fake-quantized constants of an OpenVINO IR or an ONNX model -> integer constants",
                             arguments->common, [arguments] { return run(*arguments); });
  verb.footer("Example:\n  weightmill fold model_int8.xml -o folded.xml\n");
  verb.add_option("MODEL", arguments->input, "OpenVINO IR (.xml, with the .bin beside it) or ONNX model, of any size")
      ->required();
  verb.add_option("-o,--output", arguments->output, "Where the result goes; not the input");
  verb.add_option("--semantics", arguments->semantics, "Whose codes for OpenVINO IR: strict, openvino or mo2021")
      ->check(CLI::IsMember({"strict", "openvino", "mo2021"}))
      ->capture_default_str();
  verb.add_flag("--strict", arguments->options.fail_on_left, "A weight that cannot be folded is an error");
  verb.add_flag("--fold-16-bit", arguments->options.fold_16_bit, "Also make 16-bit codes");
  verb.add_flag("--zero-points-of-chains", arguments->options.zero_points_of_chains,
                "Also drop zero points of constants that are integers already");
  verb.add_flag("--disable-weights-compression", arguments->disable_compression, "Copy the model as it is");
  verb.add_option("--external-data", arguments->external_data,
                  "ONNX: tensors beside the model file: auto, never or always")
      ->check(CLI::IsMember({"auto", "never", "always"}))
      ->capture_default_str();
  verb.add_flag("--dry-run", arguments->dry_run, "Do all the work, write nothing");
}

}  // namespace weightmill::cli
