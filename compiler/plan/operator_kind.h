// The kind of an operator's work, read from its tensor expressions: no planner asks for an operator by name.
#ifndef FUSION_COMPILER_PLAN_OPERATOR_KIND_H_
#define FUSION_COMPILER_PLAN_OPERATOR_KIND_H_

#include <cstdint>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion {

enum class OperatorKind : uint8_t {
  kMap,           // arithmetic on elements, or a copy of them to other places
  kExpensiveMap,  // a map that evaluates a function (an exponential, a root) or a remainder
  kReduction,     // one reduction, with or without maps around it
  kProduct,       // a sum of products of two tensors, of which it reads at least one repeatedly: compute-intensive
  kWhole,         // several reductions, a routine, or no lowering: it is taken as a whole
};
const char* OperatorKindName(OperatorKind kind);  // "expensive map"

// How a map reads the tensors that it reads: TVM's classes.
enum class Access : uint8_t {
  kElementwise,  // each element of the result reads the elements at its own position
  kBroadcast,    // at its own position, without some of the axes
  kInjective,    // elsewhere: transposed, reshaped, looked up
};

struct OperatorTraits {
  OperatorKind kind = OperatorKind::kWhole;
  Access access = Access::kInjective;
  bool rereads = false;     // a reduction that reads an element for several of its results (a window)
  bool multiplies = false;  // a product is among its expressions
  bool unknown = true;      // a routine, or no lowering
};

OperatorTraits TraitsOf(const ecg::Graph& graph, ecg::NodeId node);
// Returns the kinds of all nodes, by id.
std::vector<OperatorTraits> TraitsOf(const ecg::Graph& graph);

// Is none of these operators compute-intensive, and none unknown?
bool IsMemoryIntensive(const std::vector<OperatorTraits>& traits);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_OPERATOR_KIND_H_
