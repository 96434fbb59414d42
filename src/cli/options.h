#pragma once

#include <functional>
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

/// Flags in snake_case (`--calibration_method`) become kebab-case; values and everything after `--` stay as they are.
std::vector<std::string> with_kebab_case_flags(int argc, const char* const* argv);

}  // namespace weightmill::cli
