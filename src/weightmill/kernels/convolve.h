#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weightmill {

/// Where the inputs of a row of output pixels lie in a padded image [..., height, width, channels] of int16 codes.
/// A run is a stretch of neighbouring elements that meet as many weights: one tap's channels, or several taps' where
/// they are neighbours too.
struct TapRuns {
  std::size_t n_pixels = 0;             ///< output pixels
  std::size_t pixel_step = 0;           ///< elements between the inputs of one output pixel and of the next
  std::span<const std::size_t> offset;  ///< of each run, in elements from a pixel's first element
  std::size_t length = 0;               ///< elements of each run; even, at most kMaxRunLength
};

/// 256 products of an int16 and a value in [-255, 255] add up to less than 2^31.
inline constexpr std::size_t kMaxRunLength = 256;
/// Output channels that the packed weights hold side by side.
inline constexpr std::size_t kPanelChannels = 16;

/// Elements that the weights of one run take when packed.
constexpr std::size_t packed_run_size(std::size_t length, std::size_t n_channels) noexcept {
  return (n_channels + kPanelChannels - 1) / kPanelChannels * kPanelChannels * length;
}

/// Weights [n_runs, length, n_channels] in the order that accumulate_panels() reads:
/// [run, panel of 16 channels, pair of elements, channel, element of the pair]; missing channels are zero.
std::vector<std::int16_t> pack_panels(std::span<const std::int16_t> weights, std::size_t n_runs, std::size_t length,
                                      std::size_t n_channels);

/// Adds to acc[pixel * acc_step + channel] the products of the pixel's runs with the channel's weights, modulo 2^32.
/// `input` begins at the first pixel's first element and reaches to the last run's end; `panels` holds one
/// packed_run_size() for each run. The weights are in [-255, 255].
void accumulate_panels(const TapRuns& taps, std::span<const std::int16_t> input, std::span<const std::int16_t> panels,
                       std::size_t n_channels, std::size_t acc_step, std::span<std::int32_t> acc) noexcept;

/// The definition that every SIMD target is held to.
void accumulate_panels_scalar(const TapRuns& taps, std::span<const std::int16_t> input,
                              std::span<const std::int16_t> panels, std::size_t n_channels, std::size_t acc_step,
                              std::span<std::int32_t> acc) noexcept;

/// The same where each channel meets only itself: a run is one tap of n_channels = taps.length elements (of any parity
/// and number), `weights` is [n_runs, n_channels], and acc is [n_pixels, n_channels].
void accumulate_depthwise(const TapRuns& taps, std::span<const std::int16_t> input,
                          std::span<const std::int16_t> weights, std::span<std::int32_t> acc) noexcept;
void accumulate_depthwise_scalar(const TapRuns& taps, std::span<const std::int16_t> input,
                                 std::span<const std::int16_t> weights, std::span<std::int32_t> acc) noexcept;

}  // namespace weightmill
