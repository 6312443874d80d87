#include "tests/fuzz/graphs/mild_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

TEST(MildValues, FiniteElementsAreSmall) {
  EXPECT_TRUE(IsMild(Tensor::From<double>(DType::kF32, {4}, {-1000, 0, INFINITY, NAN})));
  EXPECT_FALSE(IsMild(Tensor::From<double>(DType::kF32, {2}, {0, 1001})));
  EXPECT_FALSE(IsMild(Tensor::From<double>(DType::kF32, {1}, {-3e38})));
}

TEST(MildValues, ConstantsAndInputsAreMild) {
  Drawing draw(1, GraphLimits());
  for (int64_t elements = 1; elements < 3 * ecg::kMaxPrintedElements; ++elements) {
    const Shape shape = {elements};
    EXPECT_TRUE(IsMild(DrawInput(MildName(shape, &draw), DType::kF32, shape)));
    ecg::Graph graph;
    graph.AddOutput(graph.AddConstant("c", MildConstant(shape, &draw)), "y");
    const ecg::Graph materialised = Materialise(graph);
    const ecg::Value& constant = materialised.value(materialised.outputs().at(0));
    EXPECT_TRUE(IsMild(*constant.constant)) << "a filling is mild as what it stands for";
  }
}

}  // namespace
}  // namespace fusion::fuzz
