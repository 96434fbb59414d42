#include "pack.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>
#include "accelerator.h"
#include "brick_order.h"
#include "layer_source.h"
#include "model_builder.h"
#include "scale_bias.h"

namespace weightmill {
namespace {

using pack_testing::ModelBuilder;
using testing::HasSubstr;

bool is_fast(StreamFormat format) { return format == StreamFormat::fast || format == StreamFormat::fast_sparse; }

/// Puts the decoded weights of a layer back to their places and counts how often each was met; padding must be zero.
std::vector<std::int16_t> decode_back(const PackedLayer& layer, const std::vector<std::uint8_t>& bytes) {
  const auto [n_o, height, width, n_i] = layer.ohwi;
  const std::size_t per_channel =
      static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(n_i);
  std::vector<std::int16_t> weights(static_cast<std::size_t>(n_o) * per_channel);
  std::vector<int> met(weights.size());
  for (const DepthSlice& slice : layer.slices) {
    for (const PackedStream& stream : slice.streams) {
      const auto coded = std::span(bytes).subspan(stream.offset, stream.size_bytes);
      const auto ordered = is_fast(layer.format) ? mlw::decode_fast(coded, stream.n_ordered) : mlw::decode(coded);
      EXPECT_EQ(ordered.size(), stream.n_ordered);
      const int n = (slice.first_channel + slice.n_channels - stream.first_channel - 1) / stream.channel_step + 1;
      const std::array<int, 4> ohwi{n, height, width, n_i};
      const auto indices =
          is_fast(layer.format) ? fast_indices(ohwi, stream.geometry) : brick_indices(ohwi, stream.geometry);
      for (std::size_t k = 0; k < ordered.size(); ++k) {
        if (indices[k] < 0) {
          EXPECT_EQ(ordered[k], 0);
          continue;
        }
        const auto index = static_cast<std::size_t>(indices[k]);
        const std::size_t o = static_cast<std::size_t>(stream.first_channel) +
                              index / per_channel * static_cast<std::size_t>(stream.channel_step);
        weights[o * per_channel + index % per_channel] = ordered[k];
        ++met[o * per_channel + index % per_channel];
      }
    }
  }
  EXPECT_TRUE(std::ranges::all_of(met, [](int count) { return count == 1; }));
  return weights;
}

/// The model's weights in OHWI order as the NPU runs them.
std::vector<std::int16_t> source_weights(const LayerSource& source) {
  const LayerWeights weights = weights_of(source);
  const WeightVolume& v = weights.volume;
  std::vector<std::int16_t> result;
  std::visit(
      [&](const auto& values) {
        for (int o = 0; o < v.ohwi[0]; ++o) {
          for (int y = 0; y < v.ohwi[1]; ++y) {
            for (int x = 0; x < v.ohwi[2]; ++x) {
              for (int i = 0; i < v.ohwi[3]; ++i) {
                const auto at = v.origin + o * v.stride[0] + y * v.stride[1] + x * v.stride[2] + i * v.stride[3];
                result.push_back(static_cast<std::int16_t>(values[static_cast<std::size_t>(at)] - v.zero_point));
              }
            }
          }
        }
      },
      v.values);
  return result;
}

void expect_records(const PackedLayer& layer) {
  std::set<int> met;
  for (const DepthSlice& slice : layer.slices) {
    for (const PackedScales& at : slice.scales) {
      for (int k = 0; k < at.n_records; ++k) {
        const int channel = at.first_channel + k * at.channel_step;
        const std::span<const std::uint8_t, kRecordBytes> bytes(
            layer.scales.data() + at.offset + static_cast<std::size_t>(k) * kRecordBytes, kRecordBytes);
        EXPECT_EQ(unpack_record(bytes, layer.record_format), layer.channels[static_cast<std::size_t>(channel)]);
        met.insert(channel);
      }
    }
  }
  EXPECT_EQ(met.size(), static_cast<std::size_t>(layer.ohwi[0]));
}

void expect_packed_right(const Model& model, const Packed& packed) {
  const auto found = find_layers(model, packed.scaling);
  ASSERT_EQ(found.size(), packed.layers.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    const PackedLayer& layer = packed.layers[k];
    const auto& bytes =
        layer.same_as < 0 ? layer.weights : packed.layers[static_cast<std::size_t>(layer.same_as)].weights;
    EXPECT_EQ(decode_back(layer, bytes), source_weights(std::get<LayerSource>(found[k])));
    expect_records(layer);
  }
}

/// One of each operator, with awkward extents.
ModelBuilder mixed_model() {
  ModelBuilder b;
  b.conv(19, 3, 3, 5, 1);
  b.conv(70, 1, 1, 67, 2).conv.stride_h = 2;
  b.conv(9, 9, 10, 3, 3, DType::i16).conv.dilation_w = 2;
  b.conv(8, 2, 2, 8, 4, DType::i8, DType::i4);
  b.conv(12, 3, 1, 40, 5, DType::u8, DType::u8);
  b.input(1).quantization.zero_point = {131};
  const int x = b.tensor("x", DType::i8, {1, 8, 8, 33});
  const int w = b.fill_randomly(b.tensor("dw", DType::i8, {1, 3, 3, 33}, {0.1f}, {0}, 3), 6);
  b.node(OpKind::depthwise_conv_2d, "DEPTHWISE_CONV_2D", {x, w, b.bias(33)}, {b.tensor("y", DType::i8, {1, 8, 8, 33})});
  const int t = b.fill_randomly(b.tensor("tw", DType::i8, {7, 3, 2, 10}), 7);
  b.node(OpKind::transpose_conv_2d, "TRANSPOSE_CONV", {-1, t, b.tensor("x", DType::i8, {1, 4, 4, 10})},
         {b.tensor("y", DType::i8, {1, 8, 8, 7})});
  const int f = b.fill_randomly(b.tensor("fw", DType::i8, {21, 50}), 8);
  b.node(OpKind::fully_connected, "FULLY_CONNECTED", {b.tensor("x", DType::i8, {1, 50}), f, -1},
         {b.tensor("y", DType::i8, {1, 21})});
  return b;
}

TEST(Pack, EveryWeightAndRecordComesBackOnEveryAccelerator) {
  const ModelBuilder builder = mixed_model();
  for (const Accelerator& npu : accelerators()) {
    for (const int step : {0, 8, 5}) {
      SCOPED_TRACE(npu.name + " " + std::to_string(step));
      PackOptions options;
      options.ofm_depth_step = step;
      options.effort = step == 0 ? mlw::Effort::reference : mlw::Effort::regor;
      options.scaling = npu.family == NpuFamily::u85 ? ScalingRule::regor : ScalingRule::vela5;
      const Packed packed = pack(builder.model(), npu, options);
      EXPECT_TRUE(packed.not_packed.empty());
      expect_packed_right(builder.model(), packed);
    }
  }
}

TEST(Pack, ThreadsChangeNothing) {
  const ModelBuilder builder = mixed_model();
  const Accelerator& npu = find_accelerator("ethos-u85-1024");
  PackOptions options;
  const Packed one = pack(builder.model(), npu, options);
  options.jobs = 4;
  const Packed four = pack(builder.model(), npu, options);
  ASSERT_EQ(one.layers.size(), four.layers.size());
  for (std::size_t k = 0; k < one.layers.size(); ++k) {
    EXPECT_EQ(one.layers[k].weights, four.layers[k].weights);
    EXPECT_EQ(one.layers[k].scales, four.layers[k].scales);
    EXPECT_EQ(one.layers[k].format, four.layers[k].format);
  }
}

TEST(Pack, EqualWeightsArePackedOnce) {
  ModelBuilder b;
  b.conv(16, 3, 3, 8, 5);
  b.conv(16, 3, 3, 8, 5);                      // the same
  b.conv(16, 3, 3, 8, 6);                      // other weights
  b.conv(16, 3, 3, 8, 5, DType::i16);          // another order
  b.conv(16, 3, 3, 8, 5).conv.dilation_h = 2;  // the kernel still fits: but the cut may not
  const Packed packed = pack(b.model(), find_accelerator("ethos-u55-128"), {});
  ASSERT_EQ(packed.layers.size(), 5u);
  EXPECT_EQ(packed.layers[1].same_as, 0);
  EXPECT_TRUE(packed.layers[1].weights.empty());
  EXPECT_EQ(packed.layers[1].weights_size_bytes, packed.layers[0].weights.size());
  for (const std::size_t k : {0u, 2u, 3u, 4u}) EXPECT_EQ(packed.layers[k].same_as, -1);
  expect_packed_right(b.model(), packed);
}

/// A convolution whose weights have at most two non-zeros in each group of four input channels.
ModelBuilder sparse_model() {
  ModelBuilder b;
  b.conv(32, 1, 1, 128, 9);
  std::vector<std::uint8_t> bytes(32 * 128);
  testkit::Random random(3);
  for (std::size_t k = 0; k < bytes.size(); ++k)
    bytes[k] = k % 4 < 2 ? static_cast<std::uint8_t>(random.integer(-127, 127)) : 0;
  b.fill(b.graph().nodes.back().inputs[1], std::move(bytes));
  return b;
}

TEST(Pack, RefusesFormatsThatTheTargetLacks) {
  ModelBuilder builder;
  for (const FormatChoice choice : {FormatChoice::fast, FormatChoice::sparse}) {
    PackOptions options;
    options.format = choice;
    EXPECT_THROW(pack(builder.model(), find_accelerator("ethos-u65-512"), options), Error);
  }
}

TEST(Pack, U85TakesTheFormatThatIsAskedFor) {
  const ModelBuilder sparse = sparse_model();
  const Accelerator& npu = find_accelerator("ethos-u85-512");
  const auto packed_as = [&](const ModelBuilder& builder, FormatChoice choice) {
    PackOptions options;
    options.format = choice;
    Packed packed = pack(builder.model(), npu, options);
    expect_packed_right(builder.model(), packed);
    return std::pair{packed.layers.front().format, packed.layers.front().weights_size_bytes};
  };
  EXPECT_EQ(packed_as(sparse, FormatChoice::standard).first, StreamFormat::standard);
  EXPECT_EQ(packed_as(sparse, FormatChoice::sparse).first, StreamFormat::sparse);
  EXPECT_EQ(packed_as(sparse, FormatChoice::fast).first, StreamFormat::fast);
  ModelBuilder dense;
  dense.conv(32, 1, 1, 128, 9);
  EXPECT_EQ(packed_as(dense, FormatChoice::sparse).first, StreamFormat::standard);
  std::uint64_t smallest = ~std::uint64_t{0};
  for (const FormatChoice choice : {FormatChoice::standard, FormatChoice::sparse, FormatChoice::fast}) {
    smallest = std::min(smallest, packed_as(sparse, choice).second);
  }
  EXPECT_LE(packed_as(sparse, FormatChoice::smallest).second, smallest);
}

TEST(Pack, OneFastStreamIsSmallerThanFourThatHardlyCompress) {
  ModelBuilder b;
  b.conv(64, 1, 1, 64, 9);
  const Packed packed = pack(b.model(), find_accelerator("ethos-u85-2048"), {});
  EXPECT_EQ(packed.layers.front().format, StreamFormat::fast);
  expect_packed_right(b.model(), packed);
}

TEST(Pack, ScalesThatFitNoRecordAreListedWithTheirChannel) {
  ModelBuilder b;
  b.conv(4, 1, 1, 4);
  const int bias = b.fill(b.tensor("wide", DType::i64, {4}), std::vector<std::uint8_t>(32, 0x7f));
  b.graph().nodes.back().inputs[2] = bias;
  b.conv(4, 1, 1, 4, 2);
  const Packed packed = pack(b.model(), find_accelerator("ethos-u55-64"), {});
  ASSERT_EQ(packed.not_packed.size(), 1u);
  EXPECT_THAT(packed.not_packed.front().reason, HasSubstr("channel 0: bias"));
  EXPECT_EQ(packed.not_packed.front().tensor, "weights");
  EXPECT_EQ(packed.layers.size(), 1u);
}

TEST(Pack, MeasuresSlicesAgainstAFullOne) {
  ModelBuilder b;
  b.conv(40, 3, 3, 16, 3);
  PackOptions options;
  options.ofm_depth_step = 16;
  const PackedLayer layer = pack(b.model(), find_accelerator("ethos-u55-128"), options).layers.front();
  ASSERT_EQ(layer.slices.size(), 3u);
  std::uint64_t longest = 0;
  for (const DepthSlice& slice : layer.slices) {
    EXPECT_EQ(slice.compression_scale, static_cast<double>(slice.streams[0].size_bytes) / (3 * 3 * 16 * 16));
    longest = std::max(longest, slice.streams[0].size_bytes);
  }
  EXPECT_EQ(layer.double_buffer_size_bytes, 2 * longest);
  EXPECT_EQ(layer.worst_compression_scale, static_cast<double>(longest) / (3 * 3 * 16 * 16));
  EXPECT_EQ(layer.weights_size_bytes, layer.weights.size());
  EXPECT_EQ(layer.n_source_weights, 40u * 9 * 16);
}

TEST(Pack, ReportsProgress) {
  const ModelBuilder builder = mixed_model();
  std::size_t last = 0, total = 0;
  PackOptions options;
  options.progress = [&](std::string_view, std::size_t done, std::size_t n) { last = done, total = n; };
  pack(builder.model(), find_accelerator("ethos-u55-32"), options);
  EXPECT_EQ(last, 8u);
  EXPECT_EQ(total, 8u);
}

TEST(Pack, RefusesOptionsThatMakeNoSense) {
  ModelBuilder b;
  b.conv(4, 1, 1, 4);
  const auto refuses = [&](const char* npu, int block_depth, int step) {
    PackOptions options;
    options.ofm_block_depth = block_depth;
    options.ofm_depth_step = step;
    EXPECT_THROW(pack(b.model(), find_accelerator(npu), options), Error);
  };
  refuses("ethos-u55-128", -1, 0);
  refuses("ethos-u55-128", 129, 0);
  refuses("ethos-u65-512", 1, 0);
  refuses("ethos-u85-128", 1025, 0);
  refuses("ethos-u55-128", 0, -1);
}

}  // namespace
}  // namespace weightmill
