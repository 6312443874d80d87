#include "compiler/accelerator/program_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/accelerator/testing/small_models.h"

namespace fusion::accelerator {
namespace {

using ::testing::HasSubstr;

TEST(ProgramAccount, SaysWhatTheProgramTakes) {
  const ecg::Graph graph = GraphOf(kConvolutions);
  const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto program = MakeWholeProgram(*model, "graph_turbo");
  ASSERT_TRUE(program.ok()) << program.status();
  CompileAccount account;
  account.rewrites.push_back({"", "a-rule", "a node", 1, 2, 3});
  AccountForProgram(*model, *program, &account);
  EXPECT_EQ(account.kernels, 1);
  EXPECT_EQ(account.estimate_ns, program->timing.cycles) << "at 1 GHz";
  EXPECT_EQ(account.intermediate_bytes_before, 2 * 8 * 144 * 4) << "of the one tensor between the layers";
  EXPECT_EQ(account.intermediate_bytes_after, 0) << "it stays in the LBs";
  const auto baseline = MakeWholeProgram(*model, "tvm_like");
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  CompileAccount of_baseline;
  AccountForProgram(*model, *baseline, &of_baseline);
  EXPECT_EQ(of_baseline.intermediate_bytes_after, account.intermediate_bytes_before);
  const nlohmann::json plan = nlohmann::json::parse(account.plan_json);
  EXPECT_EQ(plan["program"]["cycles"], program->timing.cycles);
  EXPECT_EQ(plan["program"]["results_lb"], program->results.local);
  EXPECT_EQ(plan["layers"].size(), 2u);
  EXPECT_EQ(plan["rewrites"][0]["rule"], "a-rule");
  const double share = plan["program"]["utilisation"]["mme"];
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1);
  const auto facts = FactsOf(*model, *program);
  EXPECT_EQ(facts.at("planner"), "graph_turbo");
  EXPECT_THAT(facts.at("simulated"), HasSubstr("cycles"));
  EXPECT_THAT(PlanInWords(*model, *program), HasSubstr("layer 1: "));
}

}  // namespace
}  // namespace fusion::accelerator
