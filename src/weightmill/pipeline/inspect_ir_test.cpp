#include "inspect_ir.h"

#include <filesystem>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "fold_ir.h"
#include "testkit/ir_builder.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testkit::IrBuilder;

class InspectIr : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("inspect_ir_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path in() const { return folder_ / "in.xml"; }

  fs::path folder_;
};

TEST_F(InspectIr, ShowsWeightsAndWhatAFoldWouldMakeOfThem) {
  IrBuilder ir;
  const int x = ir.parameter("x", {1, 2});
  const int folds = ir.fake_quantize("fq", ir.constant("w", "f32", {2, 2}, {0, 1, 2, 3}), -3, 3, 255);
  const int stays = ir.fake_quantize("wide", ir.constant("v", "f32", {2, 2}, {0, 1, 2, 3}), -3, 3, 65536);
  ir.result(ir.layer("a", "MatMul", "", {x, folds}, "f32", {1, 2}));
  ir.result(ir.layer("b", "MatMul", "", {x, stays}, "f32", {1, 2}));
  ir.result(ir.layer("c", "MatMul", "", {x, ir.constant("plain", "f32", {2, 2}, {1, 2, 3, 4})}, "f32", {1, 2}));
  ir.result(ir.binary("d", "Add", x, ir.fake_quantize("bias", ir.constant("b", "f32", {2}, {0, 1}), 0, 1, 256)));
  ir.write(in());
  const InspectReport before = inspect_ir(in());
  EXPECT_EQ(before.format, "OpenVINO IR");
  ASSERT_EQ(before.rows.size(), 4u);
  EXPECT_EQ(before.rows[0].op_name, "MatMul");
  EXPECT_EQ(before.rows[0].name, "w");
  EXPECT_EQ(before.rows[0].dtype, DType::f32);
  EXPECT_EQ(before.rows[0].shape, (Shape{2, 2}));
  EXPECT_EQ(before.rows[0].n_scales, 1u);
  EXPECT_EQ(before.rows[0].note, "fake-quantized at run time: `weightmill fold` stores it as int8, 16 -> 4 bytes");
  EXPECT_THAT(before.rows[1].note, HasSubstr("levels outside 3..256"));
  EXPECT_EQ(before.rows[2].n_scales, 0u);
  EXPECT_EQ(before.rows[2].note, "");
  EXPECT_EQ(before.rows[3].op_name, "FakeQuantize");
  EXPECT_THAT(before.rows[3].note, HasSubstr("uint8"));

  fold_ir(in(), folder_ / "out.xml", {});
  const InspectReport after = inspect_ir(folder_ / "out.xml");
  ASSERT_EQ(after.rows.size(), 3u) << "nothing is left of the FakeQuantize over b";
  EXPECT_EQ(after.rows[0].name, "fq/codes");
  EXPECT_EQ(after.rows[0].dtype, DType::i8);
  EXPECT_EQ(after.rows[0].size_bytes, 4u);
  EXPECT_EQ(after.rows[0].n_scales, 1u);
}

TEST_F(InspectIr, ShowsZeroPoints) {
  IrBuilder ir;
  const int codes = ir.convert("float", ir.constant("w", "u8", {2, 2}, {0, 1, 2, 3}), "f32");
  const int shifted = ir.binary("minus", "Subtract", codes, ir.constant("z", "f32", {2, 1}, {5, 7}));
  const int scaled = ir.binary("scaled", "Multiply", shifted, ir.constant("s", "f32", {2, 1}, {0.5, 0.25}));
  ir.result(ir.layer("a", "MatMul", "", {ir.parameter("x", {1, 2}), scaled}, "f32", {1, 2}));
  ir.write(in());
  const InspectReport report = inspect_ir(in());
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].dtype, DType::u8);
  EXPECT_EQ(report.rows[0].n_scales, 2u);
  EXPECT_EQ(report.rows[0].lowest_zero_point, 5);
  EXPECT_EQ(report.rows[0].highest_zero_point, 7);
}

TEST_F(InspectIr, RefusesWhatIsNoModel) {
  IrBuilder ir;
  ir.result(ir.constant("w", "f32", {2}, {0, 1}));
  ir.write(in());
  fs::remove(folder_ / "in.bin");
  EXPECT_THROW(inspect_ir(in()), Error);
  EXPECT_THROW(inspect_ir(folder_ / "none.xml"), Error);
}

}  // namespace
}  // namespace weightmill
