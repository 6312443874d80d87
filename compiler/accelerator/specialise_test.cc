#include "compiler/accelerator/specialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/accelerator/testing/small_models.h"
#include "compiler/accelerator/whole_program.h"
#include "compiler/plan/planners/graph_turbo/lowering/te_evaluator.h"
#include "compiler/plan/planners/graph_turbo/lowering/variants.h"
#include "runtime/devices/dsa_sim/execute.h"
#include "runtime/devices/dsa_sim/unit_evaluator.h"

namespace fusion::accelerator {
namespace {

// The program with unit code computes, to the bit, what it computes with the interpreter on its expressions.
TEST(Specialise, KeepsTheNumbers) {
  for (const char* text : {kConvolutions, kLookup}) {
    const ecg::Graph graph = GraphOf(text);
    const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
    ASSERT_TRUE(model.ok()) << model.status();
    graph_turbo::Cluster cluster;
    cluster.cores = model->machine.cores();
    cluster.local_bytes = model->machine.GroupOf(0).local_bytes.value;
    cluster.global_bytes = model->machine.global_bytes.value;
    for (const std::string& variant : graph_turbo::VariantNames()) {
      const auto lowered = graph_turbo::LowerVariant(model->layers, variant, cluster, model->machine, DType::kF32);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      dsa::Values inputs;
      for (const dsa::Buffer& buffer : lowered->program.buffers) {
        if (!buffer.input) continue;
        const bool addresses = text == kLookup && buffer.name == "in0";
        const Tensor random =
            RandomTensor(addresses ? DType::kI64 : DType::kF32, {buffer.elements}, DeriveSeed(1, inputs.size()), 9);
        std::vector<float>& values = inputs[buffer.name];
        for (int64_t i = 0; i < buffer.elements; ++i) {
          values.push_back(addresses ? static_cast<float>(random.GetInt(i)) : static_cast<float>(random.GetDouble(i)));
        }
      }
      graph_turbo::TeEvaluator interpreter(lowered->expressions);
      const auto expected = dsa::Execute(lowered->program, inputs, &interpreter);
      ASSERT_TRUE(expected.ok()) << expected.status();
      const auto special = Specialise(*lowered);
      ASSERT_TRUE(special.ok()) << special.status();
      auto evaluator = dsa::UnitEvaluator::Create(*special);
      ASSERT_TRUE(evaluator.ok()) << evaluator.status();
      const auto actual = dsa::Execute(*special, inputs, &*evaluator);
      ASSERT_TRUE(actual.ok()) << actual.status();
      EXPECT_EQ(*actual, *expected) << variant;
    }
  }
}

TEST(Specialise, PartsThatComputeAlikeShareTheirCode) {
  // Rows are cut into many tiles, of which all but the last are alike.
  const ecg::Graph graph = GraphOf(R"(graph g(%x: f32[4096, 16]) {
    %w: f32[16, 16] = const #3d0000003e000000
    %m: f32[4096, 16] = MatMul(%x, %w)
    %y: f32[4096, 16] = Relu(%m)
    return %y
  })");
  const auto model = PlaceModel(graph, SmallStcp920(), DType::kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto program = MakeWholeProgram(*model, "l1");
  ASSERT_TRUE(program.ok()) << program.status();
  int64_t parts = 0;
  const auto parsed = dsa::Parse(program->text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (const dsa::Instruction& instruction : parsed->instructions) {
    parts += instruction.part.present();
  }
  EXPECT_GT(parts, 50);
  EXPECT_LE(program->unit_codes, 8);
}

}  // namespace
}  // namespace fusion::accelerator
