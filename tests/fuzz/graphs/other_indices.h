// Indices outside of what they index. ONNX calls them an error; kernels read the nearest element instead (ops/shared/
// index_table.h), and import may know another extent than a run does, so that such a result says nothing.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_OTHER_INDICES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_OTHER_INDICES_H_

#include <optional>

#include "compiler/te/program/program.h"

namespace fusion::fuzz {

// Returns the program with the first element in place of the nearest one wherever an index lies outside; nullopt where
// it computes no index. A result that differs hangs on such an index, and one that does not may have one that never
// counts (an iteration past a loop's end).
std::optional<te::Program> WithOtherIndices(const te::Program& program);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_OTHER_INDICES_H_
