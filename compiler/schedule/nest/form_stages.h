// FormStages decides which expressions of a fusion block are materialised. It substitutes all others into their readers
// (the vertical transform, Souffle §6.2). The list of stages that remains is what tile-and-stitch places.
//
// A map expression is substituted when that costs nothing (a pure index map read once per element) or less than storing
// and loading it. An expression that a reduction with reuse reads (a matrix product's operand) is substituted only when
// it stays a plain load, because arithmetic in an operand is evaluated once per use. A map that reads one reduction's
// result becomes that reduction's epilogue (`then`), re-indexed to the map's own axes, so that a following Reshape,
// Transpose or Slice becomes the reduction's store.
//
// A routine must be alone in its program; otherwise fails with FAILED_PRECONDITION.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_FORM_STAGES_H_
#define FUSION_COMPILER_SCHEDULE_NEST_FORM_STAGES_H_

#include <set>

#include "absl/status/statusor.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Tensors in `kept` are materialised whatever that costs.
absl::StatusOr<te::Program> FormStages(te::Program program, const std::set<te::TensorId>& kept = {});

// Every tensor that the te reads, including those in predicates and inside data-dependent indices.
std::set<te::TensorId> TensorsRead(const te::Te& te);

// Spatial points times reduction points of a te's domain.
double DomainPoints(const te::Te& te, bool with_reduction = true);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_FORM_STAGES_H_
