// Reads the text that movement::Print writes, so that a tool or a test can begin with a movement graph.
#ifndef FUSION_COMPILER_MOVEMENT_PARSE_H_
#define FUSION_COMPILER_MOVEMENT_PARSE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Parses and verifies a kernel, which then prints as `text`. The text leaves out some facts:
// - labels, and which tensors of a program buffers and packs belong to (-1);
// - the values of transform matrices, of which the text has the shapes (zeros);
// - the range of integers that an index loads (0 to 2^31 - 1).
//
// Fails with INVALID_ARGUMENT: "line 3: expected …, found '…'", or what Verify found.
absl::StatusOr<Kernel> Parse(const std::string& text);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PARSE_H_
