// The addresses of a slice.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// Offsets of the elements of `strides` in the order of their indices, the last index fastest.
std::vector<int64_t> Offsets(const std::vector<Stride>& strides);

// The least and the greatest element of its buffer that the slice touches. The counts are positive.
struct ElementRange {
  int64_t low = 0, high = 0;  // closed
};
ElementRange TouchedElements(const Slice& slice);

// Calls `visit` with the half-open ranges of bytes, in the slice's memory, that the slice touches. Neighbouring ranges
// may touch or, with strides that repeat elements, overlap.
void VisitByteRanges(const Program& program, const Slice& slice,
                     const std::function<void(int64_t begin, int64_t end)>& visit);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_
