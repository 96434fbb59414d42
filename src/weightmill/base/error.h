#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace weightmill {

/// What kind of thing was wrong. The command line turns it into an exit status (docs/cli.md).
enum class ErrorCode {
  bad_option,   ///< a flag, name or combination of options; exit status 2
  bad_file,     ///< a file cannot be read, written or understood; exit status 3
  bad_stream,   ///< bytes of a coded stream break its format; exit status 3
  bad_request,  ///< an argument or array breaks what a function asks for; exit status 3
  unsupported,  ///< well-formed, but not possible for this target or not supported here; exit status 4
  internal,     ///< our own broken promise, found in time; exit status 5
};

/// The enumerator's name, e.g. "bad_stream".
std::string_view name_of(ErrorCode code) noexcept;

/// The only exception this library throws. `what()` is a sentence for the user: "WHERE: WHY".
struct Error : std::runtime_error {
  Error(ErrorCode code, std::string_view where, std::string_view why);
  ErrorCode code;
};

/// The only place that throws. `where` names the file, tensor, node, offset or option; `why` says what was found,
/// what was wanted and, where there is one, the remedy.
[[noreturn]] void fail(ErrorCode code, std::string_view where, std::string_view why);

}  // namespace weightmill
