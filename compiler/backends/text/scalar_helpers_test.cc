#include "compiler/backends/text/scalar_helpers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion::text {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<int> Numbers(const std::string& text) {
  std::vector<int> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    int number = -2;
    EXPECT_TRUE(absl::SimpleAtoi(word, &number)) << text;
    numbers.push_back(number);
  }
  return numbers;
}

// The lanes of two vectors, one after the other, that a shuffle takes; -1: any.
std::vector<int> Shuffled(const std::vector<int>& first, const std::vector<int>& second,
                          const std::vector<int>& lanes) {
  std::vector<int> result;
  const int count = static_cast<int>(first.size());
  for (const int lane : lanes) result.push_back(lane < 0 ? -1 : lane < count ? first[lane] : second[lane - count]);
  return result;
}

std::vector<int> From(int begin, int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(begin + i);
  return numbers;
}

TEST(Lanes, AreZippedFromTheHalvesOfTwoVectors) {
  for (const int lanes : {4, 8, 16}) {
    const std::vector<int> low = Shuffled(From(0, lanes), From(100, lanes), Numbers(ZippedLanes(lanes, 0)));
    const std::vector<int> high = Shuffled(From(0, lanes), From(100, lanes), Numbers(ZippedLanes(lanes, lanes / 2)));
    ASSERT_EQ(low.size(), static_cast<size_t>(lanes));
    for (int i = 0; i < lanes; ++i) {
      EXPECT_EQ(low[i], i / 2 + (i % 2 != 0 ? 100 : 0));
      EXPECT_EQ(high[i], lanes / 2 + i / 2 + (i % 2 != 0 ? 100 : 0));
    }
  }
}

TEST(Lanes, EverySecondOfTwoVectors) {
  for (const int lanes : {4, 8, 16}) {
    const std::vector<int> even = Shuffled(From(0, lanes), From(lanes, lanes), Numbers(EvenLanes(lanes)));
    for (int i = 0; i < lanes; ++i) EXPECT_EQ(even[i], 2 * i);
  }
}

TEST(Lanes, EveryThirdOfThreeVectorsThatEndWithTheLastOneWanted) {
  for (const int lanes : {4, 8, 16}) {
    // The elements wanted are 0, 3, …, 3·lanes − 3. The third vector ends with the last of them.
    const int begin = 3 * lanes - 3 - (lanes - 1);
    const std::vector<int> two = Shuffled(From(0, lanes), From(lanes, lanes), Numbers(ThirdLanes(lanes, false)));
    const std::vector<int> all = Shuffled(two, From(begin, lanes), Numbers(ThirdLanes(lanes, true)));
    for (int i = 0; i < lanes; ++i) EXPECT_EQ(all[i], 3 * i) << lanes;
  }
}

TEST(ScalarHelpers, DoublesAreThereOnRequest) {
  EXPECT_THAT(ScalarHelpers(true), HasSubstr("_f64"));
  EXPECT_THAT(ScalarHelpers(false), Not(HasSubstr("_f64")));
  const auto name = [](const std::string& function, bool f64) {
    return absl::StrCat("own_", function, f64 ? "64" : "");
  };
  EXPECT_THAT(LibraryNames(true, name), HasSubstr("#define exp_f32 own_exp\n#define exp_f64 own_exp64\n"));
  EXPECT_THAT(LibraryNames(false, name), Not(HasSubstr("f64")));
}

}  // namespace
}  // namespace fusion::text
