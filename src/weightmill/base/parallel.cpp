#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace weightmill {
namespace {

/// The exception of the lowest index that failed, whichever thread met it first.
class FirstFailure {
 public:
  void record(std::size_t index, std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_ || index < index_) {
      index_ = index;
      failure_ = std::move(failure);
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::size_t index_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

unsigned resolve_jobs(int jobs) noexcept {
  if (jobs > 0) return static_cast<unsigned>(jobs);
  return std::max(1u, std::thread::hardware_concurrency());
}

void parallel_for(std::size_t count, unsigned jobs, const std::function<void(std::size_t)>& body) {
  const std::size_t n_threads = std::min<std::size_t>(count, std::max(1u, jobs));
  if (n_threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  FirstFailure failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        failure.record(i, std::current_exception());
        // Indices are handed out in ascending order, so all lower ones are already taken and will still run.
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t t = 1; t < n_threads; ++t) threads.emplace_back(work);
    } catch (const std::system_error&) {
      // The system has no more threads to give: those that started, and the caller's, do the work.
    }
    work();
  }
  failure.rethrow();
}

}  // namespace weightmill
