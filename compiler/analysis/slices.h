// Values that only move others: where the slices of a value along one axis come from (a Concat, a Split, a channel
// shuffle, and chains of them). The tensor expressions decide, never an operator's name.
#ifndef FUSION_COMPILER_ANALYSIS_SLICES_H_
#define FUSION_COMPILER_ANALYSIS_SLICES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// One slice of a value: the elements at index `at` along the axis.
struct Slice {
  ValueId value = kNone;
  int64_t at = 0;
  auto operator<=>(const Slice&) const = default;
};

// Slice k of a value along `axis` is slices[k], element by element. The sources have the value's shape but for `axis`.
struct Slices {
  int axis = 0;
  std::vector<Slice> slices;
};

// Answers for one graph, which must outlive it.
class SliceFinder {
 public:
  explicit SliceFinder(const Graph& graph) : graph_(graph) {}

  // Does the node do nothing but move elements of values that are no constants?
  bool Moves(NodeId node);
  // Returns the slices of a value that a chain of such nodes makes, by the values in front of the chain; nullopt where
  // no axis has such slices, or there are too many.
  std::optional<Slices> SlicesOf(ValueId value);

 private:
  const Graph& graph_;
  std::map<NodeId, bool> moves_;
};

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_SLICES_H_
