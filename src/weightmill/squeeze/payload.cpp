#include "payload.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::uint32_t kCop1 = 0x31504F43;  // "COP1"
constexpr std::uint32_t kCop2 = 0x32504F43;  // "COP2"
constexpr std::uint32_t kVeum = 0x4D554556;  // "VEUM": Vela's metadata block
constexpr std::size_t kAlignment = 16;       // of the command stream in the payload: the NPU's bus word
constexpr std::size_t kCop2HeaderBytes = 60;
constexpr std::size_t kCop2MetadataStart = 28;   // the metadata length counts from here to the first command
constexpr std::size_t kMaxCop1Words = 0xFFFFFF;  // the length field has 24 bits

[[noreturn]] void fail_at(std::string_view where, std::size_t word, std::string_view why) {
  fail(ErrorCode::bad_file, fmt::format("{}, payload word {}", where, word), why);
}

/// The words of a payload, read with a check.
class Words {
 public:
  Words(std::span<const std::uint8_t> bytes, std::string_view where) : bytes_(bytes), where_(where) {}
  std::size_t count() const { return bytes_.size() / 4; }
  std::uint32_t at(std::size_t word) const {
    if (word >= count()) fail_at(where_, word, "the driver header ends early; the payload is truncated");
    return word_at(bytes_, word * 4);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::string_view where_;
};

/// How many words a driver action other than the command stream takes, or 0 for one that is not known.
std::size_t words_of_action(std::uint32_t action) {
  constexpr std::uint32_t kConfig = 1, kReadRegister = 3, kDumpMemory = 4, kNop = 5;
  if (action == kConfig) return 3;
  return action == kReadRegister || action == kDumpMemory || action == kNop ? 1 : 0;
}

void take_command_stream(Payload& payload, const Words& words, std::size_t word, std::string_view where) {
  const std::uint32_t action = words.at(word);
  const std::size_t length = (action >> 8 & 0xFF) << 16 | action >> 16;
  payload.length_word = word;
  payload.commands_offset = (word + 1) * 4;
  if (length != words.count() - word - 1) {
    fail_at(where, word, fmt::format("the command stream is {} words long by its header, but {} follow",
                                     length, words.count() - word - 1));
  }
}

void parse_cop1(Payload& payload, std::string_view where) {
  constexpr std::uint32_t kConfig = 1, kCommandStream = 2;
  const Words words(payload.bytes, where);
  bool configured = false;
  for (std::size_t word = 1;;) {
    const std::uint32_t action = words.at(word) & 0xFF;
    if (action == kCommandStream) {
      if (!configured) fail_at(where, word, "the command stream comes before the configuration word");
      return take_command_stream(payload, words, word, where);
    }
    const std::size_t length = words_of_action(action);
    if (length == 0) fail_at(where, word, fmt::format("driver action {} is not known", action));
    if (action == kConfig) {
      payload.configuration = words.at(word + 1);
      payload.architecture = words.at(word + 2);
      configured = true;
    }
    word += length;
  }
}

void require_word(const Words& words, std::size_t word, std::uint32_t wanted, std::string_view name,
                  std::string_view where) {
  if (words.at(word) == wanted) return;
  fail_at(where, word, fmt::format("{} is 0x{:X}, wanted 0x{:X}", name, words.at(word), wanted));
}

void require_cop2_lengths(const Payload& payload, const Words& words, std::string_view where) {
  const std::uint64_t rest = words.at(2) | std::uint64_t{words.at(3)} << 32;
  if (rest + 16 != payload.bytes.size()) {
    fail_at(where, 2, fmt::format("the header counts {} bytes, but the payload has {}", rest, payload.bytes.size()));
  }
  if (words.at(5) + std::uint64_t{8} != rest) fail_at(where, 5, "the entry's length does not fit the payload's");
  const std::size_t metadata = words.at(6);
  if (metadata < kCop2HeaderBytes - kCop2MetadataStart || metadata > payload.bytes.size() - kCop2MetadataStart) {
    fail_at(where, 6, fmt::format("{} bytes of metadata do not fit the payload", metadata));
  }
}

void parse_cop2(Payload& payload, std::string_view where) {
  const Words words(payload.bytes, where);
  if (payload.bytes.size() < kCop2HeaderBytes) fail_at(where, words.count(), "the driver header ends early");
  require_word(words, 1, 1, "the format version", where);
  require_cop2_lengths(payload, words, where);
  require_word(words, 4, 1, "the entry type", where);
  require_word(words, 7, kVeum, "the metadata tag", where);
  require_word(words, 8, 1, "the metadata version", where);
  require_word(words, 9, 20, "the metadata block's length", where);
  payload.configuration = words.at(10);
  payload.architecture = words.at(11);
  payload.commands_offset = kCop2MetadataStart + words.at(6);
}

void require_known_target(const Payload& payload, std::string_view where) {
  const std::uint32_t product = payload.configuration >> 28;
  const std::uint32_t stream_version = payload.configuration >> 4 & 15;
  if (product > 2) {
    fail(ErrorCode::unsupported, where, fmt::format("product {} of configuration word 0x{:08X} is not known; known are "
                                                    "0 (U55), 1 (U65) and 2 (U85)", product, payload.configuration));
  }
  const std::uint32_t wanted = product == 2 ? 1 : 0;
  if (stream_version != wanted) {
    fail(ErrorCode::unsupported, where,
         fmt::format("command stream version {} of configuration word 0x{:08X}, wanted {}", stream_version,
                     payload.configuration, wanted));
  }
}

void grow_cop2(std::vector<std::uint8_t>& bytes, std::int64_t growth) {
  const std::uint64_t rest = word_at(bytes, 8) | std::uint64_t{word_at(bytes, 12)} << 32;
  const std::uint64_t grown = rest + static_cast<std::uint64_t>(growth);
  put_word(bytes, 8, static_cast<std::uint32_t>(grown));
  put_word(bytes, 12, static_cast<std::uint32_t>(grown >> 32));
  put_word(bytes, 20, word_at(bytes, 20) + static_cast<std::uint32_t>(growth));
}

void set_cop1_length(std::vector<std::uint8_t>& bytes, std::size_t word, std::size_t n_words) {
  const std::uint32_t action = word_at(bytes, word * 4) & 0xFF;
  const auto length = static_cast<std::uint32_t>(n_words);
  put_word(bytes, word * 4, action | (length >> 16) << 8 | length << 16);
}

}  // namespace

std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{bytes[offset + i]} << (8 * i);
  return value;
}

void put_word(std::span<std::uint8_t> bytes, std::size_t offset, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

Payload parse_payload(std::span<const std::uint8_t> bytes, std::string_view where) {
  if (bytes.size() % 4 != 0) {
    fail(ErrorCode::bad_file, where, fmt::format("the payload has {} bytes, wanted a multiple of 4", bytes.size()));
  }
  Payload payload;
  payload.bytes = bytes;
  const std::uint32_t tag = Words(bytes, where).at(0);
  if (tag != kCop1 && tag != kCop2) fail_at(where, 0, fmt::format("tag 0x{:08X} is neither COP1 nor COP2", tag));
  payload.format = tag == kCop1 ? Payload::Format::cop1 : Payload::Format::cop2;
  payload.format == Payload::Format::cop1 ? parse_cop1(payload, where) : parse_cop2(payload, where);
  if (payload.commands_offset % kAlignment != 0) {
    fail(ErrorCode::bad_file, where, fmt::format("the command stream starts at byte {}, wanted a multiple of {}",
                                                 payload.commands_offset, kAlignment));
  }
  require_known_target(payload, where);
  return payload;
}

std::vector<std::uint8_t> with_commands(const Payload& payload, std::span<const std::uint32_t> commands,
                                        std::string_view where) {
  if (commands.size() > kMaxCop1Words) {
    fail(ErrorCode::unsupported, where, fmt::format("{} command words are more than a driver header can say, {}",
                                                    commands.size(), kMaxCop1Words));
  }
  const auto header = payload.bytes.first(payload.commands_offset);
  std::vector<std::uint8_t> bytes(header.begin(), header.end());
  bytes.resize(payload.commands_offset + commands.size() * 4);
  for (std::size_t i = 0; i < commands.size(); ++i) put_word(bytes, payload.commands_offset + i * 4, commands[i]);
  const auto growth = static_cast<std::int64_t>(bytes.size()) - static_cast<std::int64_t>(payload.bytes.size());
  payload.format == Payload::Format::cop1 ? set_cop1_length(bytes, payload.length_word, commands.size())
                                          : grow_cop2(bytes, growth);
  return bytes;
}

}  // namespace weightmill
