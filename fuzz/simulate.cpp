// A layer of the simulator from raw bytes: any rule, any numbers, shapes that fit and shapes that do not. What is
// accepted must run, and to the same codes on one thread and on two.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/simulate/simulate.h>

#include "bytes.h"

namespace {

using namespace weightmill;

using fuzz::Bytes;

/// Small numbers from `low` on; now and then one is of medium size or far beyond every limit. (What lies between runs,
/// but for seconds.)
std::vector<std::int64_t> take_axis(Bytes& bytes, std::size_t n_axes, std::int64_t low) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < n_axes; ++i) values.push_back(low + (bytes.take<std::uint8_t>() & 3));
  const auto spoil = bytes.take<std::uint8_t>();
  if (spoil > 250) {
    const auto any = bytes.take<std::int64_t>();
    values[spoil % n_axes] = (any & 1) != 0 ? any | (std::int64_t{1} << 32) : any % 64;
  }
  return values;
}

DType take_dtype(Bytes& bytes) {
  constexpr DType kTypes[]{DType::i8, DType::u8, DType::i16, DType::i32};
  return kTypes[bytes.take<std::uint8_t>() & 3];
}

std::size_t small_count(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent & 7);
  return count;
}

void take_numbers(Bytes& bytes, IntegerLayer& layer) {
  const auto n_channels = small_count({layer.weight_shape.back(), layer.weight_shape.rbegin()[1]});
  layer.weight = bytes.many<std::int16_t>(small_count(layer.weight_shape));
  if (bytes.flag()) {
    for (std::int16_t& w : layer.weight) w = static_cast<std::int16_t>(w >> 8);
  }
  if (bytes.flag()) layer.bias = bytes.many<std::int64_t>(n_channels);
  for (std::int64_t& b : layer.bias) b >>= bytes.take<std::uint8_t>() & 63;
  layer.rounding = static_cast<Rounding>(bytes.take<std::uint8_t>() % rounding_names().size());
  layer.bias_form = bytes.flag() ? BiasForm::folded : BiasForm::plain;
  layer.accumulator_32_bit = bytes.flag();
  if (bytes.flag()) layer.intrinsic_shift.assign(n_channels, bytes.take<std::uint8_t>());
  set_output(layer, take_dtype(bytes), bytes.take<std::int8_t>());
  if (bytes.flag()) {
    const auto input_scale = bytes.take<float>();
    const auto weight_scale = bytes.many<float>(bytes.flag() ? 1 : n_channels);
    return set_scales(layer, input_scale, weight_scale, bytes.take<float>());
  }
  layer.multiplier = bytes.many<std::int64_t>(n_channels);
  for (std::int64_t& m : layer.multiplier) m >>= bytes.take<std::uint8_t>() & 63;
  for (const std::uint8_t s : bytes.many<std::uint8_t>(n_channels)) layer.shift.push_back(s & 127);
  layer.gain = bytes.many<float>(n_channels);
  layer.wide_gain = bytes.many<double>(n_channels);
  layer.offset = bytes.many<float>(n_channels);
  layer.last = {bytes.take<float>(), bytes.take<float>()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  try {
    IntegerLayer layer;
    layer.name = "fuzzed";
    const std::size_t n_axes = bytes.flag() ? 3 : 2;
    layer.weight_shape = take_axis(bytes, n_axes + 3, 1);
    layer.geometry = {take_axis(bytes, n_axes, 1), take_axis(bytes, n_axes, 1), take_axis(bytes, n_axes, -1),
                      take_axis(bytes, n_axes, -1), bytes.flag()};
    layer.input_dtype = take_dtype(bytes);
    layer.input_zero_point = bytes.take<std::int8_t>();
    take_numbers(bytes, layer);
    Shape shape = take_axis(bytes, n_axes + 1, 1);
    shape.push_back((layer.weight_shape[n_axes] & 7) * (layer.weight_shape[n_axes + 1] & 7));
    const std::size_t channels = static_cast<std::size_t>(shape.back());
    const std::size_t pixels = small_count({shape.begin(), shape.end() - 1});
    const auto input = bytes.many<std::uint8_t>(pixels * channels * size_bits(layer.input_dtype) / 8);
    const DType input_dtype = layer.input_dtype;
    const Simulator simulator(std::move(layer));
    const ActivationView view{bytes.flag() ? take_dtype(bytes) : input_dtype, shape, input};
    if (simulator.run(view, 1).bytes != simulator.run(view, 2).bytes) std::abort();
  } catch (const Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  return 0;
}
