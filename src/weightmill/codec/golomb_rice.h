#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "palette.h"

namespace weightmill::mlw {

/// How a slice codes its weight indices: one of 13 codes, numbered in the order in which the encoders prefer them.
/// [docs/weight-stream.md §2, §5]
class WeightCode {
 public:
  static constexpr unsigned kDivisors = 6;                ///< Golomb-Rice divisors 2^0 .. 2^5
  static constexpr unsigned kUncompressed = 2 * kDivisors;
  static constexpr unsigned kCount = kUncompressed + 1;
  static constexpr unsigned kMaxTruncatedQuotient = 2;
  /// The encoders of the vendor stop here; a decoder takes whatever leads to a legal index.
  static constexpr unsigned kMaxQuotient = 31;

  constexpr explicit WeightCode(unsigned number) noexcept : number_(static_cast<std::uint8_t>(number)) {}
  static constexpr WeightCode plain(unsigned divisor) noexcept { return WeightCode(divisor); }
  static constexpr WeightCode truncated(unsigned divisor) noexcept { return WeightCode(kDivisors + divisor); }
  static constexpr WeightCode uncompressed() noexcept { return WeightCode(kUncompressed); }

  constexpr unsigned number() const noexcept { return number_; }
  constexpr unsigned divisor() const noexcept { return number_ % kDivisors; }  ///< log2; 0 in uncompressed mode
  constexpr bool is_truncated() const noexcept { return number_ >= kDivisors && !is_uncompressed(); }
  constexpr bool is_uncompressed() const noexcept { return number_ == kUncompressed; }
  constexpr bool can_code(unsigned index) const noexcept {
    if (is_uncompressed()) return true;
    return index >> divisor() <= (is_truncated() ? kMaxTruncatedQuotient : kMaxQuotient);
  }
  friend constexpr bool operator==(WeightCode, WeightCode) = default;

 private:
  std::uint8_t number_;
};

/// How a slice codes its zero runs: off, or Golomb-Rice with divisor 2^0 .. 2^3.
class RunCode {
 public:
  static constexpr unsigned kCount = 4;

  static constexpr RunCode off() noexcept { return RunCode(kCount); }
  constexpr explicit RunCode(unsigned divisor) noexcept : number_(static_cast<std::uint8_t>(divisor)) {}
  constexpr bool on() const noexcept { return number_ < kCount; }
  constexpr unsigned number() const noexcept { return number_; }
  constexpr unsigned divisor() const noexcept { return number_; }
  friend constexpr bool operator==(RunCode, RunCode) = default;

 private:
  std::uint8_t number_;
};

/// Values [end of the segment before, end) of a section in one code.
template <class Code>
struct Segment {
  Code code;
  std::size_t end;
};
using WeightSegments = std::vector<Segment<WeightCode>>;
using RunSegments = std::vector<Segment<RunCode>>;

/// Bits that the searches of both encoders charge for an index in uncompressed mode. With values behind the palette's
/// entries the mode would need more bits than index_bits(): a price nobody pays keeps it out.
inline unsigned uncompressed_bits(const PaletteChoice& choice) noexcept {
  constexpr unsigned kNever = 100;
  return choice.only_palette || choice.palette.size == 0 ? choice.palette.index_bits() : kNever;
}

/// Bits of `index` in `code`, filler at the end of the slice aside; `uncompressed` as uncompressed_bits() gives it.
constexpr unsigned weight_bits(WeightCode code, unsigned index, unsigned uncompressed) noexcept {
  if (code.is_uncompressed()) return uncompressed;
  const unsigned quotient = index >> code.divisor();
  const unsigned unary = code.is_truncated() ? std::min(quotient + 1, WeightCode::kMaxTruncatedQuotient) : quotient + 1;
  return unary + code.divisor();
}

/// Bits of the zero run `run` in `code`, filler aside.
constexpr std::uint64_t run_bits(RunCode code, std::uint32_t run) noexcept {
  return std::uint64_t{run >> code.divisor()} + 1 + code.divisor();
}

}  // namespace weightmill::mlw
