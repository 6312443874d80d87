#include "compiler/te/ranges/task_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusion::te {
namespace {

const Axis kTasks{0, 14}, kOther{1, 3};

std::vector<int64_t> Values(const Index& index) {
  const std::optional<TaskValues> values = ValuesOf(index);
  EXPECT_TRUE(values.has_value()) << ToString(index);
  return values ? values->values : std::vector<int64_t>();
}

// The points of [0, extent) that a span covers in a task.
std::vector<int64_t> Covered(int64_t origin, int64_t length, int64_t extent) {
  std::vector<int64_t> points;
  for (int64_t p = std::max<int64_t>(origin, 0); p < std::min(origin + length, extent); ++p) points.push_back(p);
  return points;
}

bool Holds(const std::vector<int64_t>& all, const std::vector<int64_t>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(TaskSpans, EnumerateAnIndex) {
  EXPECT_EQ(Values(Index(7)), std::vector<int64_t>{7});
  EXPECT_EQ(Values(Index(kOther) * 4 - 1), (std::vector<int64_t>{-1, 3, 7}));
  EXPECT_EQ(Values(FloorDiv(Index(kOther) + 1, 2)), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_FALSE(ValuesOf(Index(kTasks) + Index(kOther)).has_value()) << "two axes";
  EXPECT_FALSE(ValuesOf(Index::Load(0, {Index(kTasks)}, {0, 3})).has_value());
  EXPECT_FALSE(ValuesOf(Index(Axis{2, int64_t{1} << 40})).has_value()) << "too many tasks";
}

TEST(TaskSpans, AnIndexHasTheValuesItWasMadeOf) {
  for (const std::vector<int64_t>& values :
       {std::vector<int64_t>{0, 3, 7, 11, 12}, {0, 0, 0, 1, 2, 3, 4, 4}, {5}, {-2, 9}, {4, 4, 4}, {9, 6, 3, 0, 0}}) {
    const Axis axis{0, static_cast<int64_t>(values.size())};
    const std::optional<Index> index = IndexOf({axis, values});
    ASSERT_TRUE(index.has_value());
    const std::vector<int64_t> read = Values(*index);
    for (size_t task = 0; task < values.size(); ++task) EXPECT_EQ(read[index->IsConstant() ? 0 : task], values[task]);
  }
  std::vector<int64_t> squares;
  for (int64_t i = 0; i < 64; ++i) squares.push_back(i * i);
  EXPECT_FALSE(IndexOf({Axis{0, 64}, squares}).has_value()) << "every task takes another step";
}

// Windows of many sizes over images of many sizes: tiles of rows, padding and strides, some beyond the image.
TEST(TaskSpans, AMovedSpanCoversWhatItCovered) {
  int moved_ones = 0;
  for (const int64_t extent : {1, 2, 5, 13, 56}) {
    for (const int64_t step : {1, 2, 4, 8}) {
      for (const int64_t padding : {0, 1, 3, 60}) {
        for (const int64_t length : {1, 3, 6, 9}) {
          const Axis tasks{0, (extent + 2 * padding) / step + 1};
          const Span span{Index(tasks) * step - padding, length};
          const std::optional<Span> moved = MovedInside(span, extent);
          if (!moved) {  // the borders of many tasks
            EXPECT_GT(2 * padding + length, 12 * step) << extent << " rows, step " << step << ", padding " << padding;
            continue;
          }
          ++moved_ones;
          EXPECT_TRUE(LiesInside(*moved, extent));
          for (int64_t task = 0; task < tasks.extent; ++task) {
            const std::vector<int64_t> origins = Values(moved->origin);
            const int64_t origin = origins[moved->origin.IsConstant() ? 0 : task];
            EXPECT_TRUE(Holds(Covered(origin, moved->length, extent), Covered(task * step - padding, length, extent)))
                << extent << " rows, step " << step << ", padding " << padding << ", task " << task;
          }
        }
      }
    }
  }
  EXPECT_GT(moved_ones, 100);
}

TEST(TaskSpans, ASpanInsideStays) {
  const Span span{Index(kTasks) * 4, 4};
  const std::optional<Span> moved = MovedInside(span, 56);
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->origin, span.origin);
  EXPECT_FALSE(LiesInside({Index(kTasks) * 4 - 1, 4}, 56));
  EXPECT_FALSE(LiesInside(span, 55));
}

TEST(TaskSpans, AHullCoversBoth) {
  const Span window{Index(kTasks) * 4 - 1, 6}, own{Index(kTasks) * 4, 4};
  const std::optional<Span> inside = MovedInside(window, 56);
  ASSERT_TRUE(inside.has_value());
  const std::optional<Span> hull = HullInside(*inside, own, 56);
  ASSERT_TRUE(hull.has_value());
  EXPECT_EQ(hull->length, 6);
  const std::vector<int64_t> origins = Values(hull->origin);
  ASSERT_EQ(origins.size(), 14u);
  EXPECT_EQ(origins.front(), 0);
  EXPECT_EQ(origins.back(), 50);
  EXPECT_FALSE(HullInside(own, {Index(kOther), 4}, 56).has_value()) << "tasks along another axis";
}

}  // namespace
}  // namespace fusion::te
