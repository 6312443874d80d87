#include "compiler/accelerator/whole_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/accelerator/testing/small_models.h"
#include "compiler/ecg/run_checks.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::accelerator {
namespace {

using ::testing::HasSubstr;

TEST(WholeProgram, IsOneThatItsMachineRuns) {
  const ecg::Graph graph = GraphOf(kConvolutions);
  const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->machine.clusters, 1);
  EXPECT_GT(model->flops(), 2 * 2 * 144 * 8 * 27);
  for (const char* variant : {"graph_turbo", "tvm_like"}) {
    const auto program = MakeWholeProgram(*model, variant);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto parsed = dsa::Parse(program->text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(dsa::CheckOperands(model->machine, *parsed).ok());
    EXPECT_TRUE(dsa::CheckAccesses(model->machine, *parsed).ok());
    EXPECT_EQ(std::ssize(parsed->instructions), program->instructions);
    EXPECT_GT(program->timing.cycles, 0);
    EXPECT_THAT(ProgramInWords(*model, *program), HasSubstr("2 layers, "));
    // The baseline's results all go to DDR, and GraphTurbo's stay in the LBs.
    EXPECT_EQ(program->results.local > 0, program->variant == "graph_turbo");
  }
  EXPECT_EQ(MachineInWords(model->machine), "8 cores with LBs of 8 KiB and a GB of 64 KiB");
}

TEST(WholeProgram, NamesEveryNodeThatItCannotCompute) {
  const ecg::Graph graph = GraphOf(R"(graph g(%x: f32[4, 8]) {
    %k: i64[1] = const {2}
    %r: f32[4, 8] = Relu(%x)
    %v: f32[4, 2], %i: i64[4, 2] = TopK(%r, %k) {axis = 1, largest = 1, sorted = 1}
    return %v, %i
  })");
  const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("TopK '"));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("is no tensor expression"));
}

TEST(WholeProgram, RefusesALayerOfWhichOneResultHasNoElements) {
  const ecg::Graph graph = GraphOf(R"(graph g(%x: f32[4, 8]) {
    %n: i64[2] = const {0, 8}
    %r: f32[4, 8] = Relu(%x)
    %a: f32[4, 0], %b: f32[4, 8] = Split(%r, %n) {axis = 1}
    return %a, %b
  })");
  EXPECT_THAT(std::string(PlaceModel(graph, SmallStcp920(), DType::kF32).status().message()),
              HasSubstr("makes results with elements and one without any"));
}

TEST(WholeProgram, RefusesAModelThatHasToBeCheckedInTheRun) {
  ecg::Graph graph = GraphOf(R"(graph g(%x: f32[4]) {
    %y: f32[4] = Relu(%x)
    return %y
  })");
  ecg::AddRunCheck(&graph, graph.outputs()[0], "the extents are equal");
  const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("this model needs it: "));
}

TEST(WholeProgram, IntegersAreNotKeptAsHalves) {
  const ecg::Graph graph = GraphOf(kLookup);
  EXPECT_TRUE(PlaceModel(graph, SmallStcp920(), DType::kF32).ok());
  EXPECT_THAT(std::string(PlaceModel(graph, SmallStcp920(), DType::kF16).status().message()),
              HasSubstr("'ids' holds integers, which the machine keeps as f16"));
}

TEST(WholeProgram, AMachineWithoutCoresOfOneKindIsRefused) {
  const ecg::Graph graph = GraphOf(kConvolutions);
  const auto model = PlaceModel(graph, *dsa::StoredMachine("goya"), DType::kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(std::string(MakeWholeProgram(*model, "graph_turbo").status().message()),
              HasSubstr("goya has cores without an LB"));
}

}  // namespace
}  // namespace fusion::accelerator
