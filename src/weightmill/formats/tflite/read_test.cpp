#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <weightmill/base/error.h>
#include <testkit/golden.h>

#include "formats.h"
#include "test_model.h"
#include "tflite.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using test_model::add_buffer;
using test_model::add_operator;
using test_model::add_tensor;
using test_model::conv_model;
using test_model::to_bytes;
using testing::ElementsAre;
using testing::IsEmpty;
using tflite::BuiltinOperator;
using tflite::ModelT;
using tflite::TensorType;

/// A model with the bytes that it views.
struct Parsed {
  explicit Parsed(std::vector<std::uint8_t> file) : bytes(std::move(file)), model(parse_tflite(bytes, "m.tflite")) {}
  explicit Parsed(const ModelT& source) : Parsed(to_bytes(source)) {}
  const Tensor& tensor(std::size_t i) const { return model.subgraphs[0].tensors[i]; }
  const Node& node(std::size_t i) const { return model.subgraphs[0].nodes[i]; }
  std::vector<std::uint8_t> bytes;
  Model model;
};

tflite::TensorT& weights(ModelT& model) { return *model.subgraphs[0]->tensors[1]; }

TEST(ReadTflite, ReadsTensors) {
  const Parsed parsed(conv_model());
  const Tensor& tensor = parsed.tensor(1);
  EXPECT_EQ(tensor.name, "weights");
  EXPECT_EQ(tensor.dtype, DType::i8);
  EXPECT_EQ(tensor.format_dtype, "INT8");
  EXPECT_THAT(tensor.shape, ElementsAre(3, 2, 2, 4));
  EXPECT_THAT(tensor.quantization.scale, ElementsAre(1, 2, 3));
  EXPECT_THAT(tensor.quantization.zero_point, ElementsAre(0, 0, 0));
  EXPECT_TRUE(tensor.constant);
  EXPECT_EQ(tensor.buffer, 1);
  EXPECT_EQ(std::vector(tensor.data.begin(), tensor.data.end()), std::vector<std::uint8_t>(48, 7));
  EXPECT_FALSE(parsed.tensor(0).constant);
  EXPECT_THAT(parsed.tensor(0).data, IsEmpty());
  EXPECT_EQ(parsed.tensor(0).buffer, -1);
}

TEST(ReadTflite, LeavesConstantsInTheFile) {
  const Parsed parsed(conv_model());
  EXPECT_GE(parsed.tensor(1).data.data(), parsed.bytes.data());
  EXPECT_LE(parsed.tensor(1).data.data() + 48, parsed.bytes.data() + parsed.bytes.size());
  EXPECT_EQ(parsed.tensor(1).owned, nullptr);
}

TEST(ReadTflite, ReadsConvolutions) {
  const Parsed parsed(conv_model());
  const Node& node = parsed.node(0);
  EXPECT_EQ(node.kind, OpKind::conv_2d);
  EXPECT_EQ(node.op_name, "CONV_2D");
  EXPECT_THAT(node.inputs, ElementsAre(0, 1, 2));
  EXPECT_EQ(node.conv.stride_h, 2);
  EXPECT_EQ(node.conv.stride_w, 3);
  EXPECT_EQ(node.conv.dilation_h, 4);
  EXPECT_EQ(node.conv.dilation_w, 5);
  EXPECT_EQ(node.conv.padding, Padding::valid);
  EXPECT_EQ(node.conv.activation, Activation::relu6);
}

TEST(ReadTflite, ReadsDepthwiseTransposedAndThreeDimensionalConvolutions) {
  ModelT model = conv_model();
  tflite::DepthwiseConv2DOptionsT depthwise;
  depthwise.depth_multiplier = 6;
  depthwise.dilation_w_factor = 7;
  add_operator(model, BuiltinOperator::DEPTHWISE_CONV_2D, {0, 1, -1}, {3}).builtin_options.Set(depthwise);
  tflite::TransposeConvOptionsT transposed;
  transposed.stride_w = 8;
  add_operator(model, BuiltinOperator::TRANSPOSE_CONV, {2, 1, 0}, {3}).builtin_options.Set(transposed);
  tflite::Conv3DOptionsT volume;
  volume.stride_d = 9;
  volume.dilation_d_factor = 10;
  add_operator(model, BuiltinOperator::CONV_3D, {0, 1}, {3}).builtin_options.Set(volume);
  const Parsed parsed(model);
  EXPECT_EQ(parsed.node(1).kind, OpKind::depthwise_conv_2d);
  EXPECT_EQ(parsed.node(1).conv.depth_multiplier, 6);
  EXPECT_EQ(parsed.node(1).conv.dilation_w, 7);
  EXPECT_EQ(parsed.node(1).conv.padding, Padding::same);
  EXPECT_THAT(parsed.node(1).inputs, ElementsAre(0, 1, -1));
  EXPECT_EQ(parsed.node(2).kind, OpKind::transpose_conv_2d);
  EXPECT_EQ(parsed.node(2).conv.stride_w, 8);
  EXPECT_EQ(parsed.node(3).kind, OpKind::conv_3d);
  EXPECT_EQ(parsed.node(3).conv.stride_d, 9);
  EXPECT_EQ(parsed.node(3).conv.dilation_d, 10);
}

TEST(ReadTflite, ReadsFullyConnectedAndRecurrentOperators) {
  ModelT model = conv_model();
  tflite::FullyConnectedOptionsT full;
  full.weights_format = tflite::FullyConnectedOptionsWeightsFormat::SHUFFLED4x16INT8;
  full.fused_activation_function = tflite::ActivationFunctionType::RELU_N1_TO_1;
  add_operator(model, BuiltinOperator::FULLY_CONNECTED, {0, 1}, {3}).builtin_options.Set(full);
  tflite::UnidirectionalSequenceLSTMOptionsT sequence;
  sequence.time_major = true;
  sequence.cell_clip = 1.5f;
  auto& lstm = add_operator(model, BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, {0}, {3});
  lstm.builtin_options.Set(sequence);
  lstm.intermediates = {1, -1};
  tflite::LSTMOptionsT step;
  step.kernel_type = tflite::LSTMKernelType::BASIC;
  step.proj_clip = 2.5f;
  add_operator(model, BuiltinOperator::LSTM, {0}, {3}).builtin_options.Set(step);
  tflite::SVDFOptionsT svdf;
  svdf.rank = 11;
  add_operator(model, BuiltinOperator::SVDF, {0}, {3}).builtin_options.Set(svdf);
  const Parsed parsed(model);
  EXPECT_TRUE(parsed.node(1).conv.shuffled_weights);
  EXPECT_EQ(parsed.node(1).conv.activation, Activation::relu_n1_to_1);
  EXPECT_TRUE(parsed.node(2).recurrent.time_major);
  EXPECT_EQ(parsed.node(2).recurrent.cell_clip, 1.5f);
  EXPECT_THAT(parsed.node(2).intermediates, ElementsAre(1, -1));
  EXPECT_TRUE(parsed.node(3).recurrent.basic_kernel);
  EXPECT_EQ(parsed.node(3).recurrent.proj_clip, 2.5f);
  EXPECT_EQ(parsed.node(4).kind, OpKind::svdf);
  EXPECT_EQ(parsed.node(4).recurrent.rank, 11);
}

TEST(ReadTflite, ReadsOperatorCodesFromEitherField) {
  ModelT model = conv_model();
  add_operator(model, BuiltinOperator{}, {}, {});
  model.operator_codes[1]->deprecated_builtin_code = 25;  // SOFTMAX, as files before 2020 say it
  model.operator_codes[1]->version = 4;
  add_operator(model, BuiltinOperator::GELU, {}, {});
  model.operator_codes[2]->deprecated_builtin_code = 127;
  add_operator(model, BuiltinOperator{999}, {}, {});
  const Parsed parsed(model);
  EXPECT_EQ(parsed.node(1).op_name, "SOFTMAX");
  EXPECT_EQ(parsed.node(1).version, 4);
  EXPECT_EQ(parsed.node(2).op_name, "GELU");
  EXPECT_EQ(parsed.node(3).op_name, "BUILTIN_999");
  EXPECT_EQ(parsed.node(3).kind, OpKind::other);
}

TEST(ReadTflite, ReadsCustomOperators) {
  ModelT model = conv_model();
  add_operator(model, BuiltinOperator::CUSTOM, {0}, {3}).custom_options = {1, 4, 1};
  model.operator_codes[1]->custom_code = "ethos-u";
  const Parsed parsed(model);
  EXPECT_TRUE(parsed.node(1).custom);
  EXPECT_EQ(parsed.node(1).op_name, "ethos-u");
  EXPECT_EQ(parsed.node(1).kind, OpKind::other);
  const auto options = parsed.node(1).custom_options;
  EXPECT_THAT(std::vector(options.begin(), options.end()), ElementsAre(1, 4, 1));
}

TEST(ReadTflite, ReadsTypesOfEveryWidth) {
  ModelT model = conv_model();
  const auto add = [&](TensorType type, std::vector<std::int32_t> shape, std::size_t n_bytes) {
    add_tensor(model, "t", std::move(shape), type, {}, add_buffer(model, std::vector<std::uint8_t>(n_bytes, 0x21)));
  };
  add(TensorType::INT4, {3}, 2);
  add(TensorType::INT2, {5}, 2);
  add(TensorType::FLOAT16, {3}, 6);
  add(TensorType::INT64, {3}, 24);
  add(TensorType::COMPLEX128, {2}, 32);
  add(TensorType::STRING, {2}, 5);
  add(TensorType{99}, {2}, 5);
  const Parsed parsed(model);
  EXPECT_EQ(parsed.tensor(4).dtype, DType::i4);
  EXPECT_EQ(parsed.tensor(5).dtype, DType::other);
  EXPECT_EQ(parsed.tensor(5).format_dtype, "INT2");
  EXPECT_EQ(parsed.tensor(6).dtype, DType::f16);
  EXPECT_EQ(parsed.tensor(7).dtype, DType::i64);
  EXPECT_EQ(parsed.tensor(9).format_dtype, "STRING");
  EXPECT_EQ(parsed.tensor(10).format_dtype, "TYPE_99");
}

TEST(ReadTflite, TellsWhichTensorsShareBytes) {
  ModelT model = conv_model();
  add_tensor(model, "same", {3, 2, 2, 4}, TensorType::INT8, {1}, 1);
  const Parsed parsed(model);
  EXPECT_EQ(parsed.tensor(4).buffer, parsed.tensor(1).buffer);
  EXPECT_EQ(parsed.tensor(4).data.data(), parsed.tensor(1).data.data());
}

TEST(ReadTflite, CompletesZeroPoints) {
  ModelT model = conv_model();
  weights(model).quantization->zero_point.clear();
  EXPECT_THAT(Parsed(model).tensor(1).quantization.zero_point, ElementsAre(0, 0, 0));
  weights(model).quantization->zero_point = {5};
  EXPECT_THAT(Parsed(model).tensor(1).quantization.zero_point, ElementsAre(5, 5, 5));
}

TEST(ReadTflite, TakesTheOnlyAxisOfABias) {
  ModelT model = conv_model();
  model.subgraphs[0]->tensors[2]->quantization->quantized_dimension = 3;
  EXPECT_EQ(Parsed(model).tensor(2).quantization.axis, 0);
}

TEST(ReadTflite, NamesSchemesBeyondScaleAndZeroPoint) {
  ModelT model = conv_model();
  weights(model).quantization->scale.clear();
  weights(model).quantization->details.Set(tflite::BlockwiseQuantizationT{});
  const Parsed parsed(model);
  EXPECT_EQ(parsed.tensor(1).quantization_details, "BlockwiseQuantization");
  EXPECT_TRUE(parsed.tensor(1).quantization.empty());
}

TEST(ReadTflite, ReadsVariablesMetadataAndSignatures) {
  ModelT model = conv_model();
  model.subgraphs[0]->tensors[0]->is_variable = true;
  model.subgraphs[0]->tensors[0]->shape_signature = {-1, 8, 8, 4};
  model.metadata.push_back(std::make_unique<tflite::MetadataT>());
  model.metadata[0]->name = "min_runtime_version";
  model.metadata[0]->buffer = 2;
  model.signature_defs.push_back(std::make_unique<tflite::SignatureDefT>());
  model.signature_defs[0]->signature_key = "serving_default";
  model.signature_defs[0]->outputs.push_back(std::make_unique<tflite::TensorMapT>());
  model.signature_defs[0]->outputs[0]->name = "y";
  model.signature_defs[0]->outputs[0]->tensor_index = 3;
  const Parsed parsed(model);
  EXPECT_EQ(parsed.model.description, "made by a test");
  EXPECT_TRUE(parsed.tensor(0).variable);
  EXPECT_THAT(parsed.tensor(0).shape_signature, ElementsAre(-1, 8, 8, 4));
  EXPECT_EQ(parsed.model.metadata[0].name, "min_runtime_version");
  EXPECT_EQ(parsed.model.metadata[0].data.size(), 12u);
  EXPECT_EQ(parsed.model.signatures[0].key, "serving_default");
  EXPECT_EQ(parsed.model.signatures[0].outputs[0].name, "y");
  EXPECT_EQ(parsed.model.signatures[0].outputs[0].tensor, 3);
}

/// A level that stores every second column of 4, for `n_rows` rows, its numbers in the type that Vector says.
template <class Vector>
void set_every_second(tflite::DimensionMetadataT& level, std::size_t n_rows) {
  Vector segments, indices;
  for (std::size_t row = 0; row <= n_rows; ++row) segments.values.push_back(static_cast<std::uint8_t>(2 * row));
  for (std::size_t row = 0; row < n_rows; ++row) indices.values.insert(indices.values.end(), {1, 3});
  level.format = tflite::DimensionType::SPARSE_CSR;
  level.array_segments.Set(segments);
  level.array_indices.Set(indices);
}

ModelT sparse_model() {
  ModelT model = conv_model();
  auto sparsity = std::make_unique<tflite::SparsityParametersT>();
  sparsity->traversal_order = {0, 1, 2, 3};
  for (const std::int32_t extent : {3, 2, 2, 4}) {
    sparsity->dim_metadata.push_back(std::make_unique<tflite::DimensionMetadataT>());
    sparsity->dim_metadata.back()->dense_size = extent;
  }
  model.buffers[1]->data.assign(24, 9);
  weights(model).sparsity = std::move(sparsity);
  return model;
}

TEST(ReadTflite, DensifiesSparseTensorsWithIndicesOfAnyWidth) {
  ModelT model = sparse_model();
  tflite::DimensionMetadataT& columns = *weights(model).sparsity->dim_metadata[3];
  std::vector<std::uint8_t> wanted;
  for (int i = 0; i < 48; ++i) wanted.push_back(i % 2 == 0 ? 0 : 9);
  const auto check = [&] {
    const Parsed parsed(model);
    const Tensor& tensor = parsed.tensor(1);
    EXPECT_EQ(std::vector(tensor.data.begin(), tensor.data.end()), wanted);
    EXPECT_TRUE(tensor.sparse);
    EXPECT_TRUE(tensor.constant);
  };
  set_every_second<tflite::Uint8VectorT>(columns, 12);
  check();
  set_every_second<tflite::Uint16VectorT>(columns, 12);
  check();
  set_every_second<tflite::Int32VectorT>(columns, 12);
  check();
}

/// The weights' bytes behind the flatbuffer, at `offset`, which must not be inside it.
ModelT model_with_data_behind(std::uint64_t offset) {
  ModelT model = conv_model();
  model.buffers[1]->data.clear();
  model.buffers[1]->offset = offset;
  model.buffers[1]->size = 48;
  return model;
}

TEST(ReadTflite, ReadsDataBehindTheFlatbuffer) {
  auto bytes = to_bytes(model_with_data_behind(4096));
  bytes.resize(4096);
  bytes.insert(bytes.end(), 48, 5);
  const Parsed parsed(std::move(bytes));
  EXPECT_EQ(std::vector(parsed.tensor(1).data.begin(), parsed.tensor(1).data.end()), std::vector<std::uint8_t>(48, 5));
}

class LargeFile : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  fs::path path_ = fs::temp_directory_path() / ("weightmill_large_" + std::to_string(getpid()) + ".tflite");
};

TEST_F(LargeFile, ReadsDataBeyondTwoGigabytes) {
  constexpr std::uint64_t kFar = (std::uint64_t{5} << 29) + 16;  // 2.5 GiB, nearly all of it a hole
  const auto bytes = to_bytes(model_with_data_behind(kFar));
  {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out.seekp(static_cast<std::streamoff>(kFar));
    out << std::string(48, '\5');
    if (!out.flush()) GTEST_SKIP() << "no room for a large sparse file";
  }
  const Model model = read_model(path_);
  const Tensor& tensor = model.subgraphs[0].tensors[1];
  EXPECT_EQ(std::vector(tensor.data.begin(), tensor.data.end()), std::vector<std::uint8_t>(48, 5));
}

std::vector<fs::path> tflite_models() {
  std::vector<fs::path> paths;
  if (!fs::exists(testkit::models_dir())) return paths;
  for (const auto& entry : fs::recursive_directory_iterator(testkit::models_dir())) {
    if (entry.path().extension() == ".tflite") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ReadModel, ReadsEveryRealModel) {
  const auto paths = tflite_models();
  if (paths.empty()) GTEST_SKIP() << "models not installed: set WEIGHTMILL_MODELS_DIR";
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path);
    const Model model = read_model(path);
    ASSERT_FALSE(model.subgraphs.empty());
    EXPECT_FALSE(model.subgraphs[0].nodes.empty());
    EXPECT_TRUE(std::any_of(model.subgraphs[0].tensors.begin(), model.subgraphs[0].tensors.end(),
                            [](const Tensor& tensor) { return tensor.constant; }));
  }
}

TEST(ReadModel, RefusesWhatIsNoModel) {
  EXPECT_THROW(read_model(fs::path(WEIGHTMILL_SOURCE_DIR) / "README.md"), Error);
  EXPECT_THROW(read_model("/nonexistent.tflite"), Error);
}

}  // namespace
}  // namespace weightmill
