// Which numbers a value can hold, as far as the graph itself tells: signs, magnitudes, whether it may be NaN. Inputs of
// the graph hold anything. Derived from the lowering of each operator (te::Know), so no operator is named here.
#ifndef FUSION_COMPILER_REWRITE_RANGES_H_
#define FUSION_COMPILER_REWRITE_RANGES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/rewrite/work_graph.h"
#include "compiler/te/known.h"

namespace fusion::rewrite {

class Ranges {
 public:
  explicit Ranges(const WorkGraph& graph) : graph_(graph) {}

  // Computed at the first question, with everything above the value; a node is looked at once.
  const te::Known& Of(ecg::ValueId value);

 private:
  // What a node makes of operands of which nothing is known: the same of every node with equal operator and types.
  std::string KeyOfUnknown(const ecg::Node& node) const;

  const WorkGraph& graph_;
  std::unordered_map<ecg::ValueId, te::Known> known_;
  std::unordered_map<std::string, te::Known> of_unknown_;
};

// The range of the output of a node with one output; `inputs` and `ranges` are parallel to node.inputs, null where one
// is absent.
te::Known RangeOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
                  const std::vector<const te::Known*>& ranges, const std::vector<ecg::ValueType>& types, size_t output);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RANGES_H_
