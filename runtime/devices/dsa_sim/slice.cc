#include "runtime/devices/dsa_sim/slice.h"

#include <algorithm>

namespace fusion::dsa {

int64_t Slice::elements() const {
  int64_t product = 1;
  for (const Stride& stride : strides) product *= stride.count;
  return product;
}

std::vector<int64_t> Offsets(const std::vector<Stride>& strides) {
  std::vector<int64_t> offsets = {0};
  for (const Stride& stride : strides) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * stride.count);
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < stride.count; ++i) next.push_back(offset + i * stride.stride);
    }
    offsets = std::move(next);
  }
  return offsets;
}

ElementRange TouchedElements(const Slice& slice) {
  ElementRange range{slice.first, slice.first};
  for (const Stride& stride : slice.strides) {
    const int64_t reach = (stride.count - 1) * stride.stride;
    range.low += std::min<int64_t>(reach, 0);
    range.high += std::max<int64_t>(reach, 0);
  }
  return range;
}

void VisitByteRanges(const Program& program, const Slice& slice,
                     const std::function<void(int64_t begin, int64_t end)>& visit) {
  const Buffer& buffer = program.buffers[slice.buffer];
  const int64_t width = DTypeBytes(buffer.dtype);
  // The innermost strides that continue each other are one run; repeated elements (stride 0) count once.
  std::vector<Stride> outer;
  int64_t run = 1;
  for (auto stride = slice.strides.rbegin(); stride != slice.strides.rend(); ++stride) {
    if (stride->count == 1 || stride->stride == 0) continue;
    if (outer.empty() && stride->stride == run) {
      run *= stride->count;
    } else {
      outer.insert(outer.begin(), *stride);
    }
  }
  for (const int64_t offset : Offsets(outer)) {
    const int64_t begin = buffer.offset_bytes + (slice.first + offset) * width;
    visit(begin, begin + run * width);
  }
}

}  // namespace fusion::dsa
