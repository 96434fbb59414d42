#include "fold.h"

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

TEST(FoldRecords, WordsOfSemanticsGoBothWays) {
  for (const auto semantics : {FoldSemantics::strict, FoldSemantics::openvino, FoldSemantics::mo2021}) {
    EXPECT_EQ(fold_semantics(name_of(semantics)), semantics);
  }
}

TEST(FoldRecords, RefusesAnUnknownWord) { EXPECT_THROW(fold_semantics("exact"), Error); }

TEST(FoldRecords, CountsTensorsByOutcome) {
  FoldReport report;
  report.tensors.resize(3);
  report.tensors[1].outcome = FoldOutcome::folded;
  EXPECT_EQ(report.count(FoldOutcome::left), 2u);
  EXPECT_EQ(report.count(FoldOutcome::folded), 1u);
}

}  // namespace
}  // namespace weightmill
