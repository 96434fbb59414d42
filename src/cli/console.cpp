#include "console.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace weightmill::cli {
namespace {

/// Columns on a terminal: code points, as every byte that does not continue a UTF-8 sequence starts one.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::string format_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                       std::string_view alignment) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += "  ";
    line += padded(cells[i], widths[i], alignment[i] == '>');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

bool stderr_is_terminal() noexcept { return ::isatty(STDERR_FILENO) != 0; }

bool stdout_may_be_coloured() noexcept {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

void print_on_stderr(std::string_view text) noexcept {
  // A message that cannot be written must not become a second failure.
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_note(std::string_view text) { print_on_stderr(fmt::format("weightmill: {}\n", text)); }

void print_error(std::string_view text) { print_on_stderr(fmt::format("error: {}\n", text)); }

std::string with_thin_groups(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ' ');
  return digits;
}

std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment) {
  std::vector<std::size_t> widths(header.size(), 0);
  const auto widen = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], display_width(cells[i]));
  };
  widen(header);
  for (const auto& row : rows) widen(row);
  std::string text = format_row(header, widths, alignment);
  for (const auto& row : rows) text += format_row(row, widths, alignment);
  return text;
}

}  // namespace weightmill::cli
