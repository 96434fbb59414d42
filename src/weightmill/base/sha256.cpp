#include "sha256.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace weightmill {
namespace {

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.  [FIPS 180-4 §4.2.2]
constexpr std::array<std::uint32_t, 64> kRoundConstants{
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

std::uint32_t big_endian(const std::uint8_t* p) noexcept {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | std::uint32_t{p[3]};
}

/// Mixes one 64-byte block into the state.  [FIPS 180-4 §6.2.2]
void compress(std::array<std::uint32_t, 8>& state, const std::uint8_t* block) noexcept {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> mixed{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

void Sha256::update(std::span<const std::uint8_t> bytes) noexcept {
  n_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (n_waiting_ == 0 && bytes.size() >= block_.size()) {
      compress(state_, bytes.data());
      bytes = bytes.subspan(block_.size());
      continue;
    }
    const std::size_t n = std::min(bytes.size(), block_.size() - n_waiting_);
    std::copy_n(bytes.begin(), n, block_.begin() + static_cast<std::ptrdiff_t>(n_waiting_));
    bytes = bytes.subspan(n);
    n_waiting_ = (n_waiting_ + n) % block_.size();
    if (n_waiting_ == 0) compress(state_, block_.data());
  }
}

std::string Sha256::hex_digest() {
  const std::uint64_t n_bits = n_bytes_ * 8;
  const std::size_t n_pad = (n_waiting_ < 56 ? 56 : 120) - n_waiting_;  // the length ends the last 64-byte block
  std::array<std::uint8_t, 72> tail{0x80};
  for (std::size_t i = 0; i < 8; ++i) tail[n_pad + i] = static_cast<std::uint8_t>(n_bits >> (56 - 8 * i));
  update(std::span(tail).first(n_pad + 8));
  std::string hex;
  for (const std::uint32_t word : state_) hex += fmt::format("{:08x}", word);
  return hex;
}

std::string sha256_hex(std::span<const std::uint8_t> bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex_digest();
}

}  // namespace weightmill
