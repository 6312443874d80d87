// Elementary functions and casts at difficult values: zeros of both signs, infinities, NaN, arguments far outside the
// range of a polynomial, powers of negative numbers.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_
#define FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_

#include <vector>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {

std::vector<FusionCase> FunctionCases();

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_FUNCTION_CASES_H_
