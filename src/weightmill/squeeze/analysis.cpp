#include "analysis.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// Bytes that something other than a weight use reads, with the place that says so first.
struct Claim {
  Reference::Role role;
  bool to_chip;
  std::uint64_t begin, size, tight_size;
  auto operator<=>(const Claim&) const = default;
};
struct Place {
  std::size_t program;
  std::uint32_t word;
};

/// Gathers what all programs read of the tensor.
class Collector {
 public:
  explicit Collector(Analysis& analysis) : analysis_(analysis) {}

  void collect() {
    for (std::size_t i = 0; i < analysis_.programs.size(); ++i) collect(i);
    for (const auto& [offset, stream] : streams_) analysis_.streams.push_back(stream);
    require_separate_streams();
    for (const auto& [claim, place] : claims_) settle(claim, place);
    for (const auto& [claim, place] : optional_) {
      if (!analysis_.touches_stream(claim.begin, claim.size)) {
        analysis_.scales.push_back({claim.begin, claim.begin + claim.size});
      }
    }
    for (auto* ranges : {&analysis_.scales, &analysis_.copied, &analysis_.constants}) merge(*ranges);
  }

 private:
  void collect(std::size_t program) {
    Walker walker(analysis_.programs[program], analysis_.read_only.size());
    Operation operation;
    while (walker.next(operation)) {
      ++analysis_.n_operations;
      require_weights(program, operation, walker.registers());
      for (const Reference& reference : operation.references) {
        if (!reference.origin) continue;
        if (reference.role == Reference::Role::weights) {
          add_use(program, operation, reference, walker.registers());
        } else {
          add_claim(program, operation, reference);
        }
      }
    }
  }

  /// A convolution whose geometry asks for weights has some.
  void require_weights(std::size_t program, const Operation& operation, const Registers& registers) const {
    const Payload& payload = analysis_.programs[program].payload;
    if (payload.product() == Product::u85) return;  // the count per decoder is only known within bounds there
    if (operation.opcode != Opcode::conv && operation.opcode != Opcode::depthwise) return;
    for (unsigned core = 0; core < n_cores(payload, registers); ++core) {
      const auto is_its = [&](const Reference& r) { return r.role == Reference::Role::weights && r.core == core; };
      const bool has = std::any_of(operation.references.begin(), operation.references.end(), is_its);
      const std::uint64_t wanted = expected_weights(payload, registers, operation.opcode, core).least;
      if (has || wanted == 0) continue;
      fail(ErrorCode::bad_file, where_of(analysis_.programs[program], operation.word),
           fmt::format("core {} has no weight stream, but the operation's geometry asks for {} weights", core, wanted));
    }
  }

  void add_use(std::size_t program, const Operation& operation, const Reference& use, const Registers& registers) {
    const Payload& payload = analysis_.programs[program].payload;
    const bool is_u85 = payload.product() == Product::u85;
    Stream stream;
    stream.offset = use.origin->offset;
    stream.size = use.size;
    stream.program = program;
    stream.number = operation.number;
    stream.word = operation.word;
    stream.opcode = operation.opcode;
    stream.core = use.core;
    stream.region = use.region;
    stream.is_fast = is_u85 && (registers[reg::kWeightFormat] & 1) != 0;
    stream.is_sparse = is_u85 && (registers[reg::kWeightFormat] >> 4 & 1) != 0;
    stream.count = expected_weights(payload, registers, operation.opcode, use.core);
    Stream& known = streams_.try_emplace(stream.offset, stream).first->second;
    require_same(known, stream);
    known.count.least = std::max(known.count.least, stream.count.least);
    ++known.n_uses;
  }

  void require_same(const Stream& known, const Stream& use) const {
    const auto form = [](const Stream& s) { return std::tuple(s.size, s.is_fast, s.is_sparse); };
    const bool same_count = !use.count.is_exact || known.count.least == use.count.least;
    if (form(known) == form(use) && same_count) return;
    fail(ErrorCode::bad_file, where_of(analysis_.programs[use.program], use.word),
         fmt::format(
             "the weight stream at {} of the read-only tensor is used as {} bytes here, but as {} bytes, or with "
             "another format or geometry, at command word {} of {}",
             use.offset, use.size, known.size, known.word, analysis_.programs[known.program].name));
  }

  void add_claim(std::size_t program, const Operation& operation, const Reference& reference) {
    const Claim claim{reference.role, reference.to_chip, reference.origin->offset, reference.size,
                      reference.tight_size};
    if (reference.optional) {
      optional_.try_emplace(claim, Place{program, operation.word});
    } else {
      claims_.try_emplace(claim, Place{program, operation.word});
    }
  }

  void require_separate_streams() const {
    for (std::size_t i = 1; i < analysis_.streams.size(); ++i) {
      const Stream &before = analysis_.streams[i - 1], &stream = analysis_.streams[i];
      if (before.end() <= stream.offset) continue;
      fail(
          ErrorCode::bad_file, where_of(analysis_.programs[stream.program], stream.word),
          fmt::format("the weight streams at {} and {} of the read-only tensor overlap", before.offset, stream.offset));
    }
  }

  void settle(const Claim& claim, const Place& place) {
    switch (claim.role) {
      case Reference::Role::weights: return;
      case Reference::Role::scales: return take(analysis_.scales, claim, place, "scales");
      case Reference::Role::feature_map: return take(analysis_.constants, claim, place, "a constant feature map");
      case Reference::Role::index:
        analysis_.extents_known = false;
        return take(analysis_.copied, claim, place, "an index list");
      case Reference::Role::fixed_dma:
        analysis_.extents_known = false;
        return take(analysis_.copied, claim, place, "a strided or indexed DMA");
      case Reference::Role::dma: break;
    }
    if (claim.to_chip) return take(analysis_.copied, claim, place, "a look-up table");
    require_whole_streams(claim, place);
    analysis_.copied.push_back({claim.begin, claim.begin + claim.size});
  }

  void take(std::vector<Range>& ranges, const Claim& claim, const Place& place, const char* what) {
    const std::uint64_t size =
        analysis_.touches_stream(claim.begin, claim.size) ? claim.tight_size : claim.size;
    if (analysis_.touches_stream(claim.begin, size)) {
      fail(ErrorCode::bad_file, where_of(analysis_.programs[place.program], place.word),
           fmt::format("{} at {} of the read-only tensor, {} bytes, reaches into a weight stream", what, claim.begin,
                       size));
    }
    ranges.push_back({claim.begin, claim.begin + claim.size});  // the loose bound, so that no byte is dead by mistake
  }

  void require_whole_streams(const Claim& claim, const Place& place) const {
    const std::uint64_t end = claim.begin + claim.size;
    const auto is_cut = [&](std::uint64_t at) {
      const std::size_t i = analysis_.first_stream_behind(at);
      return i < analysis_.streams.size() && analysis_.streams[i].offset < at;
    };
    if (claim.size == 0 || (!is_cut(claim.begin) && !is_cut(end))) return;
    fail(ErrorCode::bad_file, where_of(analysis_.programs[place.program], place.word),
         fmt::format("the DMA of bytes {} to {} of the read-only tensor cuts through a weight stream", claim.begin,
                     end));
  }

  static void merge(std::vector<Range>& ranges) {
    std::sort(ranges.begin(), ranges.end());
    std::vector<Range> merged;
    for (const Range& range : ranges) {
      if (range.begin == range.end) continue;
      if (merged.empty() || merged.back().end < range.begin) {
        merged.push_back(range);
      } else {
        merged.back().end = std::max(merged.back().end, range.end);
      }
    }
    ranges = std::move(merged);
  }

  Analysis& analysis_;
  std::map<std::uint64_t, Stream> streams_;
  std::map<Claim, Place> claims_, optional_;
};

/// The class of each byte of the tensor.
enum class ByteClass : std::uint8_t { rest, constants, copied, scales, weights };

std::vector<ByteClass> classes_of(const Analysis& analysis) {
  std::vector<ByteClass> classes(analysis.read_only.size(), ByteClass::rest);
  const auto paint = [&](const Range& range, ByteClass as) {
    std::fill(classes.begin() + static_cast<std::ptrdiff_t>(range.begin),
              classes.begin() + static_cast<std::ptrdiff_t>(range.end), as);
  };
  for (const Range& range : analysis.constants) paint(range, ByteClass::constants);
  for (const Range& range : analysis.copied) paint(range, ByteClass::copied);
  for (const Range& range : analysis.scales) paint(range, ByteClass::scales);
  for (const Stream& stream : analysis.streams) paint({stream.offset, stream.end()}, ByteClass::weights);
  return classes;
}

}  // namespace

const Stream& Analysis::stream_at(std::uint64_t offset) const { return streams[first_stream_behind(offset)]; }

std::size_t Analysis::first_stream_behind(std::uint64_t offset) const {
  const auto at = std::partition_point(streams.begin(), streams.end(),
                                       [&](const Stream& stream) { return stream.end() <= offset; });
  return static_cast<std::size_t>(at - streams.begin());
}

bool Analysis::touches_stream(std::uint64_t begin, std::uint64_t size) const {
  const std::size_t i = first_stream_behind(begin);
  return size != 0 && i < streams.size() && streams[i].offset < begin + size;
}

bool Analysis::is_live(const Reference& reference) const {
  return !reference.optional || !touches_stream(reference.origin->offset, reference.size);
}

std::uint64_t Analysis::bytes_read(const Reference& reference) const {
  return touches_stream(reference.origin->offset, reference.size) ? reference.tight_size : reference.size;
}

Analysis analyze(const NpuPrograms& programs) {
  Analysis analysis;
  analysis.read_only = programs.read_only;
  for (const NpuProgram& program : programs.programs) {
    analysis.programs.push_back(open_program(program.name, program.payload));
  }
  Collector(analysis).collect();
  return analysis;
}

std::vector<Range> dead_granules(const Analysis& analysis) {
  constexpr std::size_t kGranule = 16;
  std::vector<Range> dead;
  if (!analysis.extents_known) return dead;
  const std::vector<ByteClass> classes = classes_of(analysis);
  for (std::size_t begin = 0; begin + kGranule <= classes.size(); begin += kGranule) {
    const auto is_dead = [&](std::size_t i) { return classes[i] == ByteClass::rest && analysis.read_only[i] == 0; };
    std::size_t i = begin;
    while (i < begin + kGranule && is_dead(i)) ++i;
    if (i != begin + kGranule) continue;
    if (!dead.empty() && dead.back().end == begin) {
      dead.back().end = i;
    } else {
      dead.push_back({begin, i});
    }
  }
  return dead;
}

Coverage coverage_of(const Analysis& analysis) {
  Coverage coverage;
  const std::vector<ByteClass> classes = classes_of(analysis);
  std::uint64_t Coverage::*const member[] = {&Coverage::rest, &Coverage::constants, &Coverage::copied,
                                             &Coverage::scales, &Coverage::weights};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    ++(coverage.*member[static_cast<std::size_t>(classes[i])]);
    if (classes[i] == ByteClass::rest && analysis.read_only[i] != 0) ++coverage.rest_nonzero;
  }
  for (const Range& range : dead_granules(analysis)) coverage.dead += range.end - range.begin;
  return coverage;
}

}  // namespace weightmill
