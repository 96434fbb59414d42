#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "test_model.h"
#include "tflite.h"

namespace weightmill {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tflite::ModelT;
using tflite::TensorT;

TensorT& tensor(ModelT& model, std::size_t i) { return *model.subgraphs[0]->tensors[i]; }
tflite::OperatorT& conv(ModelT& model) { return *model.subgraphs[0]->operators[0]; }

struct Refusal {
  const char* names;  ///< the thing that is wrong
  const char* says;
  std::function<void(ModelT&)> spoil;
  ErrorCode code = ErrorCode::bad_file;
};

void check(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.says);
    ModelT model = test_model::conv_model();
    refusal.spoil(model);
    const auto bytes = test_model::to_bytes(model);
    try {
      parse_tflite(bytes, "m.tflite");
      ADD_FAILURE() << "nothing refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, refusal.code);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("m.tflite"), HasSubstr(refusal.names), HasSubstr(refusal.says)));
    }
  }
}

TEST(ReadTflite, TheModelToSpoilIsSound) {
  const auto bytes = test_model::to_bytes(test_model::conv_model());
  EXPECT_NO_THROW(parse_tflite(bytes, "m.tflite"));
}

TEST(ReadTflite, RefusesWrongTensors) {
  check({
      {"tensor 1 'weights'", "48 bytes of data, wanted 60 for INT8[3, 2, 2, 5]",
       [](ModelT& m) { tensor(m, 1).shape[3] = 5; }},
      {"tensor 2 'bias'", "12 bytes of data, wanted 24",
       [](ModelT& m) { tensor(m, 2).type = tflite::TensorType::INT64; }},
      {"tensor 1 'weights'", "has 48 bytes of data, wanted 24",
       [](ModelT& m) { tensor(m, 1).type = tflite::TensorType::INT4; }},
      {"tensor 1 'weights'", "negative extent",
       [](ModelT& m) {
         tensor(m, 1).quantization.reset();
         tensor(m, 1).shape[0] = -1;
       }},
      {"tensor 0 'input'", "[1, 8, -2, 4]", [](ModelT& m) { tensor(m, 0).shape[2] = -2; }},
      {"tensor 1 'weights'", "too large",
       [](ModelT& m) {
         tensor(m, 1).quantization.reset();
         tensor(m, 1).shape.assign(4, 0x7fffffff);
       }},
      {"tensor 1 'weights'", "names buffer 9 of 3", [](ModelT& m) { tensor(m, 1).buffer = 9; }},
      {"tensor 0 'input'", "another file", [](ModelT& m) { tensor(m, 0).external_buffer = 4; }, ErrorCode::unsupported},
  });
}

TEST(ReadTflite, RefusesWrongQuantization) {
  check({
      {"tensor 1 'weights'", "has 2 scales along axis 0 of shape [3, 2, 2, 4], wanted 1 or 3",
       [](ModelT& m) {
         tensor(m, 1).quantization->scale.pop_back();
         tensor(m, 1).quantization->zero_point.pop_back();
       }},
      {"tensor 1 'weights'", "3 scales and 2 zero points",
       [](ModelT& m) { tensor(m, 1).quantization->zero_point.pop_back(); }},
      {"tensor 1 'weights'", "axis 4", [](ModelT& m) { tensor(m, 1).quantization->quantized_dimension = 4; }},
      {"tensor 1 'weights'", "axis -1", [](ModelT& m) { tensor(m, 1).quantization->quantized_dimension = -1; }},
      {"tensor 1 'weights'", "scale 2 is 0", [](ModelT& m) { tensor(m, 1).quantization->scale[2] = 0; }},
      {"tensor 1 'weights'", "scale 1 is nan", [](ModelT& m) { tensor(m, 1).quantization->scale[1] = NAN; }},
      {"tensor 1 'weights'", "scale 0 is inf", [](ModelT& m) { tensor(m, 1).quantization->scale[0] = INFINITY; }},
      {"tensor 1 'weights'", "scale 0 is -1", [](ModelT& m) { tensor(m, 1).quantization->scale[0] = -1; }},
  });
}

TEST(ReadTflite, RefusesWrongOperators) {
  check({
      {"operator 0 ('CONV_2D')", "input 1 is tensor 4 of 4", [](ModelT& m) { conv(m).inputs[1] = 4; }},
      {"operator 0 ('CONV_2D')", "input 0 is tensor -2 of 4", [](ModelT& m) { conv(m).inputs[0] = -2; }},
      {"operator 0 ('CONV_2D')", "output 0 is tensor -1 of 4", [](ModelT& m) { conv(m).outputs[0] = -1; }},
      {"operator 0 ('CONV_2D')", "intermediate 0 is tensor 77 of 4", [](ModelT& m) { conv(m).intermediates = {77}; }},
      {"operator 0", "operator code 3 of 1", [](ModelT& m) { conv(m).opcode_index = 3; }},
      {"operator 0 ('CONV_2D')", "no options", [](ModelT& m) { conv(m).builtin_options.Reset(); }},
      {"operator 0 ('CONV_2D')", "no options", [](ModelT& m) { conv(m).builtin_options.Set(tflite::SVDFOptionsT{}); }},
      {"operator 0 ('CONV_2D')", "fused activation 77",
       [](ModelT& m) {
         conv(m).builtin_options.AsConv2DOptions()->fused_activation_function = tflite::ActivationFunctionType{77};
       }},
      {"operator 0 ('CONV_2D')", "padding 2",
       [](ModelT& m) { conv(m).builtin_options.AsConv2DOptions()->padding = tflite::Padding{2}; }},
      {"operator code 0", "without a name",
       [](ModelT& m) { m.operator_codes[0]->builtin_code = tflite::BuiltinOperator::CUSTOM; }},
      {"operator code 0", "is -1",
       [](ModelT& m) {
         m.operator_codes[0]->builtin_code = tflite::BuiltinOperator{-1};
         m.operator_codes[0]->deprecated_builtin_code = -3;
       }},
      {"operator 0 ('CONV_2D')", "not all in the file",
       [](ModelT& m) {
         conv(m).large_custom_options_offset = 100;
         conv(m).large_custom_options_size = 1u << 30;
       }},
  });
}

void add_signature(ModelT& model, std::uint32_t subgraph, std::uint32_t tensor_index) {
  auto signature = std::make_unique<tflite::SignatureDefT>();
  signature->subgraph_index = subgraph;
  signature->outputs.push_back(std::make_unique<tflite::TensorMapT>());
  signature->outputs[0]->tensor_index = tensor_index;
  model.signature_defs.push_back(std::move(signature));
}

TEST(ReadTflite, RefusesWrongGraphs) {
  check({
      {"m.tflite", "no subgraph", [](ModelT& m) { m.subgraphs.clear(); }},
      {"subgraph 0", "input 0 is tensor 4 of 4", [](ModelT& m) { m.subgraphs[0]->inputs = {4}; }},
      {"subgraph 0", "output 0 is tensor -1 of 4", [](ModelT& m) { m.subgraphs[0]->outputs = {-1}; }},
      {"signature 0", "subgraph 1 of 1", [](ModelT& m) { add_signature(m, 1, 0); }},
      {"signature 0", "tensor 4 of 4", [](ModelT& m) { add_signature(m, 0, 4); }},
      {"metadata 0", "buffer 5 of 3",
       [](ModelT& m) {
         m.metadata.push_back(std::make_unique<tflite::MetadataT>());
         m.metadata[0]->buffer = 5;
       }},
      {"m.tflite", "version 2, wanted 3", [](ModelT& m) { m.version = 2; }, ErrorCode::unsupported},
  });
}

void put_behind(ModelT& model, std::uint64_t offset, std::uint64_t size) {
  model.buffers[1]->data.clear();
  model.buffers[1]->offset = offset;
  model.buffers[1]->size = size;
}

TEST(ReadTflite, RefusesDataOutsideTheFile) {
  check({
      {"tensor 1 'weights'", "cut short", [](ModelT& m) { put_behind(m, 1 << 20, 48); }},
      {"tensor 1 'weights'", "cut short", [](ModelT& m) { put_behind(m, ~std::uint64_t{0} - 8, 48); }},
      {"tensor 1 'weights'", "cut short", [](ModelT& m) { put_behind(m, 48, ~std::uint64_t{0}); }},
      {"tensor 1 'weights'", "wanted 48", [](ModelT& m) { put_behind(m, 48, 47); }},
  });
}

/// Makes the weights sparse with every level dense but the last.
void make_sparse(ModelT& model, std::int32_t output_channels) {
  auto sparsity = std::make_unique<tflite::SparsityParametersT>();
  sparsity->traversal_order = {0, 1, 2, 3};
  for (const std::int32_t extent : {output_channels, 2, 2, 4}) {
    sparsity->dim_metadata.push_back(std::make_unique<tflite::DimensionMetadataT>());
    sparsity->dim_metadata.back()->dense_size = extent;
  }
  tensor(model, 1).shape[0] = output_channels;
  tensor(model, 1).quantization->scale.assign(1, 1);
  tensor(model, 1).quantization->zero_point.assign(1, 0);
  tensor(model, 1).sparsity = std::move(sparsity);
}

tflite::DimensionMetadataT& last_level(ModelT& model) { return *tensor(model, 1).sparsity->dim_metadata[3]; }

TEST(ReadTflite, RefusesWrongSparsity) {
  check({
      {"tensor 1 'weights'", "stores 48 bytes, wanted 64", [](ModelT& m) { make_sparse(m, 4); }},
      {"tensor 1 'weights'", "536870912 left", [](ModelT& m) { make_sparse(m, 1 << 30); }, ErrorCode::unsupported},
      {"tensor 1 'weights'", "no segment bounds",
       [](ModelT& m) {
         make_sparse(m, 3);
         last_level(m).format = tflite::DimensionType::SPARSE_CSR;
       }},
      {"tensor 1 'weights'", "format 9",
       [](ModelT& m) {
         make_sparse(m, 3);
         last_level(m).format = tflite::DimensionType{9};
       },
       ErrorCode::unsupported},
      {"tensor 1 'weights'", "whole bytes",
       [](ModelT& m) {
         make_sparse(m, 3);
         tensor(m, 1).type = tflite::TensorType::INT4;
       },
       ErrorCode::unsupported},
  });
}

TEST(ReadTflite, RefusesAnyTruncation) {
  const auto bytes = test_model::to_bytes(test_model::conv_model());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse_tflite(cut, "m.tflite"), Error) << size;
  }
}

TEST(ReadTflite, RefusesStringsSharedWithoutEnd) {
  // 20 000 tensors whose table is the same one, with a name of a megabyte: 20 GB of copies asked for by 1 MB of file.
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(1 << 20, 'x'));
  const auto tensor_table = tflite::CreateTensor(builder, 0, tflite::TensorType::INT8, 0, name);
  const auto tensors = builder.CreateVector(std::vector(20'000, tensor_table));
  const auto subgraph = tflite::CreateSubGraph(builder, tensors);
  const auto subgraphs = builder.CreateVector(std::vector{subgraph});
  const auto buffers = builder.CreateVector(std::vector{tflite::CreateBuffer(builder)});
  tflite::FinishModelBuffer(builder, tflite::CreateModel(builder, 3, 0, subgraphs, 0, buffers));
  const std::vector<std::uint8_t> bytes(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  EXPECT_THROW(parse_tflite(bytes, "m.tflite"), Error);
}

}  // namespace
}  // namespace weightmill
