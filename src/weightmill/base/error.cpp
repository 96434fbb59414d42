#include "error.h"

#include <fmt/format.h>

namespace weightmill {

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::bad_option: return "bad_option";
    case ErrorCode::bad_file: return "bad_file";
    case ErrorCode::bad_stream: return "bad_stream";
    case ErrorCode::bad_request: return "bad_request";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorCode error_code, std::string_view where, std::string_view why)
    : std::runtime_error(where.empty() ? std::string(why) : fmt::format("{}: {}", where, why)), code(error_code) {}

void fail(ErrorCode code, std::string_view where, std::string_view why) { throw Error(code, where, why); }

}  // namespace weightmill
