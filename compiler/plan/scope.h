// Scope: where a value lives between the stage that makes it and those that read it, and so how far they are
// synchronised. Plans, schedules and kernels speak of the same scopes.
#ifndef FUSION_COMPILER_PLAN_SCOPE_H_
#define FUSION_COMPILER_PLAN_SCOPE_H_

#include <cstdint>

namespace fusion {

// Nearest first.
enum class Scope : uint8_t {
  kLane,    // in a register of the lane that made it
  kWarp,    // in registers, handed from one lane of a vector or warp to another
  kBlock,   // in the scratch of one task: a core's cache, a work-group's shared memory
  kDevice,  // in global memory of one kernel: another phase reads it, after a barrier of the device
  kKernel,  // in global memory, as an argument: another launch reads it
};
const char* ScopeName(Scope scope);  // "lane"

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_SCOPE_H_
