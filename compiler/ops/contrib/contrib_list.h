// The families of com.microsoft operators, which optimised exports of transformers contain.
#ifndef FUSION_COMPILER_OPS_CONTRIB_CONTRIB_LIST_H_
#define FUSION_COMPILER_OPS_CONTRIB_CONTRIB_LIST_H_

#include <vector>

#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

std::vector<OpDef> ContribActivationOps();  // activations.cc: Gelu, FastGelu, BiasGelu, QuickGelu, BiasAdd, …
std::vector<OpDef> ContribProductOps();     // products.cc: FusedMatMul, FusedGemm, FusedConv
std::vector<OpDef> ContribLayerNormOps();   // layer_norms.cc: SkipLayerNormalization, EmbedLayerNormalization, …
std::vector<OpDef> ContribAttentionOps();   // attention.cc: Attention, MultiHeadAttention, GroupQueryAttention
std::vector<OpDef> ContribRotaryOps();      // rotary.cc: RotaryEmbedding

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_CONTRIB_CONTRIB_LIST_H_
