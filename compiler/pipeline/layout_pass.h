// The layout pass: one layout per value, decided for the whole graph before blocks are scheduled. Layouts never change
// what is computed (every load and store goes through the index map), only how contiguous it is.
//
// Anchors propose: a fold whose output channel moves with a constant operand and not with the lanes of the other one (a
// convolution, told by axis roles) wants its output blocked by the vector width on that axis, and so it wants that
// operand, whose channels it then reads from one line. Joins vote: an expression that reads a value at its own channel
// index wants both in one layout, so whole residual networks agree. Inputs and outputs of the model, and what routines
// walk, stay plain and veto their group. Where some of a group's operators refuse what others propose (channels that
// are shuffled, parts that start inside a vector), or nobody but a depthwise convolution asks for it, estimates decide
// (layout_path.h).
#ifndef FUSION_COMPILER_PIPELINE_LAYOUT_PASS_H_
#define FUSION_COMPILER_PIPELINE_LAYOUT_PASS_H_

#include <map>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/schedule/layout.h"

namespace fusion {

using ValueLayouts = std::map<ecg::ValueId, Layout>;  // absent: plain

absl::StatusOr<ValueLayouts> ChooseLayouts(const ecg::Graph& graph, const DeviceModel& device, int threads);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_LAYOUT_PASS_H_
