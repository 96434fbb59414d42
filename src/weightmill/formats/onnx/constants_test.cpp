#include "constants.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <weightmill/base/half.h>

#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;
using testing::ElementsAre;

/// A model whose value "v" a test asks about.
class ConstantModel {
 public:
  GraphProto& graph() { return *model_.mutable_graph(); }

  TensorProto& add_initializer(int data_type, std::initializer_list<std::int64_t> shape) {
    TensorProto& tensor = *graph().add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(data_type);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    return tensor;
  }
  template <class T>
  void set_raw(TensorProto& tensor, const std::vector<T>& values) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor.set_raw_data(payloads_.add(owned_payload(std::move(bytes))));
  }
  NodeProto& add_node(const char* op, const char* input, const char* output) {
    NodeProto& node = *graph().add_node();
    node.set_op_type(op);
    if (*input != '\0') node.add_input(input);
    node.add_output(output);
    return node;
  }
  std::variant<OnnxConstant, NotConstant> resolve(const char* name, std::int64_t ir_version = 8) {
    const GraphIndex index(model_, "file");
    return Constants(index, payloads_, ir_version).resolve(index.resolve(0, name));
  }
  std::vector<float> floats(const char* name) {
    const auto constant = std::get<OnnxConstant>(resolve(name));
    std::vector<float> values(n_elements(constant.shape, name));
    read_floats(constant, 0, values);
    return values;
  }

 private:
  ModelProto model_;
  PayloadTable payloads_;
};

void set_int(NodeProto& node, const char* name, std::int64_t value) {
  node.add_attribute()->set_name(name);
  node.mutable_attribute(0)->set_i(value);
}

TEST(Constants, ReadsRawAndTypedData) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::FLOAT, {3}), std::vector<float>{1, 2, -3.5f});
  EXPECT_THAT(model.floats("w"), ElementsAre(1, 2, -3.5f));
  ConstantModel typed;
  TensorProto& halves = typed.add_initializer(TensorProto::FLOAT16, {2});
  halves.add_int32_data(to_f16(0.5f));
  halves.add_int32_data(to_f16(-2));
  EXPECT_THAT(typed.floats("w"), ElementsAre(0.5f, -2));
}

TEST(Constants, UnpacksSmallIntegers) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::INT4, {3}), std::vector<std::uint8_t>{0x8f, 0x07});
  EXPECT_THAT(read_integers(std::get<OnnxConstant>(model.resolve("w"))), ElementsAre(-1, -8, 7));
  ConstantModel pairs;
  pairs.set_raw(pairs.add_initializer(TensorProto::INT2, {5}), std::vector<std::uint8_t>{0b11100100, 0b01});
  EXPECT_THAT(read_integers(std::get<OnnxConstant>(pairs.resolve("w"))), ElementsAre(0, 1, -2, -1, 1));
}

TEST(Constants, FollowsNodesAndReadsAnyRange) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::FLOAT, {2, 3}), std::vector<float>{0, 1, 2, 3, 4, 5});
  model.add_node("Identity", "w", "a");
  model.add_node("Transpose", "a", "v");
  const auto constant = std::get<OnnxConstant>(model.resolve("v"));
  EXPECT_EQ(constant.shape, (Shape{3, 2}));
  EXPECT_THAT(model.floats("v"), ElementsAre(0, 3, 1, 4, 2, 5));
  std::vector<float> part(3);
  read_floats(constant, 2, part);
  EXPECT_THAT(part, ElementsAre(1, 4, 2));
}

TEST(Constants, CastsRoundOnceForEachNode) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::DOUBLE, {1}), std::vector<double>{1.0 / 3});
  set_int(model.add_node("Cast", "w", "f"), "to", TensorProto::FLOAT);
  set_int(model.add_node("Cast", "f", "h"), "to", TensorProto::FLOAT16);
  set_int(model.add_node("Cast", "h", "v"), "to", TensorProto::FLOAT);
  EXPECT_THAT(model.floats("v"), ElementsAre(from_f16(to_f16(1.0f / 3))));
}

TEST(Constants, LeavesCastsOfMoreThanOneRounding) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::DOUBLE, {1}), std::vector<double>{1});
  set_int(model.add_node("Cast", "w", "v"), "to", TensorProto::FLOAT16);
  EXPECT_THAT(std::get<NotConstant>(model.resolve("v")).reason, testing::HasSubstr("Cast from float64 to float16"));
}

TEST(Constants, ReadsConstantNodes) {
  ConstantModel model;
  AttributeProto& one = *model.add_node("Constant", "", "v").add_attribute();
  one.set_name("value_float");
  one.set_f(2.5f);
  EXPECT_THAT(model.floats("v"), ElementsAre(2.5f));
  AttributeProto& other = *model.add_node("Constant", "", "u").add_attribute();
  other.set_name("value_string");
  EXPECT_FALSE(std::get<NotConstant>(model.resolve("u")).reason.empty());
}

TEST(Constants, KnowsWhatACallerMayReplace) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::FLOAT, {1}), std::vector<float>{1});
  model.graph().add_input()->set_name("w");
  EXPECT_THAT(std::get<NotConstant>(model.resolve("w", 4)).reason, testing::HasSubstr("a caller may replace w"));
  EXPECT_TRUE(std::holds_alternative<OnnxConstant>(model.resolve("w", 3)));
}

TEST(Constants, TakesActivationsForWhatTheyAre) {
  ConstantModel model;
  model.graph().add_input()->set_name("x");
  model.add_node("Identity", "x", "v");
  model.add_node("Relu", "x", "r");
  EXPECT_EQ(std::get<NotConstant>(model.resolve("v")).reason, "");
  EXPECT_EQ(std::get<NotConstant>(model.resolve("r")).reason, "");
}

TEST(Constants, LeavesWhatWouldCostEachReaderTooMuch) {
  ConstantModel model;
  TensorProto& tensor = model.add_initializer(TensorProto::FLOAT, {});
  model.set_raw(tensor, std::vector<float>{1});
  std::string last = "w";
  for (int i = 0; i < 257; ++i) {
    const std::string next = "v" + std::to_string(i);
    model.add_node("Identity", last.c_str(), next.c_str());
    last = next;
  }
  EXPECT_TRUE(std::holds_alternative<OnnxConstant>(model.resolve("v255")));
  EXPECT_THAT(std::get<NotConstant>(model.resolve("v256")).reason, testing::HasSubstr("more than 256 nodes"));
  for (int i = 0; i < 65; ++i) tensor.add_dims(1);
  EXPECT_THAT(std::get<NotConstant>(model.resolve("w")).reason, testing::HasSubstr("more than 64 axes"));
}

TEST(Constants, RefusesDataThatDoesNotFitItsShape) {
  ConstantModel model;
  model.set_raw(model.add_initializer(TensorProto::FLOAT, {3}), std::vector<float>{1, 2});
  EXPECT_THROW(model.resolve("w"), Error);
  ConstantModel negative;
  negative.set_raw(negative.add_initializer(TensorProto::FLOAT, {-1}), std::vector<float>{1});
  EXPECT_THROW(negative.resolve("w"), Error);
  ConstantModel large;
  large.set_raw(large.add_initializer(TensorProto::FLOAT, {1LL << 40, 1LL << 40}), std::vector<float>{1});
  EXPECT_THROW(large.resolve("w"), Error);
}

TEST(Constants, RefusesAnOrderOfOtherAxes) {
  for (const auto& order : {std::vector<std::int64_t>{0, 0}, {0}, {1, 2}, {0, -1}}) {
    ConstantModel model;
    model.set_raw(model.add_initializer(TensorProto::FLOAT, {1, 2}), std::vector<float>{1, 2});
    AttributeProto& perm = *model.add_node("Transpose", "w", "v").add_attribute();
    perm.set_name("perm");
    for (const std::int64_t axis : order) perm.add_ints(axis);
    EXPECT_THROW(model.resolve("v"), Error);
  }
}

}  // namespace
}  // namespace weightmill
