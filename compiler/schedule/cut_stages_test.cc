#include "compiler/schedule/cut_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// %1 = exp %0; %2 = sums of its rows; %3 = quotient; %4 = the rows of %0 doubled, which nothing else reads.
te::Program Stages() {
  te::Program program = te::Parse(R"(te p(%0: f32[8, 16]) {
    %1[i0<8, i1<16]: f32 = exp(%0[i0, i1])
    %2[i2<8]: f32 = sum.f32(i3<16) %1[i2, i3]
    %3[i4<8, i5<16]: f32 = mul(%0[i4, i5], 2.0)
    %4[i6<8, i7<16]: f32 = div(%1[i6, i7], %2[i6])
    return %3, %4
  })")
                            .value();
  for (size_t t = 0; t < program.tes.size(); ++t) program.tes[t].origins = {static_cast<int>(t)};
  return program;
}

HandOverRequest Asked(te::TensorId tensor, int producer, int consumer, Scope nearest, Scope furthest) {
  return {tensor, producer, consumer, nearest, furthest, true};
}

std::vector<te::TensorId> Results(const te::Program& program) {
  std::vector<te::TensorId> results;
  for (const te::Te& te : program.tes) results.push_back(te.outputs[0]);
  return results;
}

TEST(CutStages, StagesThatNothingSeparatesAreOneGroup) {
  const CutProgram cut = CutStages(Stages(), {}, CutEdges::kAllowed).value();
  // The doubled rows share nothing with the other stages, so they are a group of their own, which comes when theirs is
  // complete.
  EXPECT_THAT(Results(cut.program), ElementsAre(1, 2, 4, 3));
  EXPECT_THAT(cut.cuts, ElementsAre(3));
}

TEST(UnconnectedStages, AreGroupsInTheirOrder) {
  te::Program program = Stages();
  const CutProgram cut = UnconnectedStages(program);
  EXPECT_THAT(Results(cut.program), ElementsAre(1, 2, 4, 3));
  EXPECT_THAT(cut.cuts, ElementsAre(3));
  program.tes.erase(program.tes.begin() + 2);  // the doubled rows
  EXPECT_THAT(UnconnectedStages(program).cuts, testing::IsEmpty());
}

TEST(CutStages, OnlyWhatMustBeCutOrWhatMayBe) {
  const std::vector<HandOverRequest> requests = {Asked(1, 0, 1, Scope::kLane, Scope::kDevice),
                                                 Asked(1, 0, 3, Scope::kDevice, Scope::kDevice),
                                                 Asked(2, 1, 3, Scope::kDevice, Scope::kDevice)};
  const CutProgram required = CutStages(Stages(), requests, CutEdges::kRequired).value();
  EXPECT_THAT(Results(required.program), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(required.cuts, ElementsAre(2, 3));
  const CutProgram allowed = CutStages(Stages(), requests, CutEdges::kAllowed).value();
  EXPECT_THAT(allowed.cuts, ElementsAre(1, 2, 3));
}

TEST(CutStages, AGroupThatWouldWaitForItselfIsRefused) {
  // Exponentials and quotients stay together, and the sums that are between them would have a phase of their own.
  const std::vector<HandOverRequest> requests = {Asked(1, 0, 1, Scope::kDevice, Scope::kDevice),
                                                 Asked(2, 1, 3, Scope::kDevice, Scope::kDevice)};
  EXPECT_THAT(CutStages(Stages(), requests, CutEdges::kRequired).status().message(),
              HasSubstr("would have to wait for tasks that wait for them"));
}

// The sums of rows are computed in two parts: %2 are those of chunks, and %3 adds them.
TEST(CutStages, PartialResultsAreMadeInFrontOfTheCut) {
  te::Program program = te::Parse(R"(te p(%0: f32[8, 16]) {
    %1[i0<8, i1<16]: f32 = exp(%0[i0, i1])
    %2[i2<4, i3<8]: f32 = sum.f32(i4<4) %1[i3, 4*i2 + i4]
    %3[i5<8]: f32 = sum.f32(i6<4) %2[i6, i5]
    %4[i7<8, i8<16]: f32 = div(%1[i7, i8], %3[i7])
    return %4
  })")
                            .value();
  for (size_t t = 0; t < program.tes.size(); ++t) program.tes[t].origins = {t == 0 ? 0 : 1};
  const std::vector<HandOverRequest> requests = {Asked(1, 0, 1, Scope::kDevice, Scope::kDevice)};
  EXPECT_THAT(CutStages(program, requests, CutEdges::kRequired).value().cuts, ElementsAre(1));
  const te::TensorId partial = program.tes[1].outputs[0];
  const CutProgram cut = CutStages(program, requests, CutEdges::kRequired, {partial}).value();
  EXPECT_THAT(cut.cuts, ElementsAre(2));
  EXPECT_EQ(cut.program.tes[1].outputs[0], partial);
}

TEST(CutStages, DefaultsCutNothing) {
  HandOverRequest request = Asked(2, 1, 3, Scope::kDevice, Scope::kDevice);
  request.asked = false;
  EXPECT_THAT(CutStages(Stages(), {request}, CutEdges::kAllowed).value().cuts, ElementsAre(3));
  EXPECT_FALSE(MayCut({request}));
  request.asked = true;
  EXPECT_TRUE(MayCut({request}));
}

}  // namespace
}  // namespace fusion
