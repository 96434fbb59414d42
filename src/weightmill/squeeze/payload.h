#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weightmill {

enum class Product : std::uint8_t { u55 = 0, u65 = 1, u85 = 2 };  // the numbers of the configuration word

/// A driver payload, opened. Words are 32 bits, little endian.  [docs/compiled-models.md §2]
struct Payload {
  enum class Format : std::uint8_t { cop1, cop2 };

  std::span<const std::uint8_t> bytes;
  Format format = Format::cop1;
  std::uint32_t configuration = 0;
  std::uint32_t architecture = 0;
  std::size_t length_word = 0;      ///< COP1: index of the word that holds the command stream's length
  std::size_t commands_offset = 0;  ///< bytes; a multiple of 16; the commands go on to the end

  Product product() const { return static_cast<Product>(configuration >> 28); }
  std::span<const std::uint8_t> commands() const { return bytes.subspan(commands_offset); }
  unsigned log2_macs() const { return configuration & 15; }  ///< MACs per cycle of the whole NPU
  unsigned n_decoders() const { return 1u << (configuration >> 12 & 3); }  ///< U85: weight streams per depth slice
};

/// The little-endian 32-bit word at byte `offset`. Requires offset + 4 <= bytes.size().
std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t offset);
void put_word(std::span<std::uint8_t> bytes, std::size_t offset, std::uint32_t value);

/// Opens a payload. Throws: bad_file, or unsupported for a form that is not known here (names `where` and the word).
Payload parse_payload(std::span<const std::uint8_t> bytes, std::string_view where);

/// The payload with other commands: the lengths in its header follow, all else stays.
/// Throws: unsupported if the commands are longer than the header can say (names `where`).
std::vector<std::uint8_t> with_commands(const Payload& payload, std::span<const std::uint32_t> commands,
                                        std::string_view where);

}  // namespace weightmill
