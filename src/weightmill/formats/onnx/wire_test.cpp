#include "wire.h"

#include <string>

#include <gtest/gtest.h>
#include <onnx_file.pb.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The model with each raw_data put in brackets.
std::string bracketed(const std::string& model) {
  const RawDataReplacer replacer(as_bytes(model), "model", [](auto raw) { return raw.size() + 2; });
  std::string out;
  const RawDataReplacer::Sink sink = [&](std::span<const std::uint8_t> bytes) {
    out.append(bytes.begin(), bytes.end());
  };
  replacer.write(
      [](auto raw, const RawDataReplacer::Sink& to) {
        to(as_bytes("["));
        to(raw);
        to(as_bytes("]"));
      },
      sink);
  EXPECT_EQ(out.size(), replacer.size_bytes());
  return out;
}

/// A model with a tensor in an initialiser, an attribute of a node in a sub-graph, and a function.
onnx_file::ModelProto nested_model(const std::string& raw) {
  onnx_file::ModelProto model;
  model.mutable_graph()->add_initializer()->set_raw_data(raw);
  auto& branch = *model.mutable_graph()->add_node()->add_attribute()->mutable_g();
  branch.add_node()->add_attribute()->mutable_t()->set_raw_data(raw);
  model.add_functions()->add_node()->add_attribute()->mutable_sparse_tensor()->mutable_values()->set_raw_data(raw);
  return model;
}

TEST(RawDataReplacer, ReplacesTensorsAtEveryDepthAndRepairsLengths) {
  const std::string raw(125, 'x');  // with the brackets its length takes two bytes instead of one
  EXPECT_EQ(bracketed(nested_model(raw).SerializeAsString()), nested_model("[" + raw + "]").SerializeAsString());
}

TEST(RawDataReplacer, CopiesEverythingElse) {
  onnx_file::ModelProto model;
  model.set_producer_name("someone");
  model.mutable_graph()->add_initializer()->add_float_data(1.5f);
  const std::string unknown =
      "\xfa\x3f\x03"
      "abc"
      "\xf8\x3f\x05";  // fields 1023, delimited and varint
  const std::string bytes = model.SerializeAsString() + unknown;
  EXPECT_EQ(bracketed(bytes), bytes);
}

TEST(RawDataReplacer, TakesAnEmptyModel) { EXPECT_EQ(bracketed(""), ""); }

TEST(RawDataReplacer, RefusesEveryTruncation) {
  const std::string bytes = nested_model(std::string(20, 'x')).SerializeAsString();
  std::size_t n_whole = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      bracketed(bytes.substr(0, size));
      ++n_whole;  // a cut between two fields of the model itself leaves a smaller model
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_file);
    }
  }
  EXPECT_EQ(n_whole, 2u);
}

TEST(RawDataReplacer, RefusesWhatIsNoProtobuf) {
  EXPECT_THROW(bracketed(std::string("\x07")), Error);                      // wire type 7
  EXPECT_THROW(bracketed(std::string("\x00\x00", 2)), Error);               // field number 0
  EXPECT_THROW(bracketed(std::string("\x3a\xff\xff\xff\xff\x0f")), Error);  // a graph of 4 GiB
  EXPECT_THROW(bracketed(std::string(11, '\xff')), Error);                  // a number that does not end
}

TEST(RawDataReplacer, RefusesNestingBeyondProtobufsOwnLimit) {
  onnx_file::ModelProto model;
  auto* graph = model.mutable_graph();
  for (int i = 0; i < 60; ++i) graph = graph->add_node()->add_attribute()->mutable_g();
  graph->set_name("innermost");
  EXPECT_THROW(bracketed(model.SerializeAsString()), Error);
}

}  // namespace
}  // namespace weightmill
