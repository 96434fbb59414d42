#pragma once

#include <array>
#include <cstdint>

namespace weightmill::mlw {

/// What four positions of an index' two-plane unary quotient come to.
struct QuotientStep {
  std::uint64_t quotients;    ///< four of 16 bits; `n_complete` of them count
  std::uint16_t kept;         ///< all ones where no quotient is complete, so that what came before goes on
  std::uint8_t n_complete;
  std::uint8_t n_ones;        ///< bits of plane 1 that belong to the positions
  std::uint8_t begun;         ///< part of a quotient that goes on behind the four
};

/// [positions | continuation << 4]: four bits of plane 0, and the next four of plane 1, of which the first n_ones
/// count.
using QuotientTable = std::array<QuotientStep, 256>;

constexpr QuotientStep make_quotient_step(unsigned positions, unsigned continuation, bool truncated) noexcept {
  QuotientStep step{};
  for (unsigned i = 0; i < 4; ++i) {
    bool ends = true;
    if ((positions >> i & 1) != 0) {
      const unsigned second = continuation >> step.n_ones++ & 1;
      step.begun = static_cast<std::uint8_t>(step.begun + 1 + second);
      ends = second == 0 || truncated;
    }
    if (!ends) continue;
    step.quotients |= std::uint64_t{step.begun} << 16 * step.n_complete++;
    step.begun = 0;
  }
  step.kept = step.n_complete == 0 ? 0xffff : 0;
  return step;
}

constexpr QuotientTable make_quotient_table(bool truncated) noexcept {
  QuotientTable table{};
  for (unsigned i = 0; i < table.size(); ++i) table[i] = make_quotient_step(i % 16, i / 16, truncated);
  return table;
}

inline constexpr std::array<QuotientTable, 2> kQuotientTables{make_quotient_table(false), make_quotient_table(true)};

/// What four bits of a run plane come to.
struct RunStep {
  std::array<std::uint32_t, 4> quotients;  ///< `n_complete` of them count
  std::uint32_t kept;                      ///< as above
  std::uint32_t n_complete;
  std::uint32_t begun;
};

inline constexpr auto kRunTable = [] {
  std::array<RunStep, 16> table{};
  for (unsigned bits = 0; bits < table.size(); ++bits) {
    RunStep& step = table[bits];
    for (unsigned i = 0; i < 4; ++i) {
      if ((bits >> i & 1) != 0) {
        ++step.begun;
      } else {
        step.quotients[step.n_complete++] = step.begun;
        step.begun = 0;
      }
    }
    step.kept = step.n_complete == 0 ? 0xffffffffu : 0;
  }
  return table;
}();

}  // namespace weightmill::mlw
