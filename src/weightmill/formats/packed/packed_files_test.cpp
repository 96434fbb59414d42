#include "../packed_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "../manifest.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

/// One layer that uses every field, and one that shares its streams.
Packed packed_of_everything() {
  Packed packed;
  packed.accelerator = {"ethos-u85-256", NpuFamily::u85,   256, 1, {{1, 2, 16}, {2, 2, 8}},
                        {2, 2, 8},       {128, 128, 1024}, 16,  8};
  packed.effort = "regor";
  packed.scaling = ScalingRule::regor;
  PackedLayer layer;
  layer.subgraph = 1, layer.node = 7, layer.kind = OpKind::transpose_conv_2d, layer.op_name = "TRANSPOSE_CONV",
  layer.role = "weights";
  layer.weights_tensor = 3, layer.bias_tensor = -1, layer.ifm_tensor = 2, layer.ofm_tensor = 5;
  layer.weights_name = "w \"1\"", layer.ifm_name = "x", layer.ofm_name = "y";
  layer.ohwi = {2, 3, 4, 5}, layer.weights_dtype = DType::u8, layer.ifm_dtype = DType::i16, layer.zero_point = {3, -4},
  layer.flipped = true;
  layer.stride_y = 1, layer.stride_x = 2, layer.dilation_y = 2, layer.dilation_x = 1;
  layer.block_type = NpuBlockType::convolution, layer.traversal = Traversal::part_kernel_first,
  layer.format = StreamFormat::fast_sparse;
  layer.ofm_block_depth = 32, layer.ifm_block_depth = 16, layer.ofm_ublock = {2, 2, 8}, layer.ofm_depth_step = 2;
  layer.scaling = ScalingRule::regor, layer.record_format = RecordFormat::bias48_scale15,
  layer.rescaled_for_activation = true;
  layer.ifm_scale = 0.1f, layer.ofm_scale = 1e-30f, layer.weight_scale = {0.3f, 1.1754944e-38f};
  layer.channels = {{-140737488355328, {32767, 63}}, {5, {1, 0}}};
  layer.weights.assign(48, 9), layer.scales.assign(32, 8);
  layer.n_source_weights = 120, layer.weights_size_bytes = 48, layer.double_buffer_size_bytes = 48;
  layer.worst_compression_scale = 0.4, layer.mean_compression_scale = 1.0 / 3.0;
  BrickGeometry g{NpuFamily::u85, Traversal::part_kernel_first, 16, 32, 16, 8, 8, 1, 2, 4, 8, true, 4, 3, 256};
  layer.slices = {{0, 2, {{0, 0, 32, 2, 1, 0, 1, ""}}, {{0, 0, 48, 200, 0, 1, g, ""}}, 0.4}};
  packed.layers.push_back(layer);
  layer.same_as = 0, layer.weights.clear();
  packed.layers.push_back(layer);
  packed.not_packed.push_back({0, 2, "CONV_2D", "f", "the weights are float32"});
  return packed;
}

class PackedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weightmill-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string text_of(const char* file) const {
    std::ifstream in(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_;
};

TEST_F(PackedFiles, ReadBackIsWhatWasWritten) {
  const Packed packed = packed_of_everything();
  const SourceFile source{"net.tflite", std::string(64, 'a'), 1234};
  write_packed(packed, source, folder_ / "new" / "folder");
  const PackedFolder read = read_packed(folder_ / "new" / "folder");
  EXPECT_EQ(to_manifest(read.packed, read.source).dump(), to_manifest(packed, source).dump());
  EXPECT_EQ(read.packed.layers[0].weights, packed.layers[0].weights);
  EXPECT_EQ(read.packed.layers[0].scales, packed.layers[0].scales);
  EXPECT_EQ(read.packed.layers[0].weight_scale, packed.layers[0].weight_scale);
  EXPECT_EQ(read.packed.layers[0].channels, packed.layers[0].channels);
  EXPECT_EQ(read.packed.layers[0].slices[0].streams[0].stated_sha256.size(), 64u);
  EXPECT_EQ(read.packed.layers[1].same_as, 0);
  EXPECT_TRUE(is_packed(folder_ / "new" / "folder"));
  EXPECT_FALSE(is_packed(folder_));
}

TEST_F(PackedFiles, EveryMissingKeyAndWrongTypeIsNamed) {
  const auto whole = nlohmann::json(to_manifest(packed_of_everything(), {"net.tflite", "", 1}));
  const auto flat = whole.flatten();
  std::size_t n_checked = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/source/")) continue;  // not of the records
    nlohmann::json broken = whole;
    broken[nlohmann::json::json_pointer(pointer)] = nlohmann::json::array({nullptr});
    EXPECT_THROW(from_manifest(broken), Error) << pointer;
    ++n_checked;
  }
  EXPECT_GT(n_checked, 100u);
  for (const auto& [key, value] : whole.items()) {
    if (key == "source") continue;
    nlohmann::json broken = whole;
    broken.erase(key);
    EXPECT_THROW(from_manifest(broken), Error) << key;
  }
}

TEST_F(PackedFiles, RefuseWhatIsNoManifest) {
  EXPECT_THROW(read_packed(folder_), Error);
  std::ofstream(folder_ / "manifest.json") << "{";
  EXPECT_THROW(read_packed(folder_), Error);
  std::ofstream(folder_ / "manifest.json") << R"({"schema":"weightmill.packed/99"})";
  EXPECT_THROW(read_packed(folder_), Error);
}

TEST_F(PackedFiles, RefuseAMissingBlob) {
  write_packed(packed_of_everything(), {"net.tflite", "", 1}, folder_);
  Packed fewer = packed_of_everything();
  fewer.layers.pop_back();
  const std::string manifest = text_of("manifest.json");
  write_packed(fewer, {"net.tflite", "", 1}, folder_);
  std::ofstream(folder_ / "manifest.json") << manifest;
  EXPECT_THROW(read_packed(folder_), Error);
}

TEST_F(PackedFiles, CArraysHoldTheBytes) {
  write_c_arrays(packed_of_everything(), folder_);
  EXPECT_NE(text_of("weights.c").find("_Alignas(16) const uint8_t weightmill_layer0_weights[48]"), std::string::npos);
  EXPECT_NE(text_of("weights.h").find("#define weightmill_layer1_weights weightmill_layer0_weights"),
            std::string::npos);
  EXPECT_NE(text_of("weights.h").find("#define WEIGHTMILL_LAYER0_SLICE0_CORE0_WEIGHTS_BYTES 48u"), std::string::npos);
}

}  // namespace
}  // namespace weightmill
