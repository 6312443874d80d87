// HoldOnce: if one kernel reads a constant unpacked and another reads it packed, the bundle holds only the packed one,
// where that costs little time.
#ifndef FUSION_COMPILER_BUNDLE_HOLD_ONCE_H_
#define FUSION_COMPILER_BUNDLE_HOLD_ONCE_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/bundle/emit.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// In a language model, a table of embeddings is also the right operand of the last product: the kernel that gathers a
// few of its rows then finds them in the product's panels. With `whatever_it_costs`, time does not matter; otherwise
// the change may cost at most a hundredth of the estimated time of all launches. Constants that are packed in
// several ways stay as they are. Returns, by their memory, why constants that are also packed are still read unpacked.
std::map<const void*, std::string> HoldOnce(const ecg::Graph& graph, const DeviceModel& device, int threads,
                                            bool whatever_it_costs, std::vector<PlannedLaunch>* launches);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_HOLD_ONCE_H_
