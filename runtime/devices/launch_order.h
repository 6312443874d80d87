// The launches of a run in order, on devices that launch each iteration of a repeat by itself.
#ifndef FUSION_RUNTIME_DEVICES_LAUNCH_ORDER_H_
#define FUSION_RUNTIME_DEVICES_LAUNCH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/bundle/manifest.h"

namespace fusion {

// A launch in one iteration of its repeat; iteration 0 where it has none.
struct LaunchedAt {
  size_t launch = 0;
  int64_t iteration = 0;
};
// A launch that runs the iterations itself is there once.
std::vector<LaunchedAt> LaunchesInOrder(const ManifestProgram& program);

// Bytes by which the buffer has moved in an iteration.
int64_t MovedBy(const ManifestProgram& program, int buffer, int64_t iteration);
// Does the buffer move with a repeat that runs inside of its launch?
bool MovesInLaunch(const ManifestProgram& program, int buffer);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_LAUNCH_ORDER_H_
