// The key of a whole plan: a SHA-256 over everything that its latency depends on, under which its measurements are
// stored. Names and the values of weights are no part of it, as for kernels (compiler/measure/question_keys.h).
#ifndef FUSION_COMPILER_BUNDLE_PLAN_KEY_H_
#define FUSION_COMPILER_BUNDLE_PLAN_KEY_H_

#include <string>
#include <vector>

#include "compiler/bundle/program_layout.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// `program` is laid out from `launches`. The key covers the kernels and the order of their launches, which arguments are
// the same memory (weights that launches share, values in one place of the arena), where in the arena they lie, the
// device's fingerprint, the number of threads, `math` (the mode in which the runtime treats subnormals), and the
// generator's version. The measurement is of warm runs.
std::string PlanKey(const LaidOut& program, const std::vector<PlannedLaunch>& launches, const DeviceModel& device,
                    int threads, const std::string& math);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_PLAN_KEY_H_
