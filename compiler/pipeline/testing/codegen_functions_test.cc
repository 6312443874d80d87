// Elementary functions and casts through the printed kernels, at their special values.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/function_cases.h"
#include "runtime/devices/cpu/subnormals.h"

namespace fusion::testing {
namespace {

TEST(CodegenFunctions, SpecialValues) { EXPECT_EQ(Failures(FunctionCases()), ""); }

// Logarithms and powers of `values`.
FusionCase LogarithmsAndPowers(DType dtype, const std::vector<double>& values) {
  GraphMaker g;
  const ecg::ValueId x = g.In(Tensor::From<double>(dtype, {static_cast<int64_t>(values.size())}, values));
  g.Out(g.Op("Log", {x}));
  for (const double e : {0.3, -1.0, -0.3, 7.0}) g.Out(g.Op("Pow", {x, g.Scalar(e, dtype)}));
  return FusionCase(absl::StrCat("of ", values.size(), " ", DTypeName(dtype)), g);
}

// Where subnormal numbers are flushed, a logarithm or a power of one is that of zero, on single values, too.
TEST(CodegenFunctions, SubnormalOperandsAreZero) {
  std::vector<FusionCase> cases;  // in pairs: of subnormal numbers and of zeros
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const double small : {dtype == DType::kF32 ? 1e-40 : 1e-310, 0.0}) {
      cases.push_back(LogarithmsAndPowers(dtype, {small}));
      cases.push_back(LogarithmsAndPowers(dtype, {2, small, -small, 3, small, 0.5, -small}));
    }
    std::swap(cases[cases.size() - 3], cases[cases.size() - 2]);
  }
  std::vector<RunOptions> options = AllOptions();  // without those whose kernels this machine only builds
  std::erase_if(options, [](const RunOptions& one) { return !CanRun(one.device).ok(); });
  std::vector<FusionResult> results;
  {
    const ScopedSubnormals zero(Subnormals::kZero);
    results = RunCases(cases, options);
  }
  const size_t runs = options.size();
  ASSERT_EQ(results.size(), cases.size() * runs);
  for (size_t i = 0; i < results.size(); ++i) {
    if (i / runs % 2 != 0) continue;
    const FusionResult &of_small = results[i], &of_zero = results[i + runs];
    ASSERT_EQ(of_small.outputs.size(), 5u) << of_small.name << ": " << of_small.status;
    for (size_t o = 0; o < of_small.outputs.size(); ++o) {
      const absl::Status equal = CompareOutputs(of_zero.outputs[o], of_small.outputs[o]);
      EXPECT_TRUE(equal.ok()) << of_small.name << ", output " << o << ": " << equal;
    }
  }
}

}  // namespace
}  // namespace fusion::testing
