#include <memory>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/parallel.h>
#include <weightmill/pipeline/squeeze.h>

#include "console.h"
#include "efforts.h"
#include "progress_bar.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct SqueezeArguments {
  Common common;
  std::string input, output, weights, weights_output;
  std::string effort = "best", forms = "proven";
  bool keep_dead = false, dry_run = false, list_streams = false;
};

void require_outputs(const SqueezeArguments& arguments) {
  if (arguments.weights.empty() && !arguments.weights_output.empty()) {
    fail(ErrorCode::bad_option, "--weights-output", "is for a pair of blobs: --weights names the second one");
  }
  if (arguments.dry_run) return;
  if (arguments.output.empty()) {
    fail(ErrorCode::bad_option, "--output", "is missing: -o OUT says where the result goes (--dry-run writes nothing)");
  }
  if (!arguments.weights.empty() && arguments.weights_output.empty()) {
    fail(ErrorCode::bad_option, "--weights-output", "is missing: it says where the second blob goes");
  }
}

SqueezeReport squeeze_input(const SqueezeArguments& arguments) {
  ProgressBar bar(arguments.common.quiet);
  const SqueezeOptions options{stream_encoder(arguments.effort, arguments.forms), arguments.keep_dead,
                               resolve_jobs(arguments.common.jobs), bar.callback()};
  const std::string output = arguments.dry_run ? "" : arguments.output;
  if (arguments.weights.empty()) return squeeze_file(arguments.input, output, options);
  return squeeze_pair_files(arguments.input, arguments.weights, output, arguments.weights_output, options);
}

std::string percent(std::uint64_t after, std::uint64_t before) {
  return before == 0
             ? ""
             : fmt::format("{:+.2f} %", 100.0 * (static_cast<double>(after) / static_cast<double>(before) - 1.0));
}

void print_streams(const std::vector<StreamChange>& streams) {
  std::vector<std::vector<std::string>> rows;
  for (const StreamChange& change : streams) {
    rows.push_back({change.program, std::to_string(change.first_op), std::to_string(change.core),
                    with_thin_groups(change.offset), with_thin_groups(change.weights),
                    with_thin_groups(change.bytes_before), with_thin_groups(change.bytes_after),
                    percent(change.bytes_after, change.bytes_before), with_thin_groups(change.passes_before),
                    with_thin_groups(change.passes_after), percent(change.passes_after, change.passes_before)});
  }
  fmt::print("{}\n",
             format_table({"operator", "op", "core", "offset", "weights", "bytes", "after", "", "passes", "after", ""},
                          rows, "<>>>>>>>>>>"));
}

void print_report(const SqueezeReport& report, const SqueezeArguments& arguments) {
  const SqueezeSummary& summary = report.summary;
  const auto row = [](const char* what, std::uint64_t before, std::uint64_t after) {
    return std::vector<std::string>{what, with_thin_groups(before), with_thin_groups(after), percent(after, before)};
  };
  if (arguments.list_streams) print_streams(summary.streams);
  if (!report.is_smaller()) {
    fmt::print(
        "{}: not smaller; {}\n", arguments.input,
        arguments.dry_run || arguments.output == arguments.input ? "it stays as it is" : "the output is a copy of it");
    return;
  }
  fmt::print("{}", format_table({"", "before", "after", ""},
                                {row("file bytes", report.bytes_before, report.bytes_after),
                                 row("stream bytes", summary.stream_bytes_before, summary.stream_bytes_after),
                                 row("decoding passes", summary.passes_before, summary.passes_after)},
                                "<>>>"));
  fmt::print(
      "\n{} of {} streams of {} NPU operators replaced, {} weights identical; {} dead bytes taken out, {} register "
      "writes added\n",
      summary.n_replaced, summary.n_streams, report.n_npu_operators, with_thin_groups(summary.n_weights),
      with_thin_groups(summary.dead_bytes), summary.n_insertions);
}

int run(const SqueezeArguments& arguments) {
  require_outputs(arguments);
  const SqueezeReport report = squeeze_input(arguments);
  if (arguments.common.json) {
    fmt::print("{}\n", json_text(to_json(report)));
  } else {
    print_report(report, arguments);
  }
  return 0;
}

}  // namespace

void add_squeeze(Verbs& verbs) {
  auto arguments = std::make_shared<SqueezeArguments>();
  CLI::App& verb =
      verbs.add("squeeze", "A model compiled for Ethos-U -> the same with smaller weight streams, results identical",
                arguments->common, [arguments] { return run(*arguments); });
  verb.footer(
      "Example:\n  weightmill squeeze model_vela.tflite -o small.tflite\n"
      "  weightmill verify model_vela.tflite small.tflite\n");
  verb.add_option("COMPILED", arguments->input,
                  "Compiled .tflite, Vela's raw .npz, ExecuTorch's vela_bin_stream blob, or a driver payload")
      ->required();
  verb.add_option("-o,--output", arguments->output, "Where the result goes; may be the input");
  verb.add_option("--weights", arguments->weights, "With a driver payload: the blob of its read-only data");
  verb.add_option("--weights-output", arguments->weights_output, "With --weights: where that blob goes");
  verb.add_option("--effort", arguments->effort,
                  "Encoder: fast, best, max, reference, regor, or vela (the smaller of the last two for each stream)")
      ->check(CLI::IsMember({"fast", "best", "max", "reference", "regor", "vela"}))
      ->capture_default_str();
  verb.add_option("--forms", arguments->forms, kFormsHelp)
      ->check(CLI::IsMember({"proven", "all"}))
      ->capture_default_str();
  verb.add_flag("--keep-dead", arguments->keep_dead, "Leave zero bytes in that nothing reads");
  verb.add_flag("--streams", arguments->list_streams, "List every stream: bytes and decoding passes, before and after");
  verb.add_flag("--dry-run", arguments->dry_run, "Do all the work, write nothing");
}

}  // namespace weightmill::cli
