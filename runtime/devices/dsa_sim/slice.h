// The addresses of a slice.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_

#include <cstdint>
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

// The bytes of a memory that a slice touches: runs of one length. They begin at first + Σ i_k · stride_k,
// 0 ≤ i_k < count_k, of `outer`, whose strides are bytes, positive, and descend. How often and in which order the
// slice touches them is forgotten, so that neighbouring runs become one whatever the order of the slice's indices is.
struct ByteRuns {
  int64_t first = 0, length = 0;
  std::vector<Stride> outer;
  int64_t end = 0;       // one behind the last byte
  bool disjoint = true;  // no byte is in two runs; false: perhaps one is
  bool repeats = false;  // the slice has an index that stays in its place (stride 0)
};
ByteRuns ByteRunsOf(const Program& program, const Slice& slice);

// Calls visit(begin, end) with each run, half-open and ascending where the runs are disjoint; stops where it returns
// false.
template <typename Visit>
bool VisitRuns(const ByteRuns& runs, const Visit& visit) {
  if (runs.outer.empty()) return visit(runs.first, runs.first + runs.length);
  const Stride& inner = runs.outer.back();
  std::vector<int64_t> at(runs.outer.size() - 1, 0);
  int64_t begin = runs.first;
  while (true) {
    for (int64_t i = 0, run = begin; i < inner.count; ++i, run += inner.stride) {
      if (!visit(run, run + runs.length)) return false;
    }
    size_t k = at.size();
    while (k-- > 0) {
      begin += runs.outer[k].stride;
      if (++at[k] < runs.outer[k].count) break;
      begin -= runs.outer[k].count * runs.outer[k].stride;
      at[k] = 0;
    }
    if (k == static_cast<size_t>(-1)) return true;
  }
}

// Do the two slices of one memory touch a common byte?
bool Overlap(const ByteRuns& a, const ByteRuns& b);
// Do the slices of one memory touch a byte twice, each of them on its own included?
bool TouchTwice(const std::vector<ByteRuns>& slices);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_SLICE_H_
