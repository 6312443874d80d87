// FusionSignature: everything that the kernel of a fusion block depends on. Models repeat themselves, in layers and in
// unrolled steps; all repetitions share one kernel and differ only in the values that its arguments stand for.
#ifndef FUSION_COMPILER_KERNELS_FUSION_SIGNATURE_H_
#define FUSION_COMPILER_KERNELS_FUSION_SIGNATURE_H_

#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/layout/value_layouts.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// Constants of up to this many elements enter the signature with their elements. Larger ones of i32 and i64 (index
// tables) enter by identity. All others, and opaque ones, enter by their type alone.
inline constexpr int64_t kMaxSignedElements = 64;

struct FusionSignature {
  std::string text;                   // equal for fusion blocks of one structure; not for people
  std::vector<ecg::ValueId> values;   // the graph's values, in the order in which the text numbers them
  std::vector<ecg::ValueId> weights;  // the constants that enter by their type alone
};

// Arguments as for MakeFusionKernel. Valid while the graph's constants live.
FusionSignature SignFusionBlock(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts);

}  // namespace fusion

#endif  // FUSION_COMPILER_KERNELS_FUSION_SIGNATURE_H_
