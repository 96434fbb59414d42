#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include <weightmill/base/progress.h>

namespace weightmill::cli {

/// One line of a progress bar, e.g. "packing  ██████████████▌       140/200  12.1/s  5 s left".
/// `elapsed_s` > 0 and `done` > 0 give speed and time left; `total` 0 shows the count alone.
std::string progress_line(std::string_view stage, std::size_t done, std::size_t total, double elapsed_s);

/// Draws progress on stderr, at most ten times a second, and wipes it when the work ends. Does nothing where stderr is no
/// terminal or the user asked for quiet. Calls may come from any thread.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Wipes the bar, so that the result can be printed. Later calls draw it again.
  void finish();

  /// What the library calls.
  Progress callback();

 private:
  using Clock = std::chrono::steady_clock;
  void show(std::string_view stage, std::size_t done, std::size_t total);

  bool active_;
  bool drawn_ = false;
  std::mutex mutex_;
  std::string stage_;
  Clock::time_point stage_start_{};
  Clock::time_point last_drawn_{};
};

}  // namespace weightmill::cli
