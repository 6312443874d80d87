// Whether a register tile can evaluate a reduction's body.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_TILE_FORM_H_
#define FUSION_COMPILER_SCHEDULE_TILE_TILE_FORM_H_

#include "compiler/te/scalar/scalar.h"

namespace fusion {

// Can a tile evaluate this reduction body on vectors?
bool HasTileForm(const te::Scalar& body);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_TILE_FORM_H_
