// Copies that a place in memory makes unnecessary: the parts of a Concat are written where they stand in its result,
// a Slice is read where it stands in its operand. What SmartMem (ASPLOS 2024) does for layout transforms, for whatever
// kernel is left that only copies.
#ifndef FUSION_COMPILER_PIPELINE_ELIDE_COPIES_H_
#define FUSION_COMPILER_PIPELINE_ELIDE_COPIES_H_

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "compiler/pipeline/block_kernel.h"

namespace fusion {

// A value that lies in another's memory, which may itself lie in another's.
struct Inside {
  ecg::ValueId whole = ecg::kNone;
  int64_t offset_bytes = 0;
};

struct ElidedCopies {
  std::set<size_t> blocks;  // that need no kernel
  std::map<ecg::ValueId, Inside> values;
};

// `kernels`: of all blocks, in order. Inputs, outputs and constants of the graph have memory of their own and stay as
// they are; so does what would not begin on a cache line, and a value that two results would hold.
ElidedCopies ElideCopies(const ecg::Graph& graph, const std::vector<std::shared_ptr<const BlockKernel>>& kernels);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_ELIDE_COPIES_H_
