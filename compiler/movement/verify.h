// Verifies that a kernel is well formed.
#ifndef FUSION_COMPILER_MOVEMENT_VERIFY_H_
#define FUSION_COMPILER_MOVEMENT_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Checks a kernel and fails with INTERNAL. It checks that
// - every buffer lives in kernel, device or block scope,
// - every axis used by a load or store address is a grid, loop or (in bodies) reduction axis,
// - every buffer number is valid, and device- and block-scope buffers are written before they are read,
// - affine addresses of loops that nothing cuts short stay inside their buffers,
// - the axes of a step's strategy are its loops,
// - a library step is alone in a phase without a grid, and a persistent kernel has at least two phases or a phase loop,
// - phase loops are ascending and disjoint, and what moves with one is an argument that its phases alone name.
absl::Status Verify(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_VERIFY_H_
