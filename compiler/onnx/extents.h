// Shapes that depend on data, as import sees them (docs/decisions/0008-bounded-extents.md). Every shape of the graph is
// static. A dimension whose extent depends on data is allocated for its bound, and its extent is an i64 scalar of the
// graph. Only import keeps track of these, in this class; passes see ordinary nodes and the extents of the graph's
// outputs.
#ifndef FUSION_COMPILER_ONNX_EXTENTS_H_
#define FUSION_COMPILER_ONNX_EXTENTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/te/ranges/value_ranges.h"

namespace fusion::onnx_import {

class Extents {
 public:
  explicit Extents(const ecg::Graph* graph) : graph_(graph) {}

  // Returns the extent of the dimension, or kNone if it is static.
  ecg::ValueId Of(ecg::ValueId value, int dim) const;
  std::vector<ecg::ValueId> Of(ecg::ValueId value) const;  // one entry per dimension
  bool IsDynamic(ecg::ValueId value) const { return value != ecg::kNone && extents_.count(value) > 0; }
  // Sets one extent per dimension, kNone for a static one. Each extent becomes known to lie between 0 and the static
  // extent. Equal ids mean equal extents: an extent that is computed as exactly another, or as the same sum of extents,
  // is replaced by that one.
  void Set(ecg::ValueId value, std::vector<ecg::ValueId> extents);

  // Returns the value ranges of the elements of a small tensor, constants included; symbols are ids of extents.
  std::optional<te::TensorRanges> RangesOf(ecg::ValueId value) const;
  void SetRanges(ecg::ValueId value, te::TensorRanges range) { ranges_[value] = std::move(range); }

  // Adds the extents of `value` to the graph output that was added for it as outputs()[output].
  void AddToOutput(ecg::ValueId value, int output, ecg::Graph* graph) const;

 private:
  const ecg::Graph* graph_;
  std::map<ecg::ValueId, std::vector<ecg::ValueId>> extents_;
  std::map<ecg::ValueId, te::TensorRanges> ranges_;
  // The first extent that was computed as this constant plus these multiples of other extents.
  std::map<std::pair<int64_t, std::map<int, int64_t>>, ecg::ValueId> same_number_;
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_EXTENTS_H_
