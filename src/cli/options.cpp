#include "options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/names.h>

namespace weightmill::cli {

CLI::App& Verbs::add(const std::string& name, const std::string& summary, Common& common, Run run) {
  CLI::App& verb = *app_.add_subcommand(name, summary);
  verb.add_flag("--json", common.json, "Print the result as JSON on stdout");
  verb.add_flag("--quiet,-q", common.quiet, "No progress and no notes on stderr");
  verb.add_option("--jobs,-j", common.jobs, "Threads; 0: as many as the machine has. The result does not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  verbs_.push_back({&verb, std::move(run)});
  return verb;
}

int Verbs::run() const {
  const auto named = std::find_if(verbs_.begin(), verbs_.end(), [](const Verb& verb) { return verb.app->parsed(); });
  return named->run();
}

std::vector<std::string> Verbs::names() const {
  std::vector<std::string> names;
  for (const Verb& verb : verbs_) names.push_back(verb.app->get_name());
  return names;
}

std::string not_a_word(const std::string& word, const std::vector<std::string>& words) {
  const auto meant = nearest(word, words);
  return fmt::format("'{}' is not one of: {}{}", word, fmt::join(words, ", "),
                     meant ? fmt::format("; did you mean {}?", *meant) : "");
}

std::vector<std::string> with_kebab_case_flags(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const auto end = std::find(argument.begin(), argument.end(), '=');
    std::replace(argument.begin(), end, '_', '-');
  }
  return arguments;
}

}  // namespace weightmill::cli
