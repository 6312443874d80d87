// KernelDraft: the kernel of a fusion block while its phases are added, with all that adding one needs. The schedulers
// of stages (stage_phases.h, stitch/stitch_stages.h) take it as their last argument and add to it.
#ifndef FUSION_COMPILER_SCHEDULE_KERNEL_DRAFT_H_
#define FUSION_COMPILER_SCHEDULE_KERNEL_DRAFT_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/layout/layout.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/rewrite/minimal_filtering.h"
#include "compiler/schedule/stitch/join_rows.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/te/program/program.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {

// The references and `choices` must outlive the draft.
struct KernelDraft {
  KernelDraft(const te::Program& program, const std::map<te::TensorId, Layout>& layouts, const DeviceModel& device,
              ChoiceLog* choices);

  const te::Program& program;
  const std::map<te::TensorId, Layout>& layouts;
  const DeviceModel& device;
  const TargetStrategy& target;  // of the device
  ChoiceLog* const choices;
  AxisSource axes;
  movement::Kernel kernel;
  bool repeats_combinations = false;      // FormRequest
  bool beside = false;                    // FormRequest
  const PlainSums* plain_sums = nullptr;  // FormRequest
  RegisterRequests registers;             // what the plan says of them
  // Producer and consumer, as origins, of the hand-overs that the plan asks to stay inside a task.
  std::set<std::pair<int, int>> inside_tasks;
  std::map<te::TensorId, std::string> not_in_registers;  // of those that are wanted there: why not
  std::vector<int> buffer_of;  // by tensor, -1: none yet; inputs and outputs have theirs from the start
  std::map<te::TensorId, te::Box> scratch_boxes;  // tensors of which a task's scratch holds this box
  // The physical dimension of each tensor whose box holds its rows in a ring: row r lies at place r % (its length).
  std::map<te::TensorId, size_t> ring_dimensions;

  Layout LayoutOfTensor(te::TensorId tensor) const;
  // Adds a buffer for the whole tensor and returns its number.
  int AddBuffer(te::TensorId tensor, Scope scope);
  // Adds buffers that one phase passes to the next, for tensors that have none.
  void AddDeviceBuffers(const std::set<te::TensorId>& tensors);
  // Addresses in scratch boxes are relative to the box's origin; all others go through the tensor's layout.
  movement::Store AddressOf(te::TensorId tensor, const std::vector<te::Index>& indices) const;
  absl::StatusOr<PhysicalTe> Physical(const te::Te& te);
  // The loop nest of a stage over flat buffers. Fails where a tensor has no buffer.
  absl::StatusOr<Nest> MakeNest(const PhysicalTe& physical) const;

  // The state before an attempt, which is restored when the attempt fails.
  struct Saved {
    movement::Kernel kernel;
    AxisSource axes;
    ChoiceLog choices;
  };
  Saved Save() const { return {kernel, axes, *choices}; }
  void Restore(const Saved& saved);
};

// Fuses and splits the nest's axes, so that addresses are straight, for a phase of its own or for a task. Returns
// whether a reduction axis was rounded up, which only a register tile can do with.
bool StraightenNest(Nest* nest, KernelDraft* draft, bool in_task = false);
// The same for a threadgroup tile.
void StraightenForGroup(Nest* nest, KernelDraft* draft);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_KERNEL_DRAFT_H_
