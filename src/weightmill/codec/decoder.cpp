#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "bit_reader.h"
#include "code_value.h"
#include "codec.h"
#include "refuse_stream.h"
#include "slice.h"
#include "slice_decoder.h"

namespace weightmill::mlw {
namespace {

/// A slice's header but for its palette.
struct SliceHeader {
  unsigned zdiv, n_weights, wdiv;
  bool truncated, sends_palette;
};

/// Reads streams from front to end.
class StreamDecoder {
 public:
  StreamDecoder(std::span<const std::uint8_t> stream, std::size_t max_weights) : in_(stream), max_weights_(max_weights) {}

  Decoded run() && {
    for (;;) {
      const unsigned zdiv = take(3);
      if (zdiv != kEndOfStreamCode) {
        decode_slice(zdiv);
      } else if (end_stream()) {
        break;
      }
    }
    decoded_.statistics.weights = decoded_.weights.size();
    return std::move(decoded_);
  }

 private:
  /// Takes what fills up the end code's byte. True where the bytes end there; else another stream or filling follows.
  bool end_stream() {
    const std::uint64_t begin = in_.position_bits() - 3;
    in_.skip_to_byte();
    statistics().end_bits += in_.position_bits() - begin;
    statistics().streams += in_stream_ ? 1 : 0;
    in_stream_ = false;
    return in_.at_end();
  }

  void decode_slice(unsigned zdiv) {
    const std::uint64_t begin = in_.position_bits() - 3;
    const SliceHeader header = take_header(zdiv);
    if (header.sends_palette) take_palette();
    statistics().header_bits += in_.position_bits() - begin;
    const SliceLayout layout = layout_of(header);
    statistics().passes += take_slice_body(in_, layout, symbols_);
    count_slice(layout, header.sends_palette);
    if (layout.run_code.on()) {
      append_with_runs(header.sends_palette);
    } else {
      append_plain();
    }
    in_stream_ = true;
    zero_runs_ = layout.run_code.on();
  }

  SliceHeader take_header(unsigned zdiv) {
    if (zdiv > 3 && zdiv != kNoRunsCode) refuse(fmt::format("run divisor code {} does not exist", zdiv));
    SliceHeader header{};
    header.zdiv = zdiv;
    header.n_weights = take(15) + 1;
    header.wdiv = take(3);
    header.truncated = take(1) != 0;
    header.sends_palette = take(1) != 0;
    if (header.wdiv == WeightCode::kDivisors) refuse("weight divisor code 6 does not exist");
    if (header.sends_palette) return header;
    if (!in_stream_) refuse("the first slice of a stream has no palette");
    if (zero_runs_ != (zdiv != kNoRunsCode)) refuse("zero-run mode changes without a new palette");
    return header;
  }

  void take_palette() {
    palette_ = {};
    palette_.direct_offset = take(5);
    const unsigned size_code = take(5);
    palette_.size = size_code == 0 ? 0 : size_code + 1;
    palette_.entry_bits = take(3) + 2;
    for (unsigned i = 0; i < palette_.size; ++i) palette_.entries[i] = static_cast<std::uint16_t>(take(palette_.entry_bits));
  }

  SliceLayout layout_of(const SliceHeader& header) const {
    const RunCode run_code = header.zdiv == kNoRunsCode ? RunCode::off() : RunCode(header.zdiv);
    const std::size_t run_before = header.sends_palette ? 1 : 0;
    return {.n_weights = header.n_weights,
            .n_runs = run_code.on() ? header.n_weights + run_before : 0,
            .weight_code = header.wdiv == kUncompressedCode ? WeightCode::uncompressed()
                           : header.truncated               ? WeightCode::truncated(header.wdiv)
                                                            : WeightCode::plain(header.wdiv),
            .run_code = run_code,
            .index_bits = palette_.index_bits()};
  }

  void count_slice(const SliceLayout& layout, bool sends_palette) {
    ++statistics().slices;
    ++statistics().slices_of_weight_code[layout.weight_code.number()];
    ++statistics().slices_of_run_code[layout.run_code.divisor()];
    statistics().coded_indices += layout.n_weights;
    statistics().zero_run_slices += layout.run_code.on() ? 1 : 0;
    statistics().palettes += sends_palette ? 1 : 0;
    statistics().palette_entries += sends_palette ? palette_.size : 0;
  }

  std::int16_t weight_of(unsigned index) const {
    const unsigned code = index < palette_.size ? palette_.entries[index] : index - palette_.size + palette_.direct_offset;
    if (code > kMaxCodeValue) refuse(fmt::format("index {} stands for a weight beyond 255", index));
    return unfold(code);
  }

  void append_plain() {
    make_room(symbols_.indices.size());
    for (const std::uint16_t index : symbols_.indices) decoded_.weights.push_back(weight_of(index));
  }

  void append_with_runs(bool run_before) {
    std::uint64_t n_zeros = 0;
    for (const std::uint64_t run : symbols_.runs) n_zeros += run;
    make_room(symbols_.indices.size() + n_zeros);
    auto run = symbols_.runs.begin();
    const auto append_run = [&] { decoded_.weights.resize(decoded_.weights.size() + *run++); };
    if (run_before) append_run();
    for (const std::uint16_t index : symbols_.indices) {
      decoded_.weights.push_back(weight_of(index));
      append_run();
    }
  }

  void make_room(std::uint64_t n_weights) const {
    if (n_weights > max_weights_ - decoded_.weights.size()) refuse(fmt::format("holds more than {} weights", max_weights_));
  }

  unsigned take(unsigned width) {
    const auto field = static_cast<unsigned>(in_.take(width));
    if (in_.overrun()) refuse("ends without an end code");
    return field;
  }

  [[noreturn]] void refuse(std::string_view why) const { refuse_stream(in_.position_bits(), why); }
  StreamStatistics& statistics() noexcept { return decoded_.statistics; }

  BitReader in_;
  const std::size_t max_weights_;
  Decoded decoded_;
  Palette palette_;
  SliceSymbols symbols_;
  bool in_stream_ = false;  ///< a slice since the last end code
  bool zero_runs_ = false;  ///< mode of the slice before
};

}  // namespace

Decoded decode_with_statistics(std::span<const std::uint8_t> stream, std::size_t max_weights) {
  return StreamDecoder(stream, max_weights).run();
}

std::vector<std::int16_t> decode(std::span<const std::uint8_t> stream, std::size_t max_weights) {
  return decode_with_statistics(stream, max_weights).weights;
}

}  // namespace weightmill::mlw
