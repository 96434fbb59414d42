#pragma once

#include <cstddef>
#include <functional>

namespace weightmill {

/// How many threads `jobs` asks for: itself if positive, else the machine's.
unsigned resolve_jobs(int jobs) noexcept;

/// Calls body(i) once for each i in [0, count), on up to `jobs` threads (1: in order, on the caller's).
///
/// Threads take the next index as they come free, so the *order* of the calls is not fixed: body(i) must write only to
/// places that belong to i. The result is then the same for any number of threads.
/// If calls throw, the exception of the lowest index is rethrown after all threads have stopped.
void parallel_for(std::size_t count, unsigned jobs, const std::function<void(std::size_t)>& body);

}  // namespace weightmill
