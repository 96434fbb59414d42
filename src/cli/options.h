#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace weightmill::cli {

/// What every verb takes.
struct Common {
  bool json = false;   ///< the result as JSON on stdout, in place of the table
  bool quiet = false;  ///< no progress and no notes on stderr
  int jobs = 0;        ///< threads; 0: as many as the machine has
};

/// Does a verb's work and returns the exit status.  [docs/cli.md]
using Run = std::function<int()>;

/// The verbs of the program, each added by its own file.
class Verbs {
 public:
  explicit Verbs(CLI::App& app) : app_(app) {}

  /// A sub-command with the common options, which go to `common`. The verb sets `run` before parsing ends.
  CLI::App& add(const std::string& name, const std::string& summary, Common& common, Run run);

  /// Runs the verb that was named on the command line.
  int run() const;
  std::vector<std::string> names() const;

 private:
  struct Verb {
    CLI::App* app;
    Run run;
  };
  CLI::App& app_;
  std::vector<Verb> verbs_;
};

/// "'fats' is not one of: best, fast; did you mean fast?"
std::string not_a_word(const std::string& word, const std::vector<std::string>& words);

/// An option whose value is one of some words. A word that is none of them is a usage error that lists them all.
template <class Enum>
CLI::Option& add_word(CLI::App& verb, const std::string& name, Enum& target, const std::map<std::string, Enum>& words,
                      const std::string& help, const std::string& default_word) {
  std::vector<std::string> all;
  for (const auto& [word, value] : words) all.push_back(word);
  const auto choose = [&target, words, all, name](const std::string& word) {
    const auto found = words.find(word);
    if (found == words.end()) throw CLI::ValidationError(name, not_a_word(word, all));
    target = found->second;
  };
  return *verb.add_option_function<std::string>(name, choose, help)->type_name("WORD")->default_str(default_word);
}

/// Flags in snake_case (`--calibration_method`) become kebab-case; values and everything after `--` stay as they are.
std::vector<std::string> with_kebab_case_flags(int argc, const char* const* argv);

}  // namespace weightmill::cli
