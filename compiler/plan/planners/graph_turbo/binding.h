// Core binding and buffer scopes (GraphTurbo, section 3.4, Algorithm 4), and the operators that move data between
// instances (section 3.5).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_BINDING_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_BINDING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/planners/graph_turbo/instances.h"

namespace fusion::graph_turbo {

enum class BufferScope : uint8_t { kLocal, kGlobal, kDdr };  // L1 / LB, LLB / GB, DDR

// How the dimensions of an instance's first output are distributed over cores: one factor a dimension. Empty: unknown.
struct Binding {
  Factors factors;
  BufferScope scope = BufferScope::kLocal;  // kLocal or kGlobal: where its outputs are declared
};

// Greedily gives the most cores to the outermost dimensions: factors 8, 4, 2 or 1 that divide the extent, with at most
// `cores` cores altogether.
Factors PlainBinding(const Region& piece, int cores);

// The binding of a tensor that instance `i` reads, propagated from a binding of its output along the dimensions that
// match; nullopt where no dimension matches, or a factor does not divide the part that instance `maker` makes.
std::optional<Factors> InferBinding(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                    const InstanceGraph& instances, int i, const Factors& binding, int tensor,
                                    int maker);

// Algorithm 4 over `order`, backwards. By instance. Reading: an instance whose binding was inferred hands it on to its
// producers as one with a plain binding does; as printed, only the latter do, and a mismatch above an inferred binding
// would never be found.
std::vector<Binding> InferBindings(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                   const InstanceGraph& instances, const std::vector<int>& order, int cores);

enum class MovementKind : uint8_t { kConcatenate, kCopy, kRedistribute };

// An operator in front of an instance: joins the parts of a tensor, copies one from the GB, or moves one between cores.
struct Movement {
  MovementKind kind = MovementKind::kConcatenate;
  int tensor = kNone;
  int consumer = kNone;  // instance
  int maker = kNone;     // the instance whose output it takes; kNone for kConcatenate, which takes all
};

// In the order of instances; within one, copies and redistributions stand before the concatenation that takes them.
std::vector<Movement> InsertMovements(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                      const InstanceGraph& instances, const std::vector<Binding>& bindings);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_BINDING_H_
