// FormStages: which expressions of a block are materialised? Everything else is substituted into its readers (the
// vertical transform, Souffle §6.2), so that what remains is the list of stages that tile-and-stitch places.
//
// A map expression is substituted when that costs nothing (a pure index map read once per element) or less than storing
// and loading it; an expression that a fold with reuse reads (a matrix product's operand) is substituted only when it
// stays a plain load, because arithmetic in an operand is evaluated once per use. A map that reads one fold's result
// becomes that fold's epilogue (`then`), re-indexed to the map's own axes, so that a following Reshape, Transpose or
// Slice becomes the fold's store.
//
// A routine must be alone: FAILED_PRECONDITION.
#ifndef FUSION_COMPILER_SCHEDULE_FORM_STAGES_H_
#define FUSION_COMPILER_SCHEDULE_FORM_STAGES_H_

#include <set>

#include "absl/status/statusor.h"
#include "compiler/te/program.h"

namespace fusion {

absl::StatusOr<te::Program> FormStages(te::Program program);

// Every tensor that the te reads, also in predicates and inside data-dependent indices.
std::set<te::TensorId> TensorsRead(const te::Te& te);

// Spatial points times fold points of a te's domain.
double DomainPoints(const te::Te& te, bool with_fold = true);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_FORM_STAGES_H_
