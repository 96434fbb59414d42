#pragma once

#include <cstdint>
#include <string_view>

namespace weightmill::mlw {

/// Throws: bad_stream, naming the bit near which it showed.
[[noreturn]] void refuse_stream(std::uint64_t position_bits, std::string_view why);

}  // namespace weightmill::mlw
