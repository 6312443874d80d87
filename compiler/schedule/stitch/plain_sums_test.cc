#include "compiler/schedule/stitch/plain_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using ::fusion::testing::Device;
using ::fusion::testing::OrFail;
using ::fusion::testing::Stages;
using ::testing::HasSubstr;

constexpr char kImage[] = R"(te p(%0: f32[1, 32, 16, 24], %1: f32[32, 32, 3, 3] const) {
  %2[i0<1, i1<32, i2<16, i3<24]: f32 = sum.f32(i4<32, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6]) then (max(acc0, 0.0))
  return %2
})";
constexpr char kRow[] = R"(te p(%0: f32[1, 32, 64], %1: f32[48, 32, 3] const) {
  %2[i0<1, i1<48, i2<64]: f32 = sum.f32(i3<32, i4<3) mul(%0[i0, i3, i2 + i4 - 1]?0.0, %1[i1, i3, i4])
  return %2
})";

movement::Kernel InForm(const char* text, const std::string& form) {
  ScheduleOptions options;
  options.directives = {{-1, "form", form}};
  return OrFail(ScheduleFusionBlock(Stages(text), {}, Device(), options)).kernel;
}

struct Found {
  std::vector<const movement::Step*> looks, finite, rare;
};

Found StepsOf(const movement::Kernel& kernel) {
  Found found;
  for (const movement::Phase& phase : kernel.phases) {
    for (const movement::Step& step : phase.steps) {
      if (step.look) found.looks.push_back(&step);
      if (step.runs_if) (step.runs_if->finite ? found.finite : found.rare).push_back(&step);
    }
  }
  return found;
}

TEST(PlainSums, InTheTaskThatFilters) {
  const movement::Kernel kernel = InForm(kImage, "winograd4");
  const Found found = StepsOf(kernel);
  ASSERT_EQ(found.looks.size(), 1u) << movement::Print(kernel);
  ASSERT_EQ(found.rare.size(), 1u);
  EXPECT_EQ(found.looks[0]->label, "filter_output");
  EXPECT_EQ(kernel.buffers[found.looks[0]->look->buffer].scope, Scope::kBlock);
  ASSERT_FALSE(found.finite.empty());
  EXPECT_TRUE(movement::AreAlternatives(*found.finite.back(), *found.rare[0]));
  EXPECT_EQ(found.finite.back()->stores[0].buffer, found.rare[0]->stores[0].buffer);
  EXPECT_EQ(found.rare[0]->then.size(), 1u) << "with the epilogue";
  // The filter is held once, packed for the products.
  int filters = 0;
  for (const movement::Buffer& buffer : kernel.buffers) filters += buffer.is_constant && buffer.elements >= 32 * 32 * 9;
  EXPECT_EQ(filters, 1);
}

// Each task of the products leaves a look in memory, and each task behind the barrier adds them up.
TEST(PlainSums, BehindABarrier) {
  const movement::Kernel kernel = InForm(kRow, "winograd2-phases");
  const Found found = StepsOf(kernel);
  ASSERT_EQ(found.looks.size(), 1u) << movement::Print(kernel);
  EXPECT_EQ(found.looks[0]->label, "filter_products");
  const movement::Buffer& looks = kernel.buffers[found.looks[0]->look->buffer];
  EXPECT_EQ(looks.scope, Scope::kDevice);
  EXPECT_EQ(looks.elements, kernel.phases[kernel.phases.size() - 2].tasks());
  const movement::Phase& last = kernel.phases.back();
  EXPECT_EQ(last.steps.front().label, "look");
  EXPECT_EQ(&last.steps.back(), found.rare.at(0));
  EXPECT_EQ(found.rare[0]->runs_if->buffer, last.steps.front().stores[0].buffer);
}

TEST(PlainSums, WithoutThemNothingLooks) {
  EXPECT_THAT(movement::Print(InForm(kImage, "plain")), ::testing::Not(HasSubstr("look")));
}

}  // namespace
}  // namespace fusion
