#include "progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "console.h"

namespace weightmill::cli {
namespace {

constexpr std::size_t kBarCells = 24;
constexpr std::chrono::milliseconds kRedrawInterval{100};

/// Full and half blocks for `done` of `total`.
std::string bar(std::size_t done, std::size_t total) {
  const std::size_t halves = std::min(done, total) * 2 * kBarCells / std::max<std::size_t>(total, 1);
  std::string text;
  for (std::size_t i = 0; i < halves / 2; ++i) text += "█";
  if (halves % 2 != 0) text += "▌";
  text.append(kBarCells - (halves + 1) / 2, ' ');
  return text;
}

}  // namespace

std::string progress_line(std::string_view stage, std::size_t done, std::size_t total, double elapsed_s) {
  if (total == 0) return fmt::format("{}  {}", stage, done);
  std::string line = fmt::format("{}  {} {}/{}", stage, bar(done, total), done, total);
  if (elapsed_s > 0 && done > 0) {
    const double per_second = static_cast<double>(done) / elapsed_s;
    line += fmt::format("  {:.1f}/s", per_second);
    if (done < total) line += fmt::format("  {:.0f} s left", static_cast<double>(total - done) / per_second);
  }
  return line;
}

ProgressBar::ProgressBar(bool quiet) : active_(!quiet && stderr_is_terminal()) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::finish() {
  const std::scoped_lock lock(mutex_);
  if (drawn_) print_on_stderr("\r\033[K");
  drawn_ = false;
}

Progress ProgressBar::callback() {
  if (!active_) return {};
  return [this](std::string_view stage, std::size_t done, std::size_t total) { show(stage, done, total); };
}

void ProgressBar::show(std::string_view stage, std::size_t done, std::size_t total) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  if (stage != stage_) {
    stage_ = stage;
    stage_start_ = now;
  } else if (now - last_drawn_ < kRedrawInterval && done < total) {
    return;
  }
  last_drawn_ = now;
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - stage_start_).count();
  print_on_stderr("\r\033[K" + progress_line(stage, done, total, elapsed_s));
  std::fflush(stderr);
}

}  // namespace weightmill::cli
