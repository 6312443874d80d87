// Segments of values: runs of slices along one axis, put behind each other.
#ifndef FUSION_COMPILER_OPS_SHARED_SEGMENTS_H_
#define FUSION_COMPILER_OPS_SHARED_SEGMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::ops {

// Slices [begin, end) of `value` along an axis.
struct Segment {
  ecg::ValueId value = ecg::kNone;
  int64_t begin = 0, end = 0;
};

// Adds the nodes that put the segments behind each other along `axis`, and returns the result: the value itself where
// there is one segment that is all of it. The values have one type and, but for `axis`, one shape; no segment is empty
// or reaches past its value. `name` names the result, for people.
ecg::ValueId AddSegments(const std::vector<Segment>& segments, int axis, const std::string& name, ecg::Graph* graph);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_SEGMENTS_H_
