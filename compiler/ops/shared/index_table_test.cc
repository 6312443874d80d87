#include "compiler/ops/shared/index_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace fusion::ops {
namespace {

// The element that the index denotes where the axes have these values; axis d has number d.
int64_t At(const te::Index& index, const std::vector<int64_t>& values) {
  std::vector<te::Index> points;
  for (const int64_t value : values) points.push_back(te::Index(value));
  const te::Index settled =
      te::Substitute(index, [&](const te::Axis& axis) -> const te::Index* { return &points[axis.id]; });
  EXPECT_TRUE(settled.parts().empty());
  return settled.constant();
}

TEST(ReshapeIndices, NameTheSameElementInBothShapes) {
  const std::vector<std::pair<Shape, Shape>> reshapes = {
      {{6, 4}, {2, 3, 4}}, {{2, 3, 4}, {6, 4}}, {{24}, {2, 3, 4}},       {{4, 6}, {8, 3}},
      {{3, 1, 8}, {3, 8}}, {{2, 12}, {8, 3}},   {{1, 24, 1}, {4, 1, 6}}, {{5, 6, 2}, {5, 3, 4}}};
  for (const auto& [out, in] : reshapes) {
    std::vector<te::Index> coordinates;
    for (size_t d = 0; d < out.size(); ++d) coordinates.push_back(te::Index(te::Axis{static_cast<int>(d), out[d]}));
    const std::vector<te::Index> source = ReshapeIndices(coordinates, out, in);
    ASSERT_EQ(source.size(), in.size());
    for (int64_t element = 0; element < NumElements(out); ++element) {
      std::vector<int64_t> at(out.size());
      int64_t rest = element;
      for (size_t d = out.size(); d-- > 0; rest /= out[d]) at[d] = rest % out[d];
      int64_t linear = 0;
      for (size_t d = 0; d < in.size(); ++d) {
        const int64_t coordinate = At(source[d], at);
        EXPECT_GE(coordinate, 0);
        EXPECT_LT(coordinate, in[d]);
        linear = linear * in[d] + coordinate;
      }
      EXPECT_EQ(linear, element);
    }
  }
}

TEST(AffineRuns, CoverAllValuesInOrder) {
  for (const std::vector<int64_t>& values :
       {std::vector<int64_t>{}, {7}, {7, 7, 7}, {0, 1, 2, 10, 12, 14, 3}, {5, 4, 3, 3, 3, 9}, {1, 0, 1, 0}}) {
    int64_t next = 0;
    for (const ops::Run& run : AffineRuns(values)) {
      EXPECT_EQ(run.begin, next);
      ASSERT_GT(run.end, run.begin);
      for (int64_t i = run.begin; i < run.end; ++i) EXPECT_EQ(values[i], run.first + run.step * (i - run.begin));
      next = run.end;
    }
    EXPECT_EQ(next, static_cast<int64_t>(values.size()));
  }
}

}  // namespace
}  // namespace fusion::ops
