#include "refuse_stream.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill::mlw {

void refuse_stream(std::uint64_t position_bits, std::string_view why) {
  fail(ErrorCode::bad_stream, fmt::format("weight stream, bit {}", position_bits), why);
}

}  // namespace weightmill::mlw
