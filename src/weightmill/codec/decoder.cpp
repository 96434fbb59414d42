#include <algorithm>
#include <array>
#include <numeric>

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
  StreamDecoder(std::span<const std::uint8_t> stream, std::size_t max_weights)
      : in_(stream), max_weights_(std::min(max_weights, kDefaultMaxWeights)) {}

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
    statistics().passes += slice_.take_body(in_, layout);
    count_slice(layout, header.sends_palette);
    append_weights(header.sends_palette);
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
    for (unsigned i = 0; i < palette_.size; ++i) {
      palette_.entries[i] = static_cast<std::uint16_t>(take(palette_.entry_bits));
    }
    fill_weight_table();
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
            .index_bits = palette_.index_bits(),
            .max_run = static_cast<std::uint32_t>(max_weights_ - decoded_.weights.size())};
  }

  void count_slice(const SliceLayout& layout, bool sends_palette) {
    ++statistics().slices;
    ++statistics().slices_of_weight_code[layout.weight_code.number()];
    ++statistics().slices_of_run_code[layout.run_code.divisor()];
    statistics().coded_indices += layout.n_weights;
    statistics().zero_run_slices += layout.run_code.on() ? 1 : 0;
    statistics().palettes += sends_palette ? 1 : 0;
    statistics().palette_entries += sends_palette ? palette_.size : 0;
    statistics().unproven_palettes += sends_palette && is_unproven() ? 1 : 0;
  }

  /// Whether the direct offset skips "plus zero" alone, or a code value that the palette holds. The second entry of a
  /// palette for a single value is 0 and means nothing.
  bool is_unproven() const noexcept {
    const unsigned size = palette_.size == 2 && palette_.entries[1] == 0 ? 1 : palette_.size;
    const auto is_skipped = [&](std::uint16_t entry) { return entry < palette_.direct_offset; };
    return palette_.direct_offset == 1 ||
           std::any_of(palette_.entries.begin(), palette_.entries.begin() + size, is_skipped);
  }

  /// Tabulates what each index stands for.
  void fill_weight_table() noexcept {
    const unsigned size = palette_.size;
    for (unsigned i = 0; i < size; ++i) weight_of_[i] = unfold(palette_.entries[i]);
    for (unsigned i = size; i <= largest_legal_index(); ++i) weight_of_[i] = unfold(i - size + palette_.direct_offset);
  }

  unsigned largest_legal_index() const noexcept {
    return std::min(kMaxCodeValue, kMaxCodeValue + palette_.size - palette_.direct_offset);
  }

  void append_weights(bool run_before) {
    if (slice_.largest_index() > largest_legal_index()) {
      refuse(fmt::format("index {} stands for a weight beyond 255", slice_.largest_index()));
    }
    const auto indices = slice_.indices();
    const auto runs = slice_.runs();
    std::int16_t* out = extend(std::accumulate(runs.begin(), runs.end(), std::uint64_t{indices.size()}));
    if (runs.empty()) {
      for (const std::uint16_t index : indices) *out++ = weight_of_[index];
      return;
    }
    const std::uint32_t* run = runs.data();
    if (run_before) out += *run++;
    for (const std::uint16_t index : indices) {
      *out++ = weight_of_[index];
      out += *run++;
    }
  }

  /// Room for `n_weights` more weights, all of them zero.
  std::int16_t* extend(std::uint64_t n_weights) {
    const std::size_t n_before = decoded_.weights.size();
    if (n_weights > max_weights_ - n_before) refuse(fmt::format("holds more than {} weights", max_weights_));
    decoded_.weights.resize(n_before + n_weights);
    return decoded_.weights.data() + n_before;
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
  SliceDecoder slice_;
  std::array<std::int16_t, kCodeValues> weight_of_{};  ///< by index; as far as the palette goes
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
