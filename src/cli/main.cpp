#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>

#include "console.h"
#include <weightmill/base/names.h>
#include "options.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

enum ExitStatus { kSuccess = 0, kCheckFailed = 1, kUsage = 2, kBadInput = 3, kUnsupported = 4, kInternal = 5 };

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_option:
      return kUsage;
    case ErrorCode::bad_file:
    case ErrorCode::bad_stream:
    case ErrorCode::bad_request:
      return kBadInput;
    case ErrorCode::unsupported:
      return kUnsupported;
    case ErrorCode::internal:
      return kInternal;
  }
  return kInternal;
}

/// Ctrl-C and kill leave no temporary file behind; then the signal does what it always does.
void remove_files_and_die(int signal) {
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// "did you mean …" for a flag or verb that does not exist.
std::string suggestion(const CLI::App& app, const Verbs& verbs, const std::string& word) {
  const auto parsed = app.get_subcommands();
  std::vector<std::string> candidates;
  if (parsed.empty()) {
    candidates = verbs.names();
  } else {
    for (const CLI::Option* option : parsed.front()->get_options()) {
      for (const std::string& name : option->get_lnames()) candidates.push_back("--" + name);
    }
  }
  const auto meant = nearest(word.substr(0, word.find('=')), candidates);
  return meant ? fmt::format("; did you mean {}?", *meant) : std::string();
}

/// A result that did not reach its reader (a full disk behind `> file`) is a failure.
int with_flushed_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  print_error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
  return kBadInput;
}

/// The help of the verb that was named, or of the whole program.
std::string help_of(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app.help() : parsed.front()->help();
}

int report_usage_error(const CLI::App& app, const Verbs& verbs, const std::vector<std::string>& arguments,
                       const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    fmt::print("{}\n", error.get_name() == "CallForVersion" ? error.what() : help_of(app));
    return with_flushed_output(kSuccess);
  }
  std::string text = error.what();
  const auto unknown = app.remaining(/*recurse=*/true);
  if (app.get_subcommands().empty() && !arguments.empty() && !arguments.front().starts_with("-")) {
    text = fmt::format("no verb '{}'{}", arguments.front(), suggestion(app, verbs, arguments.front()));
  } else if (!unknown.empty()) {
    text = fmt::format("'{}' is not expected here{}", unknown.front(), suggestion(app, verbs, unknown.front()));
  }
  print_error(text);
  const auto parsed = app.get_subcommands();
  print_on_stderr(fmt::format("       weightmill {}{}--help says what there is\n",
             parsed.empty() ? "" : parsed.front()->get_name(), parsed.empty() ? "" : " "));
  return kUsage;
}

int run(int argc, const char* const* argv) {
  CLI::App app{"Weightmill: trained networks to the bytes an edge NPU fetches, every step verified", "weightmill"};
  app.set_version_flag("--version", "weightmill " WEIGHTMILL_VERSION);
  app.require_subcommand(1);
  app.footer(kExample);
  Verbs verbs(app);
  add_verbs(verbs);
  std::vector<std::string> arguments = with_kebab_case_flags(argc, argv);
  try {
    // CLI11 takes the arguments last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return report_usage_error(app, verbs, arguments, error);
  }
  return with_flushed_output(verbs.run());
}

}  // namespace
}  // namespace weightmill::cli

int main(int argc, char** argv) {
  using namespace weightmill::cli;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, remove_files_and_die);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is reported like a full disk
  try {
    return run(argc, argv);
  } catch (const weightmill::Error& error) {
    print_error(error.what());
    return exit_status(error.code);
  } catch (const std::system_error& error) {  // the file system or an output stream said no
    print_error(error.what());
    return kBadInput;
  } catch (const std::bad_alloc&) {
    print_error("not enough memory");
    return kInternal;
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}; please report it with the command and the file", error.what()));
    return kInternal;
  }
}
