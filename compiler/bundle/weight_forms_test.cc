#include "compiler/bundle/weight_forms.h"

#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

// One constant is the right operand of a product, which packs it; another one is added as it is.
TEST(WeightForms, AKernelReadsConstantsPackedAndAsTheyAre) {
  testing::GraphMaker g;
  const ecg::ValueId matrix = g.Weight({64, 96}), bias = g.Weight({96});
  g.Out(g.Op("Add", {g.Op("MatMul", {g.In({32, 64}), matrix}), bias}));
  const auto kernel = MakeFusionKernel(g.graph(), {0, 1}, LiveOutOf(g.graph(), std::vector<ecg::NodeId>{0, 1}), {},
                                       testing::Avx512Device());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Forms forms;
  AddForms(g.graph(), *kernel, &forms);
  AddForms(g.graph(), *kernel, &forms);  // the same again
  ASSERT_EQ(forms.size(), 2u);
  for (const auto& [form, facts] : forms) {
    const bool is_matrix = form.source == g.graph().value(matrix).constant->data();
    EXPECT_EQ(form.packing.empty(), !is_matrix);
    EXPECT_EQ(facts.words.rfind(is_matrix ? "packed [" : "as it is", 0), 0u) << facts.words;
    EXPECT_EQ(facts.name, g.graph().value(is_matrix ? matrix : bias).name);
    EXPECT_EQ(facts.source_bytes, is_matrix ? 64 * 96 * 4 : 96 * 4);
    EXPECT_EQ(facts.covered, facts.source_bytes);
    EXPECT_GE(facts.bytes, facts.covered);
  }
}

}  // namespace
}  // namespace fusion
