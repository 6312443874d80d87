// SharePackings: kernels that pack a constant differently are scheduled again such that they agree, where that costs
// little time. The programs of a bundle, and the products of a program, then hold the constant once.
#ifndef FUSION_COMPILER_BUNDLE_SHARE_PACKINGS_H_
#define FUSION_COMPILER_BUNDLE_SHARE_PACKINGS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/bundle/emit.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/choices.h"
#include "runtime/bundle/weights_account.h"

namespace fusion {

struct SharingProgram {
  const ecg::Graph* graph = nullptr;
  std::vector<PlannedLaunch>* launches = nullptr;
  // Returns the kernels of a launch, one for each set of its arguments, as these choices make them. FAILED_PRECONDITION
  // and others where they make none.
  std::function<absl::StatusOr<std::vector<FusionKernel>>(size_t launch, const Choices& choices)> reschedule;
  const std::map<const void*, std::string>* not_held_once = nullptr;  // as HoldOnce returns it; null: unknown
};

// Constants, which all programs share (see ConstantPool), that several packings still hold at the end.
struct SharingLeft {
  std::set<const void*> costly;  // some schedule would share them, but costs too much time
  std::vector<double> more_ns;   // by program: the estimated time that sharing costs
  // All of them, with their readers and what refuses each reader another form.
  std::vector<RepeatedWeight> repeated;
};

// Takes the choices of kernels one at a time, and of all that save bytes the one that saves most. For a program, all
// changes may together cost at most a hundredth of its estimated time; with `whatever_it_costs`, time does not matter.
SharingLeft SharePackings(const DeviceModel& device, int threads, bool whatever_it_costs,
                          const std::vector<SharingProgram>& programs);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_SHARE_PACKINGS_H_
