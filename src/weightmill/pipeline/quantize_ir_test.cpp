#include "quantize_ir.h"

#include <string>

#include <gmock/gmock.h>

#include <testkit/ir_builder.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using testing::HasSubstr;
using testkit::IrBuilder;

/// A matrix of ones behind layers that `between` adds, and a MatMul that reads it.
template <class Between>
IrBuilder product(const IrBuilder::Dims& stored, const Between& between) {
  IrBuilder ir;
  std::int64_t n = 1;
  for (const std::int64_t extent : stored) n *= extent;
  const int w = ir.constant("w", "f16", stored, std::vector<double>(static_cast<std::size_t>(n), 1));
  const int x = ir.parameter("x", {1, 4});
  const int read = between(ir, w);
  ir.result(ir.layer("product", "MatMul", "transpose_a=\"false\" transpose_b=\"true\"", {x, read}, "f32", {1, 6}));
  return ir;
}

int reshape(IrBuilder& ir, int input, const std::vector<double>& target, bool special_zero) {
  IrBuilder::Dims rank{static_cast<std::int64_t>(target.size())};
  const int shape = ir.constant("target", "i32", rank, target);
  const std::string data = special_zero ? "special_zero=\"true\"" : "special_zero=\"false\"";
  return ir.layer("reshape", "Reshape", data, {input, shape}, "f16", {6, 4});
}

WeightQuantizeReport plan(const IrBuilder& ir, const WeightQuantizeOptions& options = {}) {
  const std::string xml = ir.xml();
  return plan_quantize_weights_ir({reinterpret_cast<const std::uint8_t*>(xml.data()), xml.size()}, ir.bin(), options);
}

/// Why the only weight was left.
std::string reason(const IrBuilder& ir) {
  try {
    plan(ir);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    return error.what();
  }
  ADD_FAILURE() << "was quantized";
  return "";
}

TEST(QuantizeIr, FollowsReshapes) {
  struct Case {
    IrBuilder::Dims stored;
    std::vector<double> target;
    bool special_zero;
  };
  for (const Case& at : {Case{{24}, {6, 4}, false}, Case{{2, 3, 4}, {-1, 4}, false}, Case{{6, 2, 2}, {0, -1}, true},
                         Case{{6, 4}, {0, 0}, true}}) {
    const auto report =
        plan(product(at.stored, [&](IrBuilder& ir, int w) { return reshape(ir, w, at.target, at.special_zero); }));
    EXPECT_EQ(report.weights.front().shape, (Shape{6, 4}));
    EXPECT_EQ(report.weights.front().granularity, "per axis 0");
    EXPECT_EQ(report.weights.front().via.size(), 1u);
  }
}

TEST(QuantizeIr, LeavesWeightsWhoseShapeIsNotKnown) {
  for (const auto& target : {std::vector<double>{6, 5}, {-1, -1}, {0, 4}, {-2, 12}, {-1, 5}, {}}) {
    EXPECT_THAT(reason(product({24}, [&](IrBuilder& ir, int w) { return reshape(ir, w, target, false); })),
                HasSubstr("the shape that Reshape reshape gives it is not known"));
  }
}

TEST(QuantizeIr, LeavesWeightsThatAreNarrowed) {
  EXPECT_THAT(reason(product({6, 4}, [](IrBuilder& ir, int w) { return ir.convert("narrow", w, "bf16"); })),
              HasSubstr("Convert narrow changes it"));
}

TEST(QuantizeIr, CountsBytesAsTheyWouldBeWritten) {
  const IrBuilder ir = product({6, 4}, [](IrBuilder& b, int w) { return b.convert("wide", w, "f32"); });
  WeightQuantizeOptions options;
  options.weight_type = DType::u4;
  const QuantizedWeight row = plan(ir, options).weights.front();
  EXPECT_EQ(row.bytes_before, 48u);
  EXPECT_EQ(row.bytes_after, 12u + 6 * 4 + 3);
  EXPECT_EQ(row.type_before, DType::f16);
  EXPECT_EQ(row.type_after, DType::u4);
}

}  // namespace
}  // namespace weightmill
