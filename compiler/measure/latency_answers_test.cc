#include "compiler/measure/latency_answers.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/measure/testing/pairs.h"

namespace fusion {
namespace {

class LatencyAnswersTest : public ::testing::Test {
 protected:
  LatencyAnswersTest() {
    context_.device = &device_;
    context_.oracle = &devices_;
    kernels_.Start(&maker_.graph(), &layouts_, &device_);
    answers_.Start(&kernels_.typical());
  }
  // Two questions in one group for each pair of operators: both in one kernel, and one after the other.
  std::vector<KernelQuestion> Groups(int from, int to) {
    std::vector<KernelQuestion> questions;
    for (int pair = from; pair < to; ++pair) {
      const std::string group = absl::StrCat("pair ", pair);
      questions.push_back({{*kernels_.Get({2 * pair, 2 * pair + 1})}, "fused", group});
      questions.push_back({{*kernels_.Get({2 * pair}), *kernels_.Get({2 * pair + 1})}, "apart", group});
    }
    return questions;
  }
  // Returns how many groups were measured, as one.
  int Measured(int from, int to) {
    const auto answers = answers_.Ask(Groups(from, to));
    EXPECT_TRUE(answers.ok()) << answers.status();
    int count = 0;
    for (size_t a = 0; a < answers->size(); a += 2) {
      EXPECT_EQ(IsMeasured((*answers)[a].source), IsMeasured((*answers)[a + 1].source));
      EXPECT_GT((*answers)[a].latency_ns, 0);
      count += IsMeasured((*answers)[a].source) ? 1 : 0;
    }
    return count;
  }

  const testing::GraphMaker maker_ = testing::TwentyPairs();
  const DeviceModel device_ = testing::Avx512Device();
  const ValueLayouts layouts_;
  testing::CountingOracle devices_{1};
  CompileContext context_;
  KernelCache kernels_{1};
  LatencyAnswers answers_{context_, 1};
};

// A question takes ten seconds, and there is a minute. The first round is asked whole, later rounds as far as time
// allows, in groups, and then estimates answer.
TEST_F(LatencyAnswersTest, MeasuringEndsWithItsTime) {
  double now = 0;
  devices_.measuring = [&](size_t questions) { now += 10.0 * static_cast<double>(questions); };
  answers_.LimitMeasuring(60, [&] { return now; });
  EXPECT_EQ(Measured(0, 1), 1);
  EXPECT_EQ(answers_.left_s(), 40);
  EXPECT_EQ(Measured(1, 5), 2);
  EXPECT_EQ(now, 60);
  EXPECT_EQ(Measured(5, 7), 0);
  EXPECT_EQ(Measured(0, 3), 3);  // remembered from before
  EXPECT_EQ(now, 60);
  EXPECT_EQ(answers_.answered(LatencySource::kMeasured), 6);
  EXPECT_EQ(answers_.answered(LatencySource::kModel), 8);
  // Answers from the database take no time.
  devices_.known = true;
  EXPECT_EQ(Measured(10, 12), 2);
}

TEST_F(LatencyAnswersTest, ACallerMayKeepToTheLimitItself) {
  answers_.LimitMeasuring(0, [] { return 0.0; });
  EXPECT_EQ(Measured(0, 1), 0);
  answers_.LeaveLimitToCaller();
  EXPECT_EQ(Measured(1, 2), 1);
}

TEST_F(LatencyAnswersTest, EqualQuestionsAreAskedOnce) {
  EXPECT_FALSE(answers_.Remembers(Groups(0, 1)));
  EXPECT_EQ(Measured(0, 1), 1);
  EXPECT_TRUE(answers_.Remembers(Groups(0, 1)));
  EXPECT_FALSE(answers_.Remembers(Groups(0, 2)));
  EXPECT_EQ(Measured(0, 1), 1);
  EXPECT_EQ(Measured(20, 21), 1);  // equal to the first pair
  EXPECT_EQ(devices_.batches, std::vector<size_t>{2});
  EXPECT_EQ(answers_.questions(), 2);
}

TEST_F(LatencyAnswersTest, TheFirstWordAboutTheDatabaseStands) {
  EXPECT_FALSE(answers_.Knows(Groups(0, 1)).value());
  devices_.known = true;
  EXPECT_FALSE(answers_.Knows(Groups(0, 1)).value());
  EXPECT_TRUE(answers_.Knows(Groups(1, 2)).value());
}

}  // namespace
}  // namespace fusion
