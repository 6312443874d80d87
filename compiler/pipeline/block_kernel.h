// One block of the graph → one kernel: lowering, stages, schedule, movement graph; with the meaning of each argument.
#ifndef FUSION_COMPILER_PIPELINE_BLOCK_KERNEL_H_
#define FUSION_COMPILER_PIPELINE_BLOCK_KERNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/movement/kernel.h"
#include "compiler/pipeline/layout_pass.h"
#include "compiler/schedule/schedule_block.h"

namespace fusion {

struct KernelArg {
  enum class Kind { kValue, kConstant, kTemporary };
  Kind kind = Kind::kValue;
  ecg::ValueId value = ecg::kNone;  // kValue; kConstant: the graph's constant, or kNone with `literal`
  Tensor literal;                   // kConstant made by a lowering (an index table)
  int pack = -1;                    // kConstant: index into kernel.packs of its reordering; -1: as it is
  Layout layout;                    // kConstant, unpacked: of its bytes (always plain today)
  bool written = false;
};

struct BlockKernel {
  movement::Kernel kernel;
  std::vector<KernelArg> args;  // parallel to the kernel- and device-scope buffers
  bool stitched = true;
  std::string reason;  // why not stitched
  std::string key;     // SHA-256 of the movement graph: equal keys, equal code
  double flops = 0;
  std::vector<ChoicePoint> choices;  // of its schedule
};

absl::StatusOr<BlockKernel> MakeBlockKernel(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes,
                                            const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts,
                                            const DeviceModel& device, const ScheduleOptions& options = {});

// The kernel with its arguments standing for `to[i]` where they stood for `from[i]`.
BlockKernel WithValues(const BlockKernel& kernel, const std::vector<ecg::ValueId>& from,
                       const std::vector<ecg::ValueId>& to);

// Kernels that are launched one after another.
using KernelSequence = std::vector<std::shared_ptr<const BlockKernel>>;

// An argument that stands for a value which an argument of an earlier kernel of the sequence stands for too: the last.
struct SharedArgument {
  int arg = 0;
  int earlier_kernel = 0, earlier_arg = 0;
};
std::vector<SharedArgument> SharedArguments(const KernelSequence& kernels, int kernel);

// For people: "Conv+Relu [1,64,56,56]".
std::string DescribeBlock(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes);

// LiveOut (compiler/fusion/plan.h) of the nodes as a block; never empty, since a kernel stores something.
std::vector<ecg::ValueId> LiveOutOf(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_BLOCK_KERNEL_H_
