#include "accelerator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr BlockShape kLargestOfmBlock{64, 32, 128};
constexpr BlockShape kLargestOfmBlockU85{128, 128, 1024};

Accelerator classic(std::string name, NpuFamily family, int macs_per_cycle, int cores, BlockShape ofm_ublock) {
  const BlockShape ifm_ublock{ofm_ublock.width, ofm_ublock.height, 8};
  return {std::move(name), family, macs_per_cycle, cores, {ofm_ublock}, ifm_ublock, kLargestOfmBlock};
}

Accelerator u85(int macs_per_cycle, int cores, std::vector<BlockShape> ofm_ublocks, BlockShape ifm_ublock) {
  return {fmt::format("ethos-u85-{}", macs_per_cycle),
          NpuFamily::u85,
          macs_per_cycle,
          cores,
          std::move(ofm_ublocks),
          ifm_ublock,
          kLargestOfmBlockU85};
}

/// Blocks are width, height, depth here; the documents of U85 say height x width x depth.
std::vector<Accelerator> make_table() {
  return {
      classic("ethos-u55-32", NpuFamily::u55, 32, 1, {1, 1, 4}),
      classic("ethos-u55-64", NpuFamily::u55, 64, 1, {1, 1, 8}),
      classic("ethos-u55-128", NpuFamily::u55, 128, 1, {2, 1, 8}),
      classic("ethos-u55-256", NpuFamily::u55, 256, 1, {2, 2, 8}),
      classic("ethos-u65-256", NpuFamily::u65, 256, 1, {2, 2, 8}),
      classic("ethos-u65-512", NpuFamily::u65, 512, 2, {2, 2, 8}),
      u85(128, 1, {{2, 1, 8}, {1, 1, 16}}, {2, 1, 8}),
      u85(256, 1, {{2, 1, 16}, {4, 1, 8}, {2, 2, 8}}, {2, 2, 8}),
      u85(512, 2, {{2, 2, 16}, {4, 1, 16}}, {2, 2, 16}),
      u85(1024, 4, {{2, 2, 32}, {4, 1, 32}, {4, 2, 16}}, {2, 4, 16}),
      u85(2048, 4, {{2, 2, 64}, {4, 1, 64}, {4, 4, 16}}, {4, 4, 16}),
  };
}

std::string canonical(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// How many letters to insert, remove, replace or swap with their neighbour to turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

[[noreturn]] void fail_unknown(std::string_view name) {
  constexpr std::size_t kLongestNameWorthComparing = 64;
  const std::string wanted = canonical(name.substr(0, kLongestNameWorthComparing));
  const auto table = accelerators();
  const auto nearest =
      std::ranges::min_element(table, {}, [&](const Accelerator& a) { return distance(a.name, wanted); });
  std::string all;
  for (const Accelerator& a : table) all += (all.empty() ? "" : ", ") + a.name;
  fail(ErrorCode::bad_option, fmt::format("accelerator '{}'", name.substr(0, kLongestNameWorthComparing)),
       fmt::format("unknown; did you mean {}? There are: {}", nearest->name, all));
}

}  // namespace

std::span<const Accelerator> accelerators() {
  static const std::vector<Accelerator> table = make_table();
  return table;
}

const Accelerator& find_accelerator(std::string_view name) {
  const std::string wanted = canonical(name);
  for (const Accelerator& accelerator : accelerators()) {
    if (accelerator.name == wanted) return accelerator;
  }
  fail_unknown(name);
}

}  // namespace weightmill
