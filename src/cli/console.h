#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill::cli {

/// Whether stderr is a terminal that may show a moving bar.
bool stderr_is_terminal() noexcept;

/// Whether `stdout` may be coloured: a terminal, and NO_COLOR is not set.
bool stdout_may_be_coloured() noexcept;

/// Text on stderr, as it is; lost without a word where stderr cannot be written.
void print_on_stderr(std::string_view text) noexcept;

/// A sentence on stderr: "weightmill: TEXT".
void print_note(std::string_view text);

/// "error: TEXT" on stderr.
void print_error(std::string_view text);

/// 1234567 -> "1 234 567"; independent of the locale.
std::string with_thin_groups(std::uint64_t value);

/// A table in plain text: columns are as wide as their widest cell; those named in `right` are right-aligned.
std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment);

}  // namespace weightmill::cli
