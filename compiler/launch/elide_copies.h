// Removes copies by placing values: the parts of a Concat are written where they stand in its result, and a Slice is
// read where it stands in its operand. SmartMem (ASPLOS 2024) does this for layout transforms; here it applies to every
// remaining kernel that only copies.
#ifndef FUSION_COMPILER_LAUNCH_ELIDE_COPIES_H_
#define FUSION_COMPILER_LAUNCH_ELIDE_COPIES_H_

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/loop_memory.h"

namespace fusion {

// A value that lies in another value's memory, which may itself lie in another's.
struct Inside {
  ecg::ValueId whole = ecg::kNone;
  int64_t offset_bytes = 0;
};

struct ElidedCopies {
  std::set<size_t> fusion_blocks;  // the fusion blocks that need no kernel
  std::map<ecg::ValueId, Inside> values;
};

// `kernels` are those of all fusion blocks, in order. Some values keep their own memory: inputs, outputs and constants
// of the graph, values that would not begin on a cache line, and values that two results would hold.
// Values that loops place stay where these want them.
ElidedCopies ElideCopies(const ecg::Graph& graph, const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                         const LoopValues& of_loops = {});

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_ELIDE_COPIES_H_
