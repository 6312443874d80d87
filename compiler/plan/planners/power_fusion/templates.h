// GIR templates: the ways to share out a basic operator over parallel units, and the GIR-Graphs that follow
// (PowerFusion §6, "GIR-Graph generation" and "GIR-Graph merging").
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TEMPLATES_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TEMPLATES_H_

#include <set>
#include <vector>

#include "compiler/plan/planners/power_fusion/basic_operators.h"
#include "compiler/plan/planners/power_fusion/gir.h"

namespace fusion::power_fusion {

// Each unit computes one position of the axes [first, last) of the operator's results, and everything along the others.
struct Template {
  int first = 0, last = 0;
  // Where the results have too few positions for the device: units that each reduce a chunk of one result's operands
  // and leave a partial result to one of them.
  int64_t chunks = 1;
  int64_t units = 1;  // with `chunks`

  bool operator==(const Template& other) const {
    return first == other.first && last == other.last && chunks == other.chunks;
  }
};

// The templates of an operator that is not opaque, of one unit first. Leading axes come before others.
std::vector<Template> TemplatesOf(const BasicOperator& op, const DeviceModel& device);

// The part of the results that unit u of `units` makes. A template of one unit in a graph of more: all units make all.
te::Box ResultBox(const BasicOperator& op, const Template& chosen, int64_t units);
// The part of the operand that this part of the results needs.
te::Box OperandBox(const BasicOperator& op, const Operand& operand, const te::Box& results);

// The slices that unit u of `units` reads and writes with a template.
struct Patterns {
  Pattern results;
  std::vector<Pattern> operands;  // parallel to the operator's
};
Patterns PatternsOf(const BasicOperator& op, const Template& chosen, int64_t units);

// An operator with its template.
struct ChosenTemplate {
  const BasicOperator* op = nullptr;
  Template chosen;
  const Patterns* patterns = nullptr;  // those of the template, if they are known
};
// Merges the GIR-Graphs of these operators, which are in a topological order, into one: a synchronisation of device
// scope stands between the move that writes a tensor and each move that reads it. The units of each template are
// `units` or 1. `results`: values that others read or the model returns.
Gir MergeGirs(const ecg::Graph& graph, const std::vector<ChosenTemplate>& operators, int64_t units,
              const std::set<ecg::ValueId>& results);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TEMPLATES_H_
