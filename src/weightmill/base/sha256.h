#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace weightmill {

/// SHA-256 of bytes fed piece by piece (FIPS 180-4).
class Sha256 {
 public:
  void update(std::span<const std::uint8_t> bytes) noexcept;
  /// The digest as 64 lower-case hexadecimal digits; ends the computation.
  std::string hex_digest();

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<std::uint8_t, 64> block_{};
  std::size_t n_waiting_ = 0;
  std::uint64_t n_bytes_ = 0;
};

/// SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::uint8_t> bytes);

}  // namespace weightmill
