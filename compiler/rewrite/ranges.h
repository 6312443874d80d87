// The numbers that a value can hold, as far as the graph itself tells: signs, magnitudes, whether it may be NaN.
// Nothing is known of the graph's inputs. Ranges are derived from the lowering of each operator (te::Know), so that no
// operator is named here.
#ifndef FUSION_COMPILER_REWRITE_RANGES_H_
#define FUSION_COMPILER_REWRITE_RANGES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/rewrite/work_graph.h"
#include "compiler/te/ranges/value_ranges.h"

namespace fusion::rewrite {

class Ranges {
 public:
  explicit Ranges(const WorkGraph& graph) : graph_(graph) {}

  // Computed on the first request, together with everything above the value; each node is evaluated once.
  const te::ValueRange& Of(ecg::ValueId value);

 private:
  // Returns a key for the range of a node of whose operands nothing is known: nodes with equal operator and types share
  // it.
  std::string KeyOfUnknown(const ecg::Node& node) const;

  const WorkGraph& graph_;
  std::unordered_map<ecg::ValueId, te::ValueRange> ranges_;
  std::unordered_map<std::string, te::ValueRange> of_unknown_;
};

// Returns the range of one output of a node. `inputs` and `ranges` are parallel to node.inputs, null where one is
// absent.
te::ValueRange RangeOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
                       const std::vector<const te::ValueRange*>& ranges, const std::vector<ecg::ValueType>& types,
                       size_t output);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RANGES_H_
