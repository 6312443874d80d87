// Kernels that are launched one after another, and loops of launches, as one launch: a persistent kernel whose
// work-groups wait for each other between phases. (Souffle, ASPLOS 2024, section 6.4: a barrier of the grid instead of
// a launch; an LSTM is one kernel in its section 8.4.)
#ifndef FUSION_COMPILER_LAUNCH_JOIN_KERNELS_H_
#define FUSION_COMPILER_LAUNCH_JOIN_KERNELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/loop_memory.h"

namespace fusion {

// Kernels that run once, or in every iteration of a loop.
struct KernelRun {
  std::vector<const FusionKernel*> kernels;
  int loop = -1;  // an index into ecg::Loops::list; -1: they run once
  int64_t trips = 1;
};

// May these runs share a launch? FAILED_PRECONDITION, in words for people, where a library or a routine computes a
// phase, where tiles need work-groups of different sizes, or where there are more arguments than a launch takes.
absl::Status CheckJoins(const std::vector<KernelRun>& runs, const DeviceModel& device);

// One kernel that does what the runs do one after another. A value is one argument, whichever kernels use it; those
// that move with a loop move with its phases. Fails as CheckJoins, and with INTERNAL where the kernel is not well
// formed.
absl::StatusOr<FusionKernel> JoinKernels(const std::vector<KernelRun>& runs, const LoopMemory& memory,
                                         const DeviceModel& device);

// The nanoseconds of the runs where each kernel is a launch.
double ApartNs(const std::vector<KernelRun>& runs, const DeviceModel& device, int threads);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_JOIN_KERNELS_H_
