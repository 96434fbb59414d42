#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/parallel.h>
#include <weightmill/pipeline/pack.h>
#include <weightmill/pipeline/squeeze.h>
#include <weightmill/report/report.h>

#include "compiled_models.h"
#include "console.h"
#include "progress_bar.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct VerifyArguments {
  Common common;
  std::string first, second;
};

void print_report(const VerifyReport& report, bool with_model) {
  for (const Finding& finding : report.findings)
    fmt::print("{}: found {}; wanted {}\n", finding.where, finding.found, finding.wanted);
  if (report.n_findings > report.findings.size())
    fmt::print("… and {} more\n", report.n_findings - report.findings.size());
  const LayerCheck totals = sum_of(report);
  fmt::print("{} layers, {} streams decoded", report.layers.size(), totals.n_streams);
  if (with_model)
    fmt::print(": {} weights and {} padding zeros in place", with_thin_groups(totals.n_weights),
               with_thin_groups(totals.n_padding));
  fmt::print("; {} scale-and-bias records", with_thin_groups(totals.n_records));
  if (report.n_findings > 0)
    fmt::print("; {} differences\n", report.n_findings);
  else
    fmt::print("{}\n",
               with_model ? "; identical to the model" : "; as the manifest says (name the model to compare with it)");
}

int run(const VerifyArguments& arguments) {
  if (!std::filesystem::is_directory(arguments.first) && !is_packed(arguments.first) &&
      is_compiled_file(arguments.first)) {
    return verify_compiled_models(arguments.first, arguments.second, arguments.common);
  }
  if (!is_packed(arguments.first)) {
    fail(ErrorCode::bad_file, arguments.first,
         "is no packed folder: no manifest.json in it; `weightmill pack` makes one");
  }
  ProgressBar bar(arguments.common.quiet);
  const auto model = arguments.second.empty() ? std::nullopt : std::optional<std::filesystem::path>(arguments.second);
  const VerifyReport report =
      verify_packed_folder(arguments.first, model, {resolve_jobs(arguments.common.jobs), bar.callback()});
  bar.finish();
  if (arguments.common.json)
    fmt::print("{}\n", json_text(to_json(report)));
  else
    print_report(report, model.has_value());
  return report.n_findings == 0 ? 0 : 1;
}

}  // namespace

void add_verify(Verbs& verbs) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App& verb = verbs.add(
      "verify",
      "Decode everything back and compare: packed folder against model, compiled model against compiled model",
      arguments->common, [arguments] { return run(*arguments); });
  verb.footer(
      "Example:\n  weightmill verify packed/ model.tflite\n"
      "  weightmill verify model_vela.tflite small.tflite\n");
  verb.add_option("A", arguments->first, "Packed folder, or compiled model")->required();
  verb.add_option("B", arguments->second, "The model it was packed from, or another compiled model");
}

}  // namespace weightmill::cli
