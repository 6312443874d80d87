// Which launches become one (compiler/launch/join_kernels.h).
#ifndef FUSION_COMPILER_PIPELINE_JOIN_LAUNCHES_H_
#define FUSION_COMPILER_PIPELINE_JOIN_LAUNCHES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/api/compile_account.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// Several launches that are one.
struct JoinedLaunch {
  std::vector<size_t> fusion_blocks;  // in the order in which they run
  int64_t barriers = 0;               // of the device in a run
  int64_t loops = 0;                  // whose iterations it runs
};

// Joins the launches of a planned program, and renumbers its loops. A loop is one launch where the device's rates of
// launches and barriers say that this is faster; neighbours of one subprogram of the plan are one launch wherever
// that can be.
std::vector<JoinedLaunch> JoinLaunches(const DeviceModel& device, int units, Planned* planned,
                                       std::vector<PlannedLaunch>* launches);

// For people, a line each: "one launch with 19 barriers: fusion blocks 3, 4".
std::string InWords(const std::vector<JoinedLaunch>& joined);

// Counts the launches that are left, and writes to plan.json which are joined.
void AccountForJoined(const std::vector<JoinedLaunch>& joined, int64_t launches, CompileAccount* account);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_JOIN_LAUNCHES_H_
