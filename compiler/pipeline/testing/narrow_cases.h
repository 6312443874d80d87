// Cases with floats of at most 8 bits and integers of fewer, for every device: all codes, and the values around every
// point where the encoding changes.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_NARROW_CASES_H_
#define FUSION_COMPILER_PIPELINE_TESTING_NARROW_CASES_H_

#include <vector>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {

std::vector<FusionCase> NarrowCases();

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_NARROW_CASES_H_
