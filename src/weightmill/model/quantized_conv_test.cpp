#include "quantized_conv.h"

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

TEST(ConvMode, IsFoundByItsName) {
  for (int i = 0; i <= static_cast<int>(ConvMode::mult31_i16); ++i) {
    const auto mode = static_cast<ConvMode>(i);
    EXPECT_EQ(conv_mode_of(name_of(mode)), mode);
  }
}

TEST(ConvMode, RefusesUnknownNamesAndListsTheKnown) {
  try {
    conv_mode_of("int7");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_option);
    EXPECT_NE(std::string_view(error.what()).find("E_MODE"), std::string_view::npos);
    EXPECT_NE(std::string_view(error.what()).find("mult31_i8"), std::string_view::npos);
  }
}

TEST(DiagnosticCode, EachHasNameCauseAndRemedy) {
  for (int i = 0; i <= static_cast<int>(DiagnosticCode::scale_for_gain); ++i) {
    const auto code = static_cast<DiagnosticCode>(i);
    EXPECT_EQ(name_of(code)[1], '_');
    EXPECT_FALSE(cause_of(code).empty());
    EXPECT_FALSE(remedy_of(code).empty());
  }
  EXPECT_EQ(name_of(DiagnosticCode::bias_reduced), "W_BIAS_REDUCED");
  EXPECT_EQ(name_of(DiagnosticCode::scale_for_gain), "I_SCALE_FOR_GAIN");
}

}  // namespace
}  // namespace weightmill
