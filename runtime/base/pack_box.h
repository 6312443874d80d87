// PackBox and SpreadBox: move the elements of a part of an array together, and apart again.
#ifndef FUSION_RUNTIME_BASE_PACK_BOX_H_
#define FUSION_RUNTIME_BASE_PACK_BOX_H_

#include "runtime/base/tensor.h"

namespace fusion {

// Moves the elements of the leading box `part` of a row-major array of extents `whole` to the array's front, where they
// lie row-major. `part` fits into `whole`.
void PackBox(void* data, int64_t element_bytes, const Shape& whole, const Shape& part);

// Copies the row-major array `from` of extents `part` to the leading box of the array `to` of extents `whole`, and sets
// all other elements to zero. `part` fits into `whole`; the two arrays do not overlap.
void SpreadBox(const void* from, void* to, int64_t element_bytes, const Shape& whole, const Shape& part);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_PACK_BOX_H_
