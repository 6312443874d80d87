// BlockSignature: what the kernel of a block depends on. Models repeat themselves, in layers and in unrolled steps; the
// kernel of one repetition is that of all, but for the values that its arguments stand for.
#ifndef FUSION_COMPILER_PIPELINE_BLOCK_SIGNATURE_H_
#define FUSION_COMPILER_PIPELINE_BLOCK_SIGNATURE_H_

#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/pipeline/layout_pass.h"

namespace fusion {

// Constants of up to this many elements count by their elements, larger ones of i32 and i64 (index tables) by identity,
// all others, and opaque ones, by their type alone.
inline constexpr int64_t kMaxSignedElements = 64;

struct BlockSignature {
  std::string text;                   // equal for blocks of one structure; not for people
  std::vector<ecg::ValueId> values;   // of the graph, in the order in which the text numbers them
  std::vector<ecg::ValueId> weights;  // the constants that count by their type alone
};

// `nodes` ascending; as for MakeBlockKernel. Valid while the graph's constants live.
BlockSignature SignBlock(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes,
                         const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_BLOCK_SIGNATURE_H_
