#include "graph_index.h"

#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using namespace onnx_file;
using Names = std::initializer_list<const char*>;

NodeProto& add_node(GraphProto& graph, const char* op, Names inputs, Names outputs) {
  NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const char* name : inputs) node.add_input(name);
  for (const char* name : outputs) node.add_output(name);
  return node;
}

/// x -> Relu -> y
ModelProto small_model() {
  ModelProto model;
  GraphProto& graph = *model.mutable_graph();
  graph.add_input()->set_name("x");
  add_node(graph, "Relu", {"x"}, {"y"});
  graph.add_output()->set_name("y");
  return model;
}

std::string refusal(ModelProto& model) {
  try {
    const GraphIndex index(model, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

TEST(GraphIndex, KnowsWhoDefinesAndWhoReads) {
  ModelProto model = small_model();
  const GraphIndex index(model, "file");
  const Value& x = index.value(index.resolve(0, "x"));
  const Value& y = index.value(index.resolve(0, "y"));
  EXPECT_EQ(x.origin, Origin::graph_input);
  EXPECT_THAT(x.readers, testing::ElementsAre(NodeRef{0, 0}));
  EXPECT_EQ(y.origin, Origin::node);
  EXPECT_TRUE(y.is_output);
  EXPECT_EQ(index.resolve(0, "z"), -1);
}

TEST(GraphIndex, SeesReadersInSubGraphsAndShadowedNames) {
  ModelProto model = small_model();
  GraphProto& graph = *model.mutable_graph();
  auto& attribute = *add_node(graph, "If", {"x"}, {"z"}).add_attribute();
  attribute.set_name("then_branch");
  GraphProto& branch = *attribute.mutable_g();
  add_node(branch, "Neg", {"y"}, {"inner"});
  add_node(branch, "Constant", {}, {"x"});
  add_node(branch, "Add", {"x", "inner"}, {"sum"});
  branch.add_output()->set_name("sum");
  const GraphIndex index(model, "file");
  EXPECT_THAT(index.value(index.resolve(0, "y")).readers, testing::ElementsAre(NodeRef{1, 0}));
  EXPECT_THAT(index.value(index.resolve(0, "x")).readers, testing::ElementsAre(NodeRef{0, 0}, NodeRef{0, 1}));
  EXPECT_NE(index.resolve(0, "x"), index.resolve(1, "x"));
  EXPECT_EQ(index.scope(1).path, "z/then_branch");
  EXPECT_EQ(index.common_scope(0, 1), 0);
}

TEST(GraphIndex, TakesAnInitializerThatIsAnInputToo) {
  ModelProto model = small_model();
  model.mutable_graph()->add_initializer()->set_name("x");
  const GraphIndex index(model, "file");
  EXPECT_EQ(index.value(index.resolve(0, "x")).origin, Origin::initializer);
  EXPECT_TRUE(index.value(index.resolve(0, "x")).also_input);
}

TEST(GraphIndex, PinsWhatAnnotationsAndTrainingNeed) {
  ModelProto model = small_model();
  GraphProto& graph = *model.mutable_graph();
  graph.add_initializer()->set_name("s");
  graph.add_initializer()->set_name("w");
  graph.add_quantization_annotation()->add_quant_parameter_tensor_names()->set_value("s");
  model.add_training_info()->add_update_binding()->set_key("w");
  const GraphIndex index(model, "file");
  EXPECT_EQ(index.value(index.resolve(0, "s")).n_pins, 1);
  EXPECT_EQ(index.value(index.resolve(0, "w")).n_pins, 1);
  EXPECT_EQ(index.value(index.resolve(0, "x")).n_pins, 0);
}

TEST(GraphIndex, RefusesANameDefinedTwice) {
  ModelProto model = small_model();
  add_node(*model.mutable_graph(), "Neg", {"x"}, {"y"});
  EXPECT_THAT(refusal(model), testing::HasSubstr("'y' is defined twice"));
}

TEST(GraphIndex, RefusesANameThatNothingDefines) {
  ModelProto model = small_model();
  add_node(*model.mutable_graph(), "Neg", {"nothing"}, {"z"});
  EXPECT_THAT(refusal(model), testing::HasSubstr("node 'z' reads 'nothing'"));
  ModelProto other = small_model();
  other.mutable_graph()->add_output()->set_name("nothing");
  EXPECT_THAT(refusal(other), testing::HasSubstr("output 'nothing'"));
}

TEST(GraphIndex, RefusesCyclesAlsoThroughASubGraph) {
  ModelProto model = small_model();
  add_node(*model.mutable_graph(), "Add", {"x", "b"}, {"a"});
  add_node(*model.mutable_graph(), "Neg", {"a"}, {"b"});
  EXPECT_THAT(refusal(model), testing::HasSubstr("cycle"));
  ModelProto other = small_model();
  auto& branch = *add_node(*other.mutable_graph(), "If", {"x"}, {"a"}).add_attribute()->mutable_g();
  add_node(branch, "Neg", {"a"}, {"b"});
  EXPECT_THAT(refusal(other), testing::HasSubstr("cycle"));
}

TEST(GraphIndex, TakesNodesInAnyOrder) {
  ModelProto model = small_model();
  add_node(*model.mutable_graph(), "Neg", {"a"}, {"b"});
  add_node(*model.mutable_graph(), "Neg", {"x"}, {"a"});
  EXPECT_EQ(refusal(model), "");
}

}  // namespace
}  // namespace weightmill
