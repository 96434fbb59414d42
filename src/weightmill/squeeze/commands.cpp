#include "commands.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr RegisterId kBranch = kTwoWords + 0x100;
constexpr std::uint32_t kStopParameter = 0xFFFF;

[[noreturn]] void fail_at(std::string_view where, std::size_t word, ErrorCode code, std::string_view why) {
  fail(code, fmt::format("{}, command word {}", where, word), why);
}

void require_encoding(std::uint32_t first, std::size_t word, std::string_view where) {
  if ((first >> 10 & 15) != 0)
    fail_at(where, word, ErrorCode::bad_file, fmt::format("0x{:08X} has reserved bits set", first));
  if ((first >> 15 & 1) != 0)
    fail_at(where, word, ErrorCode::bad_file, fmt::format("0x{:08X} is of a kind that is not known", first));
}

void require_known(Product product, const Command& command, std::string_view where) {
  if (product == Product::u85 && command.id() == kBranch) {
    fail_at(where, command.word, ErrorCode::unsupported, "a branch; command streams with branches are not supported");
  }
  if (!is_known(product, command.id())) {
    fail_at(where, command.word, ErrorCode::unsupported,
            fmt::format("opcode 0x{:03X} ({} words) is not known for this product", command.first & 0x3FF,
                        command.has_two_words() ? "two" : "one"));
  }
}

void require_end(const std::vector<Command>& commands, std::string_view where) {
  const auto is_stop = [](const Command& command) { return command.id() == static_cast<RegisterId>(Opcode::stop); };
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (!is_stop(commands[i])) continue;
    if (i + 1 != commands.size()) fail_at(where, commands[i].word, ErrorCode::bad_file, "STOP is not the last command");
    if (commands[i].parameter() == kStopParameter) return;
    fail_at(where, commands[i].word, ErrorCode::bad_file, "STOP has another parameter than 0xFFFF");
  }
  fail(ErrorCode::bad_file, where, "the command stream does not end with STOP; it is truncated");
}

}  // namespace

Command write_register(RegisterId id, std::uint64_t value) {
  Command command;
  command.first =
      static_cast<std::uint32_t>((id - kTwoWords) | 1u << 14 | static_cast<std::uint32_t>(value >> 32) << 16);
  command.second = static_cast<std::uint32_t>(value);
  return command;
}

void append(std::vector<std::uint32_t>& words, const Command& command) {
  words.push_back(command.first);
  if (command.has_two_words()) words.push_back(command.second);
}

std::vector<Command> decode_commands(std::span<const std::uint8_t> bytes, Product product, std::string_view where) {
  const std::size_t n_words = bytes.size() / 4;
  std::vector<Command> commands;
  commands.reserve(n_words / 2 + 1);
  for (std::size_t word = 0; word < n_words;) {
    Command command{word_at(bytes, word * 4), 0, static_cast<std::uint32_t>(word)};
    require_encoding(command.first, word, where);
    require_known(product, command, where);
    if (command.has_two_words()) {
      if (word + 1 == n_words) fail_at(where, word, ErrorCode::bad_file, "the command's second word is missing");
      command.second = word_at(bytes, (word + 1) * 4);
    }
    commands.push_back(command);
    word += command.has_two_words() ? 2 : 1;
  }
  require_end(commands, where);
  return commands;
}

}  // namespace weightmill
