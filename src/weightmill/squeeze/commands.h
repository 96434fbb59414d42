#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "registers.h"

namespace weightmill {

/// One command as it stands in the stream.
struct Command {
  std::uint32_t first = 0;   ///< bits 0-9 opcode, 14 a second word follows, 16-31 parameter
  std::uint32_t second = 0;  ///< 0 where there is none
  std::uint32_t word = 0;    ///< its index in the command stream

  RegisterId id() const { return static_cast<RegisterId>((first & 0x3FF) + (has_two_words() ? kTwoWords : 0)); }
  bool has_two_words() const { return (first >> 14 & 1) != 0; }
  bool is_operation() const { return (first & 0x7FFF) < 0x100; }
  std::uint32_t parameter() const { return first >> 16; }
  /// What a register write writes: the parameter, or the second word with the parameter above it.
  std::uint64_t value() const { return has_two_words() ? second | std::uint64_t{parameter()} << 32 : parameter(); }
};

/// A command that writes `value` (below 2^48) to a two-word register.
Command write_register(RegisterId id, std::uint64_t value);

void append(std::vector<std::uint32_t>& words, const Command& command);

/// Splits a command stream. It holds only commands that the product knows and ends with its only STOP.
/// Throws: bad_file if it does not; unsupported for a branch (names `where` and the word).
std::vector<Command> decode_commands(std::span<const std::uint8_t> bytes, Product product, std::string_view where);

}  // namespace weightmill
