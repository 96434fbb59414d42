#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/codec.h>

#include "console.h"
#include "efforts.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

struct CodecArguments {
  Common common;
  std::string direction, input, output;
  mlw::Effort effort = mlw::Effort::reference;
  mlw::Forms forms = mlw::Forms::proven;
  bool fast = false, dry_run = false;
  std::optional<std::uint64_t> count;
};

CodecResult convert(const CodecArguments& arguments, const std::string& output) {
  if (arguments.direction == "encode")
    return encode_npy(arguments.input, output, arguments.effort, arguments.forms, arguments.fast);
  if (arguments.fast && !arguments.count)
    fail(ErrorCode::bad_option, "--count", "is missing: a fast stream does not say how many weights it holds");
  if (!arguments.fast && arguments.count)
    fail(ErrorCode::bad_option, "--count", "is for --fast: a standard stream says itself where it ends");
  return decode_to_npy(arguments.input, output, arguments.fast ? arguments.count : std::nullopt);
}

int run(const CodecArguments& arguments) {
  if (arguments.output.empty() && !arguments.dry_run)
    fail(ErrorCode::bad_option, "--output",
         "is missing: -o FILE says where the result goes (--dry-run writes nothing)");
  const CodecResult result = convert(arguments, arguments.dry_run ? "" : arguments.output);
  const double bits = result.n_weights == 0
                          ? 0.0
                          : 8.0 * static_cast<double>(result.stream_bytes) / static_cast<double>(result.n_weights);
  if (arguments.common.json) {
    const nlohmann::ordered_json json{{"schema", "weightmill.codec/1"},
                                      {"direction", arguments.direction},
                                      {"n_weights", result.n_weights},
                                      {"stream_bytes", result.stream_bytes},
                                      {"bits_per_weight", bits}};
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{} weights, {} bytes, {:.2f} bits/weight\n", with_thin_groups(result.n_weights),
               with_thin_groups(result.stream_bytes), bits);
  }
  return 0;
}

}  // namespace

void add_codec(Verbs& verbs) {
  auto arguments = std::make_shared<CodecArguments>();
  CLI::App& verb = verbs.add("codec", "Raw weight streams: .npy of integers <-> .bin", arguments->common,
                             [arguments] { return run(*arguments); });
  verb.footer(
      "Example:\n  weightmill codec encode weights.npy -o weights.bin --effort best\n"
      "  weightmill codec decode weights.bin -o back.npy\n");
  verb.add_option("DIRECTION", arguments->direction, "encode or decode")
      ->required()
      ->check(CLI::IsMember({"encode", "decode"}));
  verb.add_option("IN", arguments->input, "encode: .npy array of integers in the NPU's order; decode: stream")
      ->required();
  verb.add_option("-o,--output", arguments->output, "encode: stream; decode: .npy array of int16");
  add_word(verb, "--effort", arguments->effort, kEfforts, kEffortHelp, "reference");
  add_word(verb, "--forms", arguments->forms, kForms, kFormsHelp, "proven");
  verb.add_flag("--fast", arguments->fast, "The fast format of U85");
  verb.add_option("--count", arguments->count, "Weights of a fast stream that is to be decoded");
  verb.add_flag("--dry-run", arguments->dry_run, "Convert and print the sizes, write nothing");
}

}  // namespace weightmill::cli
