#include "trace.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// Compares bytes of the two read-only tensors, each pair of ranges once.
class Contents {
 public:
  Contents(const Analysis& before, const Analysis& after, const StreamsMatch& match)
      : before_(before), after_(after), match_(match) {}

  bool same_bytes(std::uint64_t before, std::uint64_t after, std::uint64_t size) {
    if (size > before_.read_only.size() - before || size > after_.read_only.size() - after) return false;
    return same_once({before, after, size, size}, size, [&] {
      const auto a = before_.read_only.subspan(before, size), b = after_.read_only.subspan(after, size);
      return std::equal(a.begin(), a.end(), b.begin());
    });
  }

  bool same_streams(const Stream& before, const Stream& after) {
    if (before.is_fast != after.is_fast || before.is_sparse != after.is_sparse) return false;
    return same_once({before.offset, after.offset, before.size, after.size}, 0, [&] { return match_(before, after); });
  }

  /// Copied ranges: streams decoded, the bytes between them as they are.
  bool same_copies(const Reference& before, const Reference& after) {
    const std::uint64_t a = before.origin->offset, b = after.origin->offset;
    if (!before_.touches_stream(a, before.size) && !after_.touches_stream(b, after.size)) {
      return before.size == after.size && same_bytes(a, b, before.size);
    }
    return same_once({a, b, before.size, after.size}, 0, [&] { return same_pieces(before, after); });
  }

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

  template <class Compare>
  bool same_once(const Key& key, std::uint64_t work, const Compare& compare) {
    constexpr std::uint64_t kMaxWork = std::uint64_t{1}
                                       << 32;  // bytes: seconds; real models need a few times their size
    if (same_.contains(key)) return true;
    work_ += work;
    if (work_ > kMaxWork) {
      fail(ErrorCode::unsupported, "command stream",
           "its operations read the same bytes over and over in different ways");
    }
    if (!compare()) return false;
    same_.insert(key);
    return true;
  }

  bool same_pieces(const Reference& before, const Reference& after) {
    std::uint64_t a = before.origin->offset, b = after.origin->offset;
    const std::uint64_t a_end = a + before.size, b_end = b + after.size;
    std::size_t i = before_.first_stream_behind(a), j = after_.first_stream_behind(b);
    while (i < before_.streams.size() && before_.streams[i].offset < a_end) {
      if (j == after_.streams.size()) return false;
      const Stream &x = before_.streams[i++], &y = after_.streams[j++];
      if (y.end() > b_end || x.offset - a != y.offset - b || !same_bytes(a, b, x.offset - a)) return false;
      if (!same_streams(x, y)) return false;
      a = x.end();
      b = y.end();
    }
    return a_end - a == b_end - b && same_bytes(a, b, a_end - a);
  }

  const Analysis& before_;
  const Analysis& after_;
  const StreamsMatch& match_;
  std::set<Key> same_;
  std::uint64_t work_ = 0;
};

/// Which registers differ, kept up to date write by write.
class RegisterDifferences {
 public:
  RegisterDifferences(const Registers& before, const Registers& after) : before_(before), after_(after) {}

  void update(RegisterId id) {
    const bool differs = before_[id] != after_[id] || before_.is_written(id) != after_.is_written(id);
    if (differs == differs_[id]) return;
    differs_[id] = differs;
    n_differing_ += differs ? 1 : -1;
  }

  std::optional<RegisterId> first() const {
    if (n_differing_ == 0) return std::nullopt;
    const auto at = std::find(differs_.begin(), differs_.end(), true);
    return static_cast<RegisterId>(at - differs_.begin());
  }

 private:
  const Registers& before_;
  const Registers& after_;
  std::array<bool, kRegisterIds> differs_{};
  int n_differing_ = 0;
};

const char* name_of(Reference::Role role) {
  switch (role) {
    case Reference::Role::weights:
      return "weights";
    case Reference::Role::scales:
      return "scales";
    case Reference::Role::feature_map:
      return "feature map";
    case Reference::Role::index:
      return "index list";
    case Reference::Role::dma:
      return "DMA source";
    case Reference::Role::fixed_dma:
      return "strided DMA source";
  }
  return "";
}

/// Two command streams, side by side.
class ProgramPair {
 public:
  ProgramPair(const Analysis& before, const Analysis& after, const Program& a, const Program& b, Contents& contents)
      : before_(before),
        after_(after),
        a_(a),
        b_(b),
        contents_(contents),
        walk_a_(a, before.read_only.size()),
        walk_b_(b, after.read_only.size()),
        registers_(walk_a_.registers(), walk_b_.registers()) {}

  std::optional<std::string> first_difference() {
    if (a_.payload.configuration != b_.payload.configuration || a_.payload.architecture != b_.payload.architecture) {
      return fmt::format("{}: the configuration or architecture words differ", a_.name);
    }
    while (walk_a_.next(op_a_)) {
      if (!walk_b_.next(op_b_)) return differ("is missing in the second");
      follow_writes(a_, next_a_, op_a_);
      follow_writes(b_, next_b_, op_b_);
      if (auto difference = compare_operations()) return difference;
    }
    if (walk_b_.next(op_b_)) return fmt::format("{}: the second has more operations", a_.name);
    return std::nullopt;
  }

 private:
  std::string differ(const std::string& what) const {
    return fmt::format("{} (operation 0x{:03X}): {}", where_of(a_, op_a_.word), static_cast<unsigned>(op_a_.opcode),
                       what);
  }

  void follow_writes(const Program& program, std::size_t& next, const Operation& operation) {
    for (; next < operation.command; ++next) {
      const RegisterId id = program.commands[next].id();
      if (!is_movable(a_.payload.product(), id)) registers_.update(id);
    }
    ++next;
  }

  std::optional<std::string> compare_operations() {
    if (op_a_.opcode != op_b_.opcode || op_a_.parameter != op_b_.parameter) return differ("another operation");
    if (const auto id = registers_.first()) return differ(fmt::format("register 0x{:03X} differs", *id));
    if (auto difference = compare_references()) return difference;
    return compare_staged();
  }

  std::optional<std::string> compare_references() {
    std::size_t j = 0;
    for (const Reference& a : op_a_.references) {
      if (a.optional && !before_.is_live(a)) continue;
      while (j < op_b_.references.size() && op_b_.references[j].optional && !is_same_place(a, op_b_.references[j])) ++j;
      if (j == op_b_.references.size() || !is_same_place(a, op_b_.references[j])) {
        return differ(fmt::format("the second does not read its {}", name_of(a.role)));
      }
      if (!is_same(a, op_b_.references[j++])) return differ(fmt::format("its {} differ", name_of(a.role)));
    }
    while (j < op_b_.references.size() && op_b_.references[j].optional) ++j;
    if (j != op_b_.references.size()) return differ("the second reads more");
    return std::nullopt;
  }

  static bool is_same_place(const Reference& a, const Reference& b) {
    return a.role == b.role && a.optional == b.optional && a.base == b.base && a.region == b.region;
  }

  bool is_same(const Reference& a, const Reference& b) {
    if (a.origin.has_value() != b.origin.has_value()) return false;
    if (!a.origin) return a.address == b.address && a.size == b.size;
    const std::uint64_t offset_a = a.origin->offset, offset_b = b.origin->offset;
    switch (a.role) {
      case Reference::Role::weights:
        return contents_.same_streams(before_.stream_at(offset_a), after_.stream_at(offset_b));
      case Reference::Role::scales:
        return a.size == b.size && contents_.same_bytes(offset_a, offset_b, a.size);
      case Reference::Role::dma:
        return contents_.same_copies(a, b);
      case Reference::Role::fixed_dma:
        if (walk_a_.registers()[a.length] != walk_b_.registers()[b.length]) return false;
        [[fallthrough]];
      case Reference::Role::feature_map:
      case Reference::Role::index:
        break;  // their sizes are bounds, clipped by the tensor's end
    }
    return contents_.same_bytes(offset_a, offset_b, std::min(before_.bytes_read(a), after_.bytes_read(b)));
  }

  std::optional<std::string> compare_staged() {
    const auto same = [&](const CopiedPiece& a, const CopiedPiece& b) {
      return a.position == b.position && a.size == b.size && contents_.same_bytes(a.offset, b.offset, a.size);
    };
    if (std::equal(op_a_.staged.begin(), op_a_.staged.end(), op_b_.staged.begin(), op_b_.staged.end(), same)) {
      return std::nullopt;
    }
    return differ("it reads copied bytes, and they differ");
  }

  const Analysis& before_;
  const Analysis& after_;
  const Program& a_;
  const Program& b_;
  Contents& contents_;
  Walker walk_a_, walk_b_;
  RegisterDifferences registers_;
  Operation op_a_, op_b_;
  std::size_t next_a_ = 0, next_b_ = 0;
};

}  // namespace

std::optional<std::string> first_difference(const Analysis& before, const Analysis& after, const StreamsMatch& match) {
  if (before.programs.size() != after.programs.size()) {
    return fmt::format("{} NPU operators in the first, {} in the second", before.programs.size(),
                       after.programs.size());
  }
  Contents contents(before, after, match);
  for (std::size_t i = 0; i < before.programs.size(); ++i) {
    ProgramPair pair(before, after, before.programs[i], after.programs[i], contents);
    if (auto difference = pair.first_difference()) return difference;
  }
  return std::nullopt;
}

}  // namespace weightmill
