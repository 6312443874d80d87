// Makes one kernel from one fusion block: lowering, stages, schedule, movement graph, and the meaning of each argument.
#ifndef FUSION_COMPILER_KERNELS_FUSION_KERNEL_H_
#define FUSION_COMPILER_KERNELS_FUSION_KERNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/layout/value_layouts.h"
#include "compiler/movement/kernel.h"
#include "compiler/plan/plan.h"
#include "compiler/schedule/schedule_fusion_block.h"

namespace fusion {

struct KernelArg {
  enum class Kind { kValue, kConstant, kTemporary };
  Kind kind = Kind::kValue;
  ecg::ValueId value = ecg::kNone;  // kValue; kConstant: the graph's constant, or kNone with `literal`
  Tensor literal;                   // kConstant made by a lowering (an index table)
  int pack = -1;                    // kConstant: index into kernel.packs of its packing; -1: not packed
  Layout layout;                    // kConstant, not packed: the layout of its bytes (always plain today)
  bool written = false;
};

// The scope that a hand-over of the plan really has.
struct RealisedHandOver {
  ecg::ValueId value = ecg::kNone;
  int consumer = -1;  // position among the fusion block's members, ascending
  Scope scope = Scope::kLane;
};

struct FusionKernel {
  movement::Kernel kernel;
  std::vector<KernelArg> args;               // parallel to the kernel- and device-scope buffers
  std::vector<RealisedHandOver> hand_overs;  // every one between two nodes of the fusion block
  // Parallel to the kernel's phases: the positions of the members for which it computes, ascending. Empty for a
  // routine.
  std::vector<std::vector<int>> phase_members;
  std::string reason;  // why it has several phases; empty where its stages share a task
  // OK, or why the fusion block should not be one kernel: a hand-over goes further than the plan allows by default, or
  // the kernel would need too many registers. FAILED_PRECONDITION.
  absl::Status fits;
  bool measured = false;  // its schedule was measured to be the fastest; what is not asked for may then go further
  std::string key;        // SHA-256 of the movement graph: equal keys, equal code
  double flops = 0;
  std::vector<ChoicePoint> choices;  // the choices of its schedule
};

// Fails with FAILED_PRECONDITION where a hand-over cannot have a scope that the fusion block asks for, or where a
// directive cannot be met. Hand-overs and directives among the options are ignored.
absl::StatusOr<FusionKernel> MakeFusionKernel(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                              const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts,
                                              const DeviceModel& device, ScheduleOptions options = {});

// A hand-over as the fusion block plans it and as the kernel has it.
struct PlannedHandOver {
  HandOver planned;
  Scope realised = Scope::kLane;
};
// Every hand-over between two nodes of the fusion block whose kernel this is.
std::vector<PlannedHandOver> BesidePlan(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                        const FusionKernel& kernel);

// Holds the kernel against its fusion block. Fails with INTERNAL, naming the nodes, where a hand-over lies outside the
// scopes that the fusion block allows. The defaults do not bind a schedule that was measured to be faster (a product by
// a library, whose epilogue is another phase); what is asked for does.
absl::Status CheckRealised(const ecg::Graph& graph, const FusionBlock& fusion_block, const FusionKernel& kernel);

// Accounts for the kernel, on a device with typical rates.
FusionBlockAccount AccountOf(const FusionKernel& kernel, const DeviceModel& typical, int threads);

// Returns the kernel with arguments that stand for `to[i]` where they stood for `from[i]`.
FusionKernel WithValues(const FusionKernel& kernel, const std::vector<ecg::ValueId>& from,
                        const std::vector<ecg::ValueId>& to);

// Kernels that are launched one after another.
using KernelSequence = std::vector<std::shared_ptr<const FusionKernel>>;

// An argument that stands for the same value as an argument of an earlier kernel in the sequence: the last such one.
struct SharedArgument {
  int arg = 0;
  int earlier_kernel = 0, earlier_arg = 0;
};
std::vector<SharedArgument> SharedArguments(const KernelSequence& kernels, int kernel);

// For people: "Conv+Relu [1,64,56,56]".
std::string DescribeFusionBlock(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes);

// Returns LiveOut (compiler/plan/fusion_block.h); never empty, since a kernel stores something.
std::vector<ecg::ValueId> LiveOutOf(const ecg::Graph& graph, const FusionBlock& fusion_block);

}  // namespace fusion

#endif  // FUSION_COMPILER_KERNELS_FUSION_KERNEL_H_
