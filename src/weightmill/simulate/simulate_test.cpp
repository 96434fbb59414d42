#include "simulate.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <weightmill/kernels/rounding_rules.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

struct Codes {
  DType dtype;
  Shape shape;
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> bytes;

  ActivationView view() const { return {dtype, shape, bytes}; }
};

template <class T>
void append(std::vector<std::uint8_t>& bytes, std::int64_t value) {
  const auto code = static_cast<T>(value);
  const auto* raw = reinterpret_cast<const std::uint8_t*>(&code);
  bytes.insert(bytes.end(), raw, raw + sizeof code);
}

Codes random_codes(DType dtype, const Shape& shape, Random& random) {
  Codes codes{dtype, shape, {}, {}};
  for (std::uint64_t i = n_elements(shape, "test"); i > 0; --i) {
    const std::int64_t low = dtype == DType::u8 ? 0 : dtype == DType::i8 ? -128 : -32768;
    const std::int64_t value = random.integer(low, low + (dtype == DType::i16 ? 65535 : 255));
    codes.values.push_back(value);
    if (dtype == DType::i8) append<std::int8_t>(codes.bytes, value);
    if (dtype == DType::u8) append<std::uint8_t>(codes.bytes, value);
    if (dtype == DType::i16) append<std::int16_t>(codes.bytes, value);
  }
  return codes;
}

std::int64_t code_at(const Simulation& s, std::size_t i) {
  const auto read = [&]<class T>(T code) {
    std::memcpy(&code, s.bytes.data() + i * sizeof code, sizeof code);
    return static_cast<std::int64_t>(code);
  };
  if (s.dtype == DType::i8) return read(std::int8_t{});
  if (s.dtype == DType::u8) return read(std::uint8_t{});
  return s.dtype == DType::i16 ? read(std::int16_t{}) : read(std::int32_t{});
}

/// The accumulators by the definition: one loop over everything, no padding buffer, no packing. The index of an input
/// element that meets tap k for output x is  x * stride - pad + k * dilation, transposed: it solves
/// x = i * stride - pad + k * dilation.
class Definition {
 public:
  Definition(const IntegerLayer& layer, const Codes& input) : layer_(layer), input_(input) {
    n_axes_ = layer.weight_shape.size() - 3;
  }

  /// Of output element [n, x..., c].
  Int128 accumulator(std::int64_t n, const std::vector<std::int64_t>& x, std::int64_t c) const {
    const Shape& w = layer_.weight_shape;
    const std::int64_t inputs = w[n_axes_], groups = w[n_axes_ + 1], outputs = w[n_axes_ + 2];
    Int128 acc = layer_.bias.empty() ? 0 : layer_.bias[static_cast<std::size_t>(c)];
    std::int64_t taps = 1;
    for (std::size_t a = 0; a < n_axes_; ++a) taps *= w[a];
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        const std::int64_t weight =
            layer_.weight[static_cast<std::size_t>(((t * inputs + i) * groups + c / outputs) * outputs + c % outputs)];
        const std::int64_t zero = layer_.bias_form == BiasForm::plain ? layer_.input_zero_point : 0;
        acc += (input_code(n, x, t, c / outputs * inputs + i) - zero) * weight;
      }
    }
    return acc;
  }

 private:
  std::int64_t input_code(std::int64_t n, const std::vector<std::int64_t>& x, std::int64_t t,
                          std::int64_t channel) const {
    std::int64_t place = 0, scale = 1;
    for (std::size_t a = n_axes_; a-- > 0;) {
      const std::int64_t k = t % layer_.weight_shape[a];
      t /= layer_.weight_shape[a];
      const auto index = input_index(a, x[a], k);
      if (!index) return layer_.input_zero_point;
      place += *index * scale;
      scale *= input_.shape[1 + a];
    }
    return input_.values[static_cast<std::size_t>((n * scale + place) * input_.shape.back() + channel)];
  }

  std::optional<std::int64_t> input_index(std::size_t a, std::int64_t x, std::int64_t k) const {
    const ConvGeometry& g = layer_.geometry;
    std::int64_t i = x * g.stride[a] - g.pad_before[a] + k * g.dilation[a];
    if (g.transposed) {
      i = x + g.pad_before[a] - k * g.dilation[a];
      if (i % g.stride[a] != 0) return std::nullopt;
      i /= g.stride[a];
    }
    if (i < 0 || i >= input_.shape[1 + a]) return std::nullopt;
    return i;
  }

  const IntegerLayer& layer_;
  const Codes& input_;
  std::size_t n_axes_;
};

/// A layer of random kind, extents and types that leaves at least one output for the input it comes with.
struct Sample {
  IntegerLayer layer;
  Codes input;
};

void random_axis(ConvGeometry& g, Random& random) {
  g.stride.push_back(random.integer(1, 3));
  g.dilation.push_back(random.integer(1, 2));
  g.pad_before.push_back(random.integer(-1, 2));
  g.pad_after.push_back(random.integer(-1, 2));
}

void random_gains(IntegerLayer& layer, std::size_t n_channels, Random& random) {
  for (std::size_t c = 0; c < n_channels; ++c) {
    layer.multiplier.push_back(random.integer(1LL << 30, (1LL << 31) - 1));
    layer.shift.push_back(static_cast<std::int32_t>(random.integer(34, 44)));
  }
}

Sample random_sample(std::uint64_t seed) {
  Random random(seed);
  Sample s;
  IntegerLayer& layer = s.layer;
  layer.name = "sample";
  layer.geometry.transposed = random.chance(0.3);
  Shape in{random.integer(1, 2)};
  for (std::int64_t axes = random.chance(0.3) ? 3 : 2; axes > 0; --axes) {
    random_axis(layer.geometry, random);
    layer.weight_shape.push_back(random.integer(1, 3));
    in.push_back(random.integer(7, 9));
  }
  const bool grouped = random.chance(0.5), depthwise = random.chance(0.5);
  layer.weight_shape.push_back(grouped && depthwise ? 1 : random.integer(1, 5));
  layer.weight_shape.push_back(grouped ? random.integer(2, 4) : 1);
  layer.weight_shape.push_back(random.integer(1, grouped ? 3 : 20));
  in.push_back(layer.weight_shape[layer.weight_shape.size() - 3] * layer.weight_shape[layer.weight_shape.size() - 2]);
  const auto n_channels =
      static_cast<std::size_t>(layer.weight_shape[layer.weight_shape.size() - 2] * layer.weight_shape.back());
  layer.weight.resize(n_elements(layer.weight_shape, "test"));
  for (std::int16_t& w : layer.weight) w = static_cast<std::int16_t>(random.integer(-255, 255));
  for (std::size_t c = 0; c < n_channels; ++c) layer.bias.push_back(random.integer(-30000, 30000));
  layer.input_dtype = std::array{DType::i8, DType::u8, DType::i16}[static_cast<std::size_t>(random.integer(0, 2))];
  layer.input_zero_point = random.integer(0, 100);
  layer.bias_form = random.chance(0.5) ? BiasForm::plain : BiasForm::folded;
  random_gains(layer, n_channels, random);
  layer.output = {.zero_point = 3};
  s.input = random_codes(layer.input_dtype, in, random);
  return s;
}

/// Output position number i of a shape [N, x..., C], without N and C.
std::vector<std::int64_t> position(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> x(shape.size() - 2);
  i /= shape.back();
  for (std::size_t a = x.size(); a-- > 0; i /= shape[1 + a]) x[a] = i % shape[1 + a];
  return x;
}

/// Code of an accumulator, by the scalar primitives.
std::int32_t code_of(const IntegerLayer& layer, Int128 acc, std::size_t c) {
  const auto narrow = static_cast<std::int32_t>(acc);
  const std::int64_t value =
      requant_gemmlowp_double(narrow, layer.multiplier[c], layer.shift[c]) + layer.output.zero_point;
  return clamp_to(value, layer.output.low, layer.output.high);
}

TEST(Simulate, IsTheDefinitionOnRandomLayers) {
  int n_run = 0;
  for (const std::uint64_t seed : testkit::seeds(400)) {
    SCOPED_TRACE(seed);
    const Sample s = random_sample(seed);
    Simulation got;
    try {
      got = simulate(s.layer, s.input.view(), 1);
    } catch (const Error&) {
      continue;  // the padding crops everything away: its own test is below
    }
    ++n_run;
    const Definition definition(s.layer, s.input);
    const std::int64_t per_image = static_cast<std::int64_t>(n_elements(got.shape, "test")) / got.shape[0];
    for (std::int64_t i = 0; i < per_image * got.shape[0]; ++i) {
      const std::int64_t c = i % got.shape.back();
      const Int128 acc = definition.accumulator(i / per_image, position(got.shape, i % per_image), c);
      ASSERT_EQ(code_at(got, static_cast<std::size_t>(i)), code_of(s.layer, acc, static_cast<std::size_t>(c)))
          << "element " << i;
    }
  }
  EXPECT_GT(n_run, 300);
}

TEST(Simulate, IsTheSameForAnyNumberOfThreads) {
  for (const std::uint64_t seed : testkit::seeds(40)) {
    const Sample s = random_sample(seed);
    try {
      const Simulation one = simulate(s.layer, s.input.view(), 1);
      const Simulation three = simulate(s.layer, s.input.view(), 3);
      EXPECT_EQ(one.bytes, three.bytes) << seed;
      EXPECT_EQ(one.counts, three.counts) << seed;
    } catch (const Error&) {
    }
  }
}

IntegerLayer dense_layer(std::int64_t inputs, std::int64_t outputs, std::int16_t weight) {
  IntegerLayer layer;
  layer.name = "dense";
  layer.weight_shape = {1, 1, inputs, 1, outputs};
  layer.weight.assign(static_cast<std::size_t>(inputs * outputs), weight);
  layer.geometry = {{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  layer.rounding = Rounding::half_away;
  layer.multiplier.assign(static_cast<std::size_t>(outputs), std::int64_t{1} << 30);
  layer.shift.assign(static_cast<std::size_t>(outputs), 30);
  return layer;
}

TEST(Simulate, DenseLayersKeepAllAxesButTheLast) {
  Random random(5);
  const IntegerLayer layer = dense_layer(6, 4, 1);
  for (const Shape& shape : {Shape{6}, Shape{3, 6}, Shape{2, 3, 6}, Shape{2, 3, 1, 6}, Shape{1, 2, 3, 1, 6}}) {
    const Simulation got = simulate(layer, random_codes(DType::i8, shape, random).view(), 1);
    Shape want = shape;
    want.back() = 4;
    EXPECT_EQ(got.shape, want);
  }
}

TEST(Simulate, WrapsSaturatesOrKeepsWideAccumulators) {
  IntegerLayer layer = dense_layer(70000, 1, 255);
  layer.output_dtype = DType::i32;
  layer.output = {0, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                  std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  layer.shift = {60};
  const Codes input{DType::i8, {1, 70000}, {}, std::vector<std::uint8_t>(70000, 0x80)};
  // The sum is -128 * 255 * 70000 = -2.13 * 2^30, below -2^31.
  EXPECT_EQ(code_at(simulate(layer, input.view(), 1), 0), 2) << "1.87: wrapped to positive";
  EXPECT_EQ(simulate(layer, input.view(), 1).counts.wide, 1u);
  layer.accumulator_32_bit = false;
  EXPECT_EQ(code_at(simulate(layer, input.view(), 1), 0), -2) << "-2.13 as it is";
  layer.rounding = Rounding::folded;
  layer.shift = {30};
  EXPECT_EQ(code_at(simulate(layer, input.view(), 1), 0), -2) << "-2^31 over 2^30";
}

TEST(Simulate, SplitsInt16ByTheIntrinsicShift) {
  IntegerLayer layer = dense_layer(1, 2, 3);
  layer.rounding = Rounding::folded;
  layer.multiplier.clear();
  layer.shift = {0, 0};
  layer.input_dtype = DType::i16;
  layer.bias_form = BiasForm::folded;
  layer.intrinsic_shift = {1, 8};
  layer.output_dtype = DType::i32;
  layer.output = {0, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                  std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  for (const int q : {-32768, -1001, -1, 0, 255, 1000, 32767}) {
    Codes input{DType::i16, {1, 1}, {}, {}};
    append<std::int16_t>(input.bytes, q);
    const Simulation got = simulate(layer, input.view(), 1);
    const int a = q >> 1;
    EXPECT_EQ(code_at(got, 0), a * 3) << q;
    EXPECT_EQ(code_at(got, 1), (a >> 7) * 3 + shift_half_even((a & 127) * 3, 7)) << q;
  }
}

TEST(SimulateChain, RunsLayersOneAfterTheOther) {
  Random random(8);
  const Codes input = random_codes(DType::i8, {2, 6}, random);
  const std::vector<IntegerLayer> layers{dense_layer(6, 4, 1), dense_layer(4, 3, -1)};
  const ChainSimulation chain = simulate_chain(layers, input.view(), 1);
  const Simulation first = simulate(layers[0], input.view(), 1);
  EXPECT_EQ(chain.output.bytes, simulate(layers[1], first.view(), 1).bytes);
  EXPECT_EQ(chain.counts.size(), 2u);
  EXPECT_THROW(simulate_chain({}, input.view(), 1), Error);
}

/// What a refusal test breaks in an otherwise good layer.
using Break = void (*)(IntegerLayer&);

TEST(Simulate, RefusesLayersThatContradictThemselves) {
  const std::vector<Break> breaks{
      [](IntegerLayer& l) {
        l.weight_shape = {1, 1, 6, 4};
      },
      [](IntegerLayer& l) {
        l.weight_shape = {1, 1, 0, 1, 4};
      },
      [](IntegerLayer& l) { l.weight.pop_back(); },
      [](IntegerLayer& l) { l.weight[3] = 256; },
      [](IntegerLayer& l) {
        l.bias = {1, 2};
      },
      [](IntegerLayer& l) { l.bias = std::vector<std::int64_t>(4, std::int64_t{1} << 50); },
      [](IntegerLayer& l) { l.bias = std::vector<std::int64_t>(4, std::numeric_limits<std::int64_t>::min()); },
      [](IntegerLayer& l) { l.geometry.stride = {1}; },
      [](IntegerLayer& l) {
        l.geometry.stride = {0, 1};
      },
      [](IntegerLayer& l) {
        l.geometry.dilation = {1, -1};
      },
      [](IntegerLayer& l) {
        l.geometry.pad_after = {0, std::numeric_limits<std::int64_t>::max()};
      },
      [](IntegerLayer& l) { l.input_zero_point = 128; },
      [](IntegerLayer& l) { l.input_dtype = DType::f32; },
      [](IntegerLayer& l) { l.output_dtype = DType::i64; },
      [](IntegerLayer& l) { l.output.high = 128; },
      [](IntegerLayer& l) { l.output.low = 20, l.output.high = 10; },
      [](IntegerLayer& l) { l.shift[1] = 63; },
      [](IntegerLayer& l) { l.shift[1] = -1; },
      [](IntegerLayer& l) { l.shift.clear(); },
      [](IntegerLayer& l) { l.multiplier[0] = std::int64_t{1} << 31; },
      [](IntegerLayer& l) { l.rounding = Rounding::int16x8, l.shift[0] = 16; },
      [](IntegerLayer& l) { l.rounding = Rounding::float_gain; },
      [](IntegerLayer& l) {
        l.rounding = Rounding::double_gain, l.wide_gain = {1, 1, 1, -1};
      },
      [](IntegerLayer& l) {
        l.intrinsic_shift = {1, 1, 1, 1};
      },
  };
  EXPECT_NO_THROW(Simulator(dense_layer(6, 4, 1)));
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    IntegerLayer layer = dense_layer(6, 4, 1);
    breaks[i](layer);
    EXPECT_THROW(Simulator{layer}, Error) << "break " << i;
  }
}

TEST(Simulate, RefusesInputsThatDoNotFit) {
  Random random(6);
  const Simulator simulator(dense_layer(6, 4, 1));
  const auto run = [&](const Codes& codes) { return simulator.run(codes.view(), 1); };
  EXPECT_THROW(run(random_codes(DType::u8, {1, 6}, random)), Error);
  EXPECT_THROW(run(random_codes(DType::i8, {1, 5}, random)), Error);
  EXPECT_THROW(run({DType::i8, {}, {}, {}}), Error);
  EXPECT_THROW(run({DType::i8, {0, 6}, {}, {}}), Error);
  EXPECT_THROW(run({DType::i8, {2, 6}, {}, std::vector<std::uint8_t>(6)}), Error);
  IntegerLayer wide = dense_layer(6, 4, 1);
  wide.geometry.pad_before = {1 << 20, 1 << 20};
  EXPECT_THROW(simulate(wide, random_codes(DType::i8, {1, 1, 1, 6}, random).view(), 1), Error) << "2^40 elements";
  EXPECT_THROW(simulate(wide, random_codes(DType::i8, {1, 6}, random).view(), 1), Error) << "no spatial axes";
  wide.geometry.pad_before = {-1, 0};
  EXPECT_THROW(simulate(wide, random_codes(DType::i8, {1, 1, 1, 6}, random).view(), 1), Error) << "nothing left";
}

}  // namespace
}  // namespace weightmill
