// Elementary functions and casts where they are hard: zeros of both signs, infinities, not-a-numbers, arguments far
// outside of what a polynomial covers, powers of negative numbers.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_
#define FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_

#include <vector>

#include "compiler/pipeline/testing/run_block.h"

namespace fusion::testing {

std::vector<BlockCase> FunctionCases();

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_
