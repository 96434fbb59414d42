#include "rewrite.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace weightmill {
namespace {

/// Emits commands; a register write gets the value that the first operation after it wants, and where a later operation
/// wants another one, a write is inserted before it.
class Emitter {
 public:
  Emitter(Product product, std::size_t n_commands) : product_(product) { commands_.reserve(n_commands + 16); }

  void copy(const Command& command) {
    commands_.push_back(command);
    if (command.is_operation() || !is_movable(product_, command.id())) return;
    states_[command.id()] = {commands_.size() - 1, command.value(), /*is_open=*/true};
  }

  /// The next operation reads `id` and wants it to be `value`.
  void want(RegisterId id, std::uint64_t value) {
    State& state = states_[id];
    if (state.value != value) {
      if (!state.is_open) insert_write(id);
      commands_[states_[id].write] = write_register(id, value);
      state.value = value;
    }
    state.is_open = false;
  }

  std::size_t n_insertions() const { return n_insertions_; }

  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> words;
    words.reserve(commands_.size() * 2);
    for (const Command& command : commands_) append(words, command);
    return words;
  }

 private:
  struct State {
    std::size_t write = 0;  // index of the command that wrote it last
    std::uint64_t value = 0;
    bool is_open = false;   // no operation has read it since
  };

  void insert_write(RegisterId id) {
    commands_.push_back(write_register(id, 0));
    states_[id].write = commands_.size() - 1;
    ++n_insertions_;
  }

  Product product_;
  std::vector<Command> commands_;
  std::array<State, kRegisterIds> states_{};
  std::size_t n_insertions_ = 0;
};

/// Knows what each movable register has to hold.
class Relocation {
 public:
  Relocation(const Analysis& analysis, const Replacements& replacements, const LayoutMap& map)
      : analysis_(analysis), replacements_(replacements), map_(map) {}

  void apply(const Reference& reference, const Registers& registers, Emitter& emitter) const {
    if (reference.origin && !analysis_.is_live(reference)) return;
    emitter.want(reference.base, address_of(reference));
    if (reference.length != 0) emitter.want(reference.length, length_of(reference, registers));
  }

 private:
  std::uint64_t address_of(const Reference& reference) const {
    if (!reference.origin) return reference.address;
    return reference.origin->destination + map_(reference.origin->offset) - map_(reference.origin->source);
  }

  std::uint64_t length_of(const Reference& reference, const Registers& registers) const {
    if (!reference.origin || reference.role == Reference::Role::fixed_dma) return registers[reference.length];
    const std::uint64_t offset = reference.origin->offset;
    if (reference.role == Reference::Role::dma) return map_(offset + reference.size) - map_(offset);
    const auto& replacement = replacements_[analysis_.first_stream_behind(offset)];
    return replacement ? replacement->size() : reference.size;
  }

  const Analysis& analysis_;
  const Replacements& replacements_;
  const LayoutMap& map_;
};

/// What shorter streams leave free and what is dead, in order.
LayoutMap map_of(const Analysis& analysis, const Replacements& replacements, const std::vector<Range>& dead) {
  std::vector<Range> gaps = dead;
  for (std::size_t i = 0; i < analysis.streams.size(); ++i) {
    const Stream& stream = analysis.streams[i];
    assert(!replacements[i] || replacements[i]->size() <= stream.size);
    if (replacements[i]) gaps.push_back({stream.offset + replacements[i]->size(), stream.end()});
  }
  std::sort(gaps.begin(), gaps.end());
  LayoutMap map;
  for (const Range& gap : gaps) map.take_out(gap.begin, gap.end - gap.begin);
  return map;
}

std::vector<std::uint8_t> rebuild_tensor(const Analysis& analysis, const Replacements& replacements,
                                         const LayoutMap& map) {
  std::vector<std::uint8_t> bytes(analysis.read_only.begin(), analysis.read_only.end());
  for (std::size_t i = 0; i < replacements.size(); ++i) {
    if (!replacements[i]) continue;
    std::copy(replacements[i]->begin(), replacements[i]->end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(analysis.streams[i].offset));
  }
  std::vector<std::uint8_t> kept;
  kept.reserve(bytes.size());
  std::size_t from = 0;
  for (const Range& gap : map.gaps()) {
    kept.insert(kept.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from),
                bytes.begin() + static_cast<std::ptrdiff_t>(gap.begin));
    from = gap.end;
  }
  kept.insert(kept.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end());
  return kept;
}

std::vector<std::uint32_t> rewrite_commands(const Analysis& analysis, const Program& program,
                                            const Relocation& relocation, std::size_t& n_insertions) {
  Emitter emitter(program.payload.product(), program.commands.size());
  Walker walker(program, analysis.read_only.size());
  Operation operation;
  std::size_t next = 0;
  while (walker.next(operation)) {
    for (; next < operation.command; ++next) emitter.copy(program.commands[next]);
    for (const Reference& reference : operation.references) relocation.apply(reference, walker.registers(), emitter);
    emitter.copy(program.commands[next++]);
  }
  n_insertions += emitter.n_insertions();
  return emitter.words();
}

}  // namespace

void LayoutMap::take_out(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return;
  const std::uint64_t before =
      gaps_.empty() ? 0 : removed_before_.back() + (gaps_.back().end - gaps_.back().begin);
  gaps_.push_back({begin, begin + size});
  removed_before_.push_back(before);
}

std::uint64_t LayoutMap::operator()(std::uint64_t offset) const {
  const auto at =
      std::partition_point(gaps_.begin(), gaps_.end(), [&](const Range& gap) { return gap.begin < offset; });
  if (at == gaps_.begin()) return offset;
  const auto i = static_cast<std::size_t>(at - gaps_.begin()) - 1;
  const std::uint64_t inside = std::min(offset, gaps_[i].end) - gaps_[i].begin;
  return offset - removed_before_[i] - inside;
}

Rewritten rewrite(const Analysis& analysis, const Replacements& replacements, const std::vector<Range>& dead) {
  const LayoutMap map = map_of(analysis, replacements, dead);
  const Relocation relocation(analysis, replacements, map);
  Rewritten result;
  result.read_only = rebuild_tensor(analysis, replacements, map);
  for (const Program& program : analysis.programs) {
    const auto words = rewrite_commands(analysis, program, relocation, result.n_insertions);
    result.payloads.push_back(with_commands(program.payload, words, program.name));
  }
  return result;
}

}  // namespace weightmill
