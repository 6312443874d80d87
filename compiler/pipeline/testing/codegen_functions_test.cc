// Elementary functions and casts through the printed kernels, at their special values.
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/function_cases.h"

namespace fusion::testing {
namespace {

TEST(CodegenFunctions, SpecialValues) { EXPECT_EQ(Failures(FunctionCases()), ""); }

}  // namespace
}  // namespace fusion::testing
