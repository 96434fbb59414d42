#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The weight codecs of Arm Ethos-U: spans in, bytes out.  [docs/weight-stream.md]
namespace weightmill::mlw {

/// How hard encode() tries, and whose bytes it makes. Every stream decodes to the same weights.
enum class Effort : std::uint8_t {
  reference,  ///< byte-identical to `ethosu.mlw_codec.encode` of Vela 5.2.0
  regor,      ///< byte-identical to Vela 5.2.0's default compiler core
  fast,       ///< small: most of what `best` saves, in a fraction of its time
  best,       ///< the smallest that a search at working speed finds
  max,        ///< several searches; as near to the smallest stream there is as time allows
};

/// Which of the format's possibilities `fast`, `best` and `max` use.
enum class Forms : std::uint8_t {
  proven,  ///< those that the encoders of Vela use too
  all,     ///< also direct offsets past code values that are in the palette, or past an unused "plus zero"
};

/// The words for them in options, manifests and Python.
template <class Value>
struct Named {
  std::string_view name;
  Value value;
};
inline constexpr std::array<Named<Effort>, 5> kEffortNames{{{"reference", Effort::reference},
                                                            {"regor", Effort::regor},
                                                            {"fast", Effort::fast},
                                                            {"best", Effort::best},
                                                            {"max", Effort::max}}};
inline constexpr std::array<Named<Forms>, 2> kFormsNames{{{"proven", Forms::proven}, {"all", Forms::all}}};

constexpr std::string_view name_of(Effort effort) noexcept {
  return kEffortNames[static_cast<std::size_t>(effort)].name;
}
constexpr std::string_view name_of(Forms forms) noexcept { return kFormsNames[static_cast<std::size_t>(forms)].name; }

/// The most weights that a stream may hold, and the longest result decode() gives unless told otherwise.
inline constexpr std::size_t kDefaultMaxWeights = (std::size_t{1} << 31) - 1;

/// Compresses weights for the NPU's weight decoder.
///
/// `weights`: N values in the order in which the NPU consumes them, each in [-255, 255]; 0 <= N <= kDefaultMaxWeights.
/// Returns a stream whose size is a multiple of 16 bytes and which decode() turns back into `weights` exactly; empty
/// for N = 0. Same input, same bytes, on every machine.
/// Throws: bad_request if a weight is out of range (names its index) or N is too large.
/// Source: docs/weight-stream.md §10-15.
std::vector<std::uint8_t> encode(std::span<const std::int16_t> weights, Effort effort, Forms forms = Forms::proven);

/// Decompresses a stream, or several that follow each other, with their end codes and filling bytes.
///
/// Trusts nothing: work and memory are bounded by the size of `stream` (at most 64 weights per byte) and by
/// `max_weights`.
/// Throws: bad_stream if `stream` is empty, ends too early, breaks a rule of the format or holds more than
/// `max_weights` weights (names the bit where that shows).
/// Source: docs/weight-stream.md §1-8.
std::vector<std::int16_t> decode(std::span<const std::uint8_t> stream, std::size_t max_weights = kDefaultMaxWeights);

/// What a stream is made of.
struct StreamStatistics {
  std::uint64_t weights = 0;        ///< decoded
  std::uint64_t coded_indices = 0;  ///< weights that were sent one by one, not in zero runs
  std::uint64_t streams = 0;        ///< end codes, without those that are only filling
  std::uint64_t slices = 0;
  std::uint64_t palettes = 0;  ///< slices that define a palette, with or without entries
  std::uint64_t palette_entries = 0;
  std::uint64_t unproven_palettes = 0;  ///< with a direct offset that Forms::proven rules out
  std::uint64_t zero_run_slices = 0;    ///< slices with zero-run mode on
  /// Passes of the decoding loop over the slices' chunks. The NPU takes at most 12 weight positions and 12 run bits in
  /// one, so this is its work where it does not wait for memory. The last pass of a slice, which only reads what the
  /// one before left, counts.
  std::uint64_t passes = 0;
  std::uint64_t header_bits = 0;                          ///< of slices, palettes included
  std::uint64_t end_bits = 0;                             ///< end codes, alignment and filling bytes
  std::array<std::uint64_t, 13> slices_of_weight_code{};  ///< plain 0..5, truncated 0..5, uncompressed
  std::array<std::uint64_t, 5> slices_of_run_code{};      ///< divisors 0..3, off
};

struct Decoded {
  std::vector<std::int16_t> weights;
  StreamStatistics statistics;
};

/// decode(), and what it met on its way. Throws: as decode().
Decoded decode_with_statistics(std::span<const std::uint8_t> stream, std::size_t max_weights = kDefaultMaxWeights);

/// Compresses weights for the fast weight decoder of Ethos-U85: 2 or 4 bits a weight by a table of up to 16 values,
/// else 8 bits as they are.
///
/// `weights`: N values in [-255, 255]; N may be 0. `force_raw`: 8 bits in any case, as the sparse mode wants it.
/// Returns a stream whose size is a multiple of 32 bytes; nothing where 8 bits cannot hold the weights: max - min >
/// 255, or with `force_raw` a weight outside [-128, 127].
/// Throws: bad_request if a weight is out of range (names its index).
/// Source: docs/weight-stream.md §9.
std::optional<std::vector<std::uint8_t>> encode_fast(std::span<const std::int16_t> weights, bool force_raw = false);

/// Decompresses the first `n_weights` weights of a fast stream; the format does not say how many there are.
/// Throws: bad_stream if `stream` is too short or its header contradicts itself (names the field).
std::vector<std::int16_t> decode_fast(std::span<const std::uint8_t> stream, std::size_t n_weights);

}  // namespace weightmill::mlw
