#include "client/verbs/repeated_weights.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(RepeatedWeights, EveryReaderHasARow) {
  const std::string table = RepeatedWeightsTable(
      {{{"w", "x"},
        1024,
        {{"as it is", 1024, {{"Gather 'a'", 2, "none of its 3 other schedules reads another of them"}}},
         {"packed [16, 16]",
          1024,
          {{"MatMul 'b'", 1, "it has no other schedule"}, {"MatMul 'c'", 1, "that neither"}}}}}});
  const char* expected =
      R"(WEIGHT HELD TWICE  FORM             SIZE     READER                  WHY IT READS NO OTHER FORM
w and 1 more       as it is         1.0 KiB  Gather 'a', 2 launches  none of its 3 other schedules reads another of them
                   packed [16, 16]  1.0 KiB  MatMul 'b'              it has no other schedule
                                             MatMul 'c'              that neither
)";
  EXPECT_EQ(table, expected);
}

}  // namespace
}  // namespace fusion
