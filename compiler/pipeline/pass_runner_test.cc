#include "compiler/pipeline/pass_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline/verify.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A graph of two operators, of which the first is given.
ecg::Graph GraphOf(const std::string& op) {
  absl::StatusOr<ecg::Graph> graph = ecg::Parse("graph g(%x: f32[4, 8]) {\n  %a: f32[4, 8] = " + op +
                                                "(%x)\n  %b: f32[4, 8] = Sqrt(%a)\n  return %b\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// A compilation of a small graph with passes that the tests choose.
class PassRunner : public ::testing::Test {
 protected:
  PassRunner() {
    planned_.graph = GraphOf("Relu");
    context_.device = &device_;
  }
  absl::Status Run(const Pass& pass) {
    GraphFusionOracle oracle(context_, 1);
    StageClock clock(context_, &account_);
    Compilation compilation{files_, options_, context_, &oracle, &clock, &account_, &planned_};
    const absl::Status status = RunPass(pass, &compilation);
    clock.End();
    return status;
  }

  ModelFiles files_;
  CompileOptions options_;
  DeviceModel device_;
  CompileContext context_;
  CompileAccount account_;
  Planned planned_;
};

// Gives the first operator a name that none has.
absl::Status BreakGraph(Compilation* compilation) {
  compilation->planned->graph = GraphOf("Nonsense");
  return absl::OkStatus();
}

TEST_F(PassRunner, APassThatBreaksTheGraphIsNamed) {
  const absl::Status status = Run({"break", "rewrite", PassPart::kGraph, BreakGraph, Verifier::kGraph, true, "why"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), StartsWith("pass 'break' made a wrong graph (a fault of the compiler): "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("unknown operator"));
}

// A part of another pass, which the runner does not see, has the same words.
TEST_F(PassRunner, APartThatIsWrongIsNamed) {
  const absl::Status wrong = MadeWrong("share-equal", "graph", absl::InternalError("node 3 has no input"));
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(wrong.message(), "pass 'share-equal' made a wrong graph (a fault of the compiler): node 3 has no input");
}

TEST_F(PassRunner, ADisabledPassIsSkipped) {
  options_.disabled_passes = {"break"};
  EXPECT_TRUE(Run({"break", "rewrite", PassPart::kGraph, BreakGraph, Verifier::kGraph, true, "why"}).ok());
  EXPECT_EQ(planned_.graph.node(0).op, "Relu");
  EXPECT_TRUE(account_.passes.empty());
}

TEST_F(PassRunner, APassThatCannotBeDisabledIsRefusedWithItsName) {
  options_.disabled_passes = {"break"};
  const absl::Status status = Run({"break", "rewrite", PassPart::kGraph, BreakGraph, Verifier::kGraph, false, "why"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'break' cannot be disabled"));
  EXPECT_EQ(planned_.graph.node(0).op, "Relu");
}

TEST_F(PassRunner, APassThatDoesNotApplyIsSkippedWithItsStage) {
  EXPECT_TRUE(Run({"break", "rewrite", PassPart::kGraph, BreakGraph, Verifier::kGraph, true, "why",
                   [](const Compilation&) { return false; }})
                  .ok());
  EXPECT_EQ(planned_.graph.node(0).op, "Relu");
  EXPECT_TRUE(account_.stages.empty());
}

TEST_F(PassRunner, AnErrorOfAPassBeginsWithItsName) {
  const absl::Status status =
      Run({"refuse", "rewrite", PassPart::kGraph,
           [](Compilation*) -> absl::Status { return absl::UnimplementedError("operator 'X' is unknown"); },
           Verifier::kGraph, true, "why"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "refuse: operator 'X' is unknown");
}

TEST_F(PassRunner, ACancelledJobEndsBeforeTheStage) {
  context_.cancelled = [] { return true; };
  const absl::Status status = Run({"break", "rewrite", PassPart::kGraph, BreakGraph, Verifier::kGraph, true, "why"});
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(planned_.graph.node(0).op, "Relu");
}

TEST_F(PassRunner, EachPassThatRunsIsTimed) {
  ASSERT_TRUE(Run({"nothing", "rewrite", PassPart::kGraph, [](Compilation*) { return absl::OkStatus(); },
                   Verifier::kGraph, true, "why"})
                  .ok());
  ASSERT_EQ(account_.passes.size(), 1u);
  EXPECT_EQ(account_.passes[0].stage, "nothing");
  ASSERT_EQ(account_.stages.size(), 1u);
  EXPECT_GE(account_.stages[0].seconds, account_.passes[0].seconds);
}

// Two passes over a bundle of two programs: both are timed in the first account, within one stage.
TEST_F(PassRunner, PassesOverABundleSeeAllPrograms) {
  static size_t seen = 0;
  const auto look = [](absl::Span<Compilation> programs) {
    seen += programs.size();
    return absl::OkStatus();
  };
  const auto refuse = [](absl::Span<Compilation>) -> absl::Status { return absl::InternalError("no room"); };
  const auto row = [](const char* name, absl::Status (*run)(absl::Span<Compilation>)) {
    return Pass{name, "lower", PassPart::kBundle, nullptr, Verifier::kMovement, true, "why", nullptr, run};
  };
  const std::vector<Pass> passes = {row("one", look), row("two", look), row("three", refuse)};
  CompileAccount other;
  StageClock clock(context_, &account_);
  std::vector<Compilation> programs;
  for (CompileAccount* account : {&account_, &other}) {
    programs.push_back({files_, options_, context_, nullptr, &clock, account, &planned_});
  }
  EXPECT_EQ(RunBundlePasses(passes, absl::MakeSpan(programs)).message(), "three: no room");
  options_.disabled_passes = {"three"};
  EXPECT_TRUE(RunBundlePasses(passes, absl::MakeSpan(programs)).ok());
  clock.End();
  clock.End();
  EXPECT_EQ(seen, 8u);
  EXPECT_EQ(account_.passes.size(), 4u);
  EXPECT_EQ(account_.stages.size(), 1u);
  EXPECT_TRUE(other.passes.empty() && other.stages.empty());
}

TEST_F(PassRunner, ALayoutThatDoesNotFitItsValueIsNamed) {
  const absl::Status status = Run({"turn", "layout", PassPart::kPlan,
                                   [](Compilation* compilation) {
                                     Layout& layout = compilation->planned->layouts[0];
                                     layout.axis = 7;
                                     layout.block = 16;
                                     return absl::OkStatus();
                                   },
                                   Verifier::kLayouts, true, "why"});
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'turn' made a wrong layout"));
}

TEST_F(PassRunner, AFusionBlockInTwoLaunchesIsFound) {
  planned_.plan.fusion_blocks = {{{0, 1}}};
  const absl::Status status = Run({"twice", "plan", PassPart::kPlan,
                                   [](Compilation* compilation) {
                                     compilation->planned->launches = {{0}, {0}};
                                     return absl::OkStatus();
                                   },
                                   Verifier::kLaunches, true, "why"});
  EXPECT_THAT(std::string(status.message()), HasSubstr("fusion block 0 is in 2 launches, expected 1"));
}

}  // namespace
}  // namespace fusion
