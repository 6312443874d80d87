// The layout pass chooses one layout per value for the whole graph before fusion blocks are scheduled. Layouts never
// change results (every load and store goes through the index map), only how contiguous the accesses are.
//
// - Anchors propose. An anchor is a reduction whose output channel moves with a constant operand and not with the lanes
//   of the other operand (a convolution, recognised by axis roles). It wants its output blocked by the vector width on
//   that axis, and also that other operand, whose channels it then reads from one line.
// - Joins vote. An expression that reads a value at its own channel index wants both in one layout, so whole residual
//   networks agree.
// - Inputs and outputs of the model, and the values that routines walk, stay plain and veto their group.
//
// Estimates decide (layout_search.h) where some of a group's operators refuse what others propose (channels that are
// shuffled, parts that start inside a vector), or where only a depthwise convolution asks for the layout. They also decide
// about a value of bytes that a dot product reads and that is plain only because its group is.
#ifndef FUSION_COMPILER_CHOOSE_LAYOUTS_CHOOSE_LAYOUTS_H_
#define FUSION_COMPILER_CHOOSE_LAYOUTS_CHOOSE_LAYOUTS_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/layout/value_layouts.h"

namespace fusion {

absl::StatusOr<ValueLayouts> ChooseLayouts(const ecg::Graph& graph, const DeviceModel& device, int threads);

}  // namespace fusion

#endif  // FUSION_COMPILER_CHOOSE_LAYOUTS_CHOOSE_LAYOUTS_H_
