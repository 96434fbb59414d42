#include "squeeze.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/codec/codec.h>

#include "analysis.h"
#include "rewrite.h"
#include "stream_coding.h"
#include "trace.h"

namespace weightmill {
namespace {

/// What became of one stream.
struct StreamOutcome {
  std::optional<std::vector<std::uint8_t>> replacement;
  std::uint64_t n_weights = 0, passes_before = 0, passes_after = 0;
};

std::uint64_t passes_of(std::span<const std::uint8_t> stream) {
  return mlw::decode_with_statistics(stream).statistics.passes;
}

/// Takes `coded` where it is smaller than `old`, or as large and decoded in fewer passes; else drops the filling.
void squeeze_mlw(std::span<const std::uint8_t> old, std::vector<std::uint8_t> coded, StreamOutcome& outcome) {
  const auto trimmed = without_filling(old);
  if (!coded.empty() && coded.size() <= trimmed.size()) {
    const std::uint64_t passes = passes_of(coded);
    if (coded.size() < trimmed.size() || passes < outcome.passes_before) {
      outcome.passes_after = passes;
      outcome.replacement = std::move(coded);
      return;
    }
  }
  if (trimmed.size() < old.size()) outcome.replacement.emplace(trimmed.begin(), trimmed.end());
}

StreamOutcome squeeze_stream(const Analysis& analysis, const Stream& stream, const StreamEncoder& encode) {
  const DecodedStream decoded = decode_stream(analysis, stream);
  StreamOutcome outcome{std::nullopt, decoded.weights.size(), decoded.passes, decoded.passes};
  if (!stream.is_fast) {
    squeeze_mlw(analysis.bytes_of(stream), encode(decoded.weights), outcome);
  } else if (auto fast = mlw::encode_fast(decoded.weights, stream.is_sparse); fast && fast->size() < stream.size) {
    outcome.replacement = *std::move(fast);
  }
  return outcome;
}

std::vector<StreamOutcome> squeeze_streams(const Analysis& analysis, const SqueezeOptions& options) {
  std::vector<StreamOutcome> outcomes(analysis.streams.size());
  std::atomic<std::size_t> done = 0;
  parallel_for(outcomes.size(), options.jobs, [&](std::size_t i) {
    outcomes[i] = squeeze_stream(analysis, analysis.streams[i], options.encode);
    if (options.progress) options.progress("squeezing", ++done, outcomes.size());
  });
  return outcomes;
}

StreamChange change_of(const Analysis& analysis, const Stream& stream, const StreamOutcome& outcome) {
  return {analysis.programs[stream.program].name, stream.number, stream.core, stream.offset, outcome.n_weights,
          stream.size, outcome.replacement ? outcome.replacement->size() : stream.size, outcome.passes_before,
          outcome.passes_after};
}

SqueezeSummary summary_of(const Analysis& analysis, const std::vector<StreamOutcome>& outcomes) {
  SqueezeSummary summary;
  summary.n_streams = outcomes.size();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StreamOutcome& outcome = outcomes[i];
    summary.n_weights += outcome.n_weights;
    summary.passes_before += outcome.passes_before;
    summary.passes_after += outcome.passes_after;
    summary.stream_bytes_before += analysis.streams[i].size;
    summary.stream_bytes_after += outcome.replacement ? outcome.replacement->size() : analysis.streams[i].size;
    summary.n_replaced += outcome.replacement ? 1 : 0;
    summary.streams.push_back(change_of(analysis, analysis.streams[i], outcome));
  }
  return summary;
}

/// Rebuilding without a change must give the input: else something in it is written in a way that rewriting would lose.
void require_identity(const Analysis& analysis) {
  const Rewritten same = rewrite(analysis, Replacements(analysis.streams.size()), {});
  bool is_same = std::equal(same.read_only.begin(), same.read_only.end(), analysis.read_only.begin(),
                            analysis.read_only.end());
  for (std::size_t i = 0; i < same.payloads.size(); ++i) {
    const auto before = analysis.programs[i].payload.bytes;
    is_same = is_same && std::equal(same.payloads[i].begin(), same.payloads[i].end(), before.begin(), before.end());
  }
  if (!is_same) {
    fail(ErrorCode::unsupported, analysis.programs.front().name,
         "the command stream is written in a way that would not survive rewriting; nothing is changed");
  }
}

/// Dead bytes, but never all of the tensor: its address is given to the NPU.
std::vector<Range> removable_bytes(const Analysis& analysis, bool keep_dead) {
  if (keep_dead) return {};
  std::vector<Range> dead = dead_granules(analysis);
  if (dead.size() == 1 && dead[0].begin == 0 && dead[0].end == analysis.read_only.size()) dead.clear();
  return dead;
}

NpuPrograms programs_of(const NpuPrograms& names, const Rewritten& rewritten) {
  NpuPrograms programs;
  programs.read_only = rewritten.read_only;
  for (std::size_t i = 0; i < rewritten.payloads.size(); ++i) {
    programs.programs.push_back({names.programs[i].name, rewritten.payloads[i]});
  }
  return programs;
}

void require_same_model(const NpuPrograms& names, const Analysis& before, const Rewritten& rewritten) {
  const Analysis after = analyze(programs_of(names, rewritten));
  const auto difference = first_difference(before, after, [&](const Stream& a, const Stream& b) {
    return same_weights(before, a, after, b);
  });
  if (difference) {
    fail(ErrorCode::unsupported, "squeeze",
         "shortened streams would change what the model does; nothing is changed: " + *difference);
  }
}

}  // namespace

SqueezeSummary& SqueezeSummary::operator+=(const SqueezeSummary& other) {
  n_streams += other.n_streams;
  n_replaced += other.n_replaced;
  n_weights += other.n_weights;
  stream_bytes_before += other.stream_bytes_before;
  stream_bytes_after += other.stream_bytes_after;
  passes_before += other.passes_before;
  passes_after += other.passes_after;
  dead_bytes += other.dead_bytes;
  n_insertions += other.n_insertions;
  streams.insert(streams.end(), other.streams.begin(), other.streams.end());
  return *this;
}

Squeezed squeeze(const NpuPrograms& programs, const SqueezeOptions& options) {
  const Analysis analysis = analyze(programs);
  require_identity(analysis);
  std::vector<StreamOutcome> outcomes = squeeze_streams(analysis, options);
  Squeezed result;
  result.summary = summary_of(analysis, outcomes);
  Replacements replacements;
  for (StreamOutcome& outcome : outcomes) replacements.push_back(std::move(outcome.replacement));
  const std::vector<Range> dead = removable_bytes(analysis, options.keep_dead);
  for (const Range& range : dead) result.summary.dead_bytes += range.end - range.begin;
  Rewritten rewritten = rewrite(analysis, replacements, dead);
  require_same_model(programs, analysis, rewritten);
  result.summary.n_insertions = rewritten.n_insertions;
  result.payloads = std::move(rewritten.payloads);
  result.read_only = std::move(rewritten.read_only);
  return result;
}

}  // namespace weightmill
