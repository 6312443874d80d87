// ArgMax and ArgMin through the printed kernels: ties, not-a-numbers, infinities and types, along rows of all lengths.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;

// Whole numbers from -3 to 3, so that most rows have ties. With `hard`, some rows contain infinities and NaN.
std::vector<double> Values(int64_t rows, int64_t columns, bool hard) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t random = (r * 7919 + c * c * 31 + c * 17) % 101;
      double value = static_cast<double>(random % 7 - 3);
      if (hard && r % 5 == 1 && random % 29 == 3) value = nan;
      if (hard && r % 5 == 2) value = r % 2 == 0 ? -inf : inf;
      if (hard && r % 5 == 3 && random % 19 == 4) value = random % 2 == 0 ? inf : -inf;
      if (hard && r % 5 == 4) value = random % 2 == 0 ? 0.0 : -0.0;
      values.push_back(value);
    }
  }
  return values;
}

void AddBoth(G* g, V x, int64_t axis) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const int64_t last : {0, 1}) {
      g->Out(g->Op(op, {x}, {{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last_index", last}}));
    }
  }
}

TEST(CodegenExtreme, TiesAndNotANumbers) {
  std::vector<FusionCase> cases;
  for (const int64_t columns : {5, 31, 32, 47, 64, 130, 1000}) {
    G g;
    AddBoth(&g, g.In(Tensor::From<double>(DType::kF32, {10, columns}, Values(10, columns, /*hard=*/true))), 1);
    cases.push_back(FusionCase("rows of " + std::to_string(columns), g));
  }
  G g;  // behind a map, which may be computed again for each of the two
  AddBoth(&g, g.Op("Mul", {g.In(Tensor::From<double>(DType::kF32, {10, 100}, Values(10, 100, true))), g.In({100})}), 1);
  cases.push_back(FusionCase("of products", g));
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenExtreme, Types) {
  std::vector<FusionCase> cases;
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI16, DType::kU16,
                            DType::kI32, DType::kI64}) {
    G g;
    std::vector<double> values = Values(6, 75, IsFloat(dtype));
    if (!IsSigned(dtype)) {
      for (double& value : values) value += 3;
    }
    AddBoth(&g, g.In(Tensor::From<double>(dtype, {6, 75}, values)), 1);
    cases.push_back(FusionCase(std::string("of ") + DTypeName(dtype), g));
  }
  EXPECT_EQ(Failures(cases), "");
}

}  // namespace
}  // namespace fusion::testing
