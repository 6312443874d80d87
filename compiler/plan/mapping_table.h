// DNNFusion Table 3: what fusing two operators gives, and whether it pays, read from their mapping types alone.
//
//   first \ second   One-to-One    One-to-Many   Many-to-Many   Reorganize    Shuffle
//   One-to-One       g 1-1         g 1-M         g M-M          g Reorganize  g Shuffle
//   One-to-Many      g 1-M         y 1-M         r              y 1-M         y 1-M
//   Many-to-Many     g M-M         y M-M         r              y M-M         y M-M
//   Reorganize       g Reorganize  y 1-M         y M-M          g Reorganize  g Reorganize
//   Shuffle          g Shuffle     y 1-M         y M-M          g Reorganize  g Shuffle
//
// The colours (g fuses, y is profiled, r never fuses) are our reading of §3.2:
// - One-to-One with anything is green.
// - "Reorder or Shuffle with others" is green among themselves, since all three are index maps, and "needs to be
//   validated with further profiling" with One-to-Many and Many-to-Many, in either order.
// - One-to-Many then Many-to-Many, and Many-to-Many twice, are "unprofitable".
// - Many-to-Many then One-to-Many (Conv, then Resize) requires profiling.
// - The text does not discuss One-to-Many twice. It is profiled, because the second copies what the first has copied.
// There are 13 green cells, 10 yellow and 2 red; the paper's 23 code generation rules are the green and yellow ones.
#ifndef FUSION_COMPILER_PLAN_MAPPING_TABLE_H_
#define FUSION_COMPILER_PLAN_MAPPING_TABLE_H_

#include <cstdint>

#include "compiler/ops/registry/op_def.h"

namespace fusion {

enum class Colour : uint8_t { kGreen, kYellow, kRed };

struct MappingCell {
  ops::MappingType fused;  // of the fused operator; if red: Many-to-Many, the more complex of the two
  Colour colour;
};

const MappingCell& CombineMappings(ops::MappingType first, ops::MappingType second);
const char* ColourName(Colour colour);  // "green"

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_MAPPING_TABLE_H_
