// Rotary position embedding as canonical nodes, for RotaryEmbedding and the attention operators.
#ifndef FUSION_COMPILER_OPS_CONTRIB_ROTARY_H_
#define FUSION_COMPILER_OPS_CONTRIB_ROTARY_H_

#include "compiler/ops/contrib/compose.h"

namespace fusion::ops {

// x: [.., head_size]; cos and sin broadcast to [.., rotated / 2]. Rotates the first `rotated` elements of a head as
// pairs (k, k + rotated/2) or, interleaved, (2k, 2k + 1); the other elements stay.
Compose::ValueId Rotate(Compose& c, Compose::ValueId x, const Shape& shape, int64_t rotated, Compose::ValueId cos,
                        Compose::ValueId sin, bool interleaved);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_CONTRIB_ROTARY_H_
