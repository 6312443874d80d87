// HoldOnce: a constant that one kernel reads as it is and another packed is held packed alone, where that costs
// nothing.
#ifndef FUSION_COMPILER_PIPELINE_HOLD_ONCE_H_
#define FUSION_COMPILER_PIPELINE_HOLD_ONCE_H_

#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/pipeline/emit.h"

namespace fusion {

// Of a language model a table of embeddings is also the last product's right operand: the kernel that gathers a few of
// its rows finds them in the product's panels. `whatever_it_costs`: of time; otherwise no more than five thousandths of
// what the launches are estimated to take together. Constants that are packed in several ways stay as they are.
void HoldOnce(const ecg::Graph& graph, const DeviceModel& device, int threads, bool whatever_it_costs,
              std::vector<PlannedLaunch>* launches);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_HOLD_ONCE_H_
