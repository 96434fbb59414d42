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

TEST(FoldRecords, WordsOfPlacementsGoBothWays) {
  for (const auto placement : {ExternalData::automatic, ExternalData::never, ExternalData::always}) {
    EXPECT_EQ(external_data(name_of(placement)), placement);
  }
}

TEST(FoldRecords, RefusesAnUnknownWord) {
  EXPECT_THROW(fold_semantics("exact"), Error);
  EXPECT_THROW(external_data("sometimes"), Error);
}

TEST(FoldRecords, CountsTensorsByOutcome) {
  FoldReport report;
  report.tensors.resize(3);
  report.tensors[1].outcome = FoldOutcome::folded;
  EXPECT_EQ(report.count(FoldOutcome::left), 2u);
  EXPECT_EQ(report.count(FoldOutcome::folded), 1u);
}

}  // namespace
}  // namespace weightmill
