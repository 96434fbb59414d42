#include <map>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/pack.h>
#include <weightmill/report/report.h>

#include "efforts.h"
#include "pack_table.h"
#include "progress_bar.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct PackArguments {
  Common common;
  std::string model, output;
  std::string accelerator = "ethos-u55-256";  // Vela's default
  PackOptions options;
  bool c_array = false, dry_run = false;
};

const std::map<std::string, ScalingRule> kScalings{
    {"2020", ScalingRule::v2020}, {"vela5", ScalingRule::vela5}, {"regor", ScalingRule::regor}};
const std::map<std::string, FormatChoice> kFormats{{"smallest", FormatChoice::smallest},
                                                   {"standard", FormatChoice::standard},
                                                   {"sparse", FormatChoice::sparse},
                                                   {"fast", FormatChoice::fast}};

/// An empty folder would look like a success.
void require_something_packed(const Packed& packed, const std::string& model) {
  if (!packed.layers.empty()) return;
  if (packed.not_packed.empty())
    fail(ErrorCode::unsupported, model, "has no operator with weights that Ethos-U fetches");
  const NotPacked& first = packed.not_packed.front();
  fail(ErrorCode::unsupported, model,
       fmt::format("none of its {} weight tensors can be packed; the first, {} '{}': {}", packed.not_packed.size(),
                   first.op_name, first.tensor, first.reason));
}

int run(PackArguments& arguments) {
  if (arguments.output.empty() && !arguments.dry_run)
    fail(ErrorCode::bad_option, "--output",
         "is missing: -o DIR/ says where the result goes (--dry-run writes nothing)");
  if (!arguments.dry_run) require_not_overwritten(arguments.model, arguments.output);
  ProgressBar bar(arguments.common.quiet);
  arguments.options.progress = bar.callback();
  arguments.options.jobs = arguments.common.jobs;
  const PackedFolder packed = pack_file(arguments.model, arguments.accelerator, arguments.options);
  require_something_packed(packed.packed, arguments.model);
  if (!arguments.dry_run) write_packed_folder(packed, arguments.output, arguments.c_array, arguments.common.jobs);
  bar.finish();
  const PackReport report = summarize(packed.packed);
  if (arguments.common.json)
    fmt::print("{}\n", json_text(to_json(report)));
  else
    print_pack_table(report);
  return 0;
}

}  // namespace

void add_pack(Verbs& verbs) {
  auto arguments = std::make_shared<PackArguments>();
  CLI::App& verb =
      verbs.add("pack", "Integer model -> Ethos-U weight streams, scale-and-bias records and their manifest",
                arguments->common, [arguments] { return run(*arguments); });
  verb.add_option("MODEL", arguments->model, "Integer TFLite model")->required();
  verb.add_option("-o,--output", arguments->output,
                  "Folder for weights.safetensors and manifest.json; made if need be");
  verb.add_option("--accelerator-config", arguments->accelerator, "Target; `weightmill targets` lists them")
      ->capture_default_str();
  add_word(verb, "--effort", arguments->options.effort, kEfforts, kEffortHelp, "best");
  add_word(verb, "--forms", arguments->options.forms, kForms, kFormsHelp, "proven");
  add_word(verb, "--scaling", arguments->options.scaling, kScalings,
           "Whose arithmetic makes multiplier and shift: 2020, vela5, regor", "vela5");
  add_word(verb, "--format", arguments->options.format, kFormats,
           "U85 stream formats to choose from: smallest, standard, sparse, fast", "smallest");
  verb.add_option("--ofm-block-depth", arguments->options.ofm_block_depth,
                  "Output channels of a block; 0: chosen for each layer")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  verb.add_option("--ofm-depth-step", arguments->options.ofm_depth_step,
                  "Output channels of a depth slice; 0: all of a layer's")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  verb.add_flag("--c-array", arguments->c_array, "Also write weights.c and weights.h");
  verb.add_flag("--dry-run", arguments->dry_run, "Pack and print the table, write nothing");
}

}  // namespace weightmill::cli
