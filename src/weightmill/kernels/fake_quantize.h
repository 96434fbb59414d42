#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weightmill {

/// How a float becomes a code.  [docs/folding.md §3]
struct CodeRule {
  float steps = 255;        ///< levels - 1; <= 255
  std::int32_t low = -128;  ///< the lowest code; the highest is low + steps
  bool half_up = false;     ///< ties upwards, as floor(x + 0.5) in float32; else to even
  bool in_f16 = false;      ///< each difference, quotient and product is rounded to float16
};

/// The limits of one weight.
///   weight <= below          -> low           (wins where both hold)
///   weight > above           -> low + steps
///   else low + round((weight - origin) / range * steps), each operation rounded to float32
struct CodeLimits {
  float below, above, origin, range;
};

/// The same for as many weights as there are elements.
struct CodeLimitRows {
  std::span<const float> below, above, origin, range;
};

/// Codes of `weights`, N little-endian float32 at any alignment (4 N bytes), all with the same limits. `codes`: N, the
/// low 8 bits of each code. A weight whose formula ends in NaN has code 0. Returns whether there was one.
bool quantize_run(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                  std::span<std::uint8_t> codes) noexcept;

/// The same with limits for each weight. The spans of `limits` are of N.
bool quantize_each(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                   std::span<std::uint8_t> codes) noexcept;

/// Both, one weight at a time: what the SIMD targets are held to.
bool quantize_run_scalar(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                         std::span<std::uint8_t> codes) noexcept;
bool quantize_each_scalar(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                          std::span<std::uint8_t> codes) noexcept;

/// The definition of both: `weight`'s step above the lowest code, 0 to rule.steps, or NaN. Any number of steps up to
/// 65535.
float quantize_step(float weight, const CodeLimits& limits, const CodeRule& rule) noexcept;

/// N float16 or bfloat16, little-endian at any alignment (2 N bytes), to float32. `out`: N.
void widen_f16(const std::uint8_t* in, std::span<float> out) noexcept;
void widen_bf16(const std::uint8_t* in, std::span<float> out) noexcept;

/// Two codes to a byte: the low four bits of `codes`, the first one in the low nibble (or the high one). `out`: ceil(N
/// / 2) bytes; the unused nibble of an odd count is 0.
void pack_nibbles(std::span<const std::uint8_t> codes, bool first_high, std::uint8_t* out) noexcept;

}  // namespace weightmill
