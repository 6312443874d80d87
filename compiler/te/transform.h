// Program transforms: the vertical transform (Souffle §6.2: substitute a body for a load, Eq. 2), dead te removal,
// canonical numbering, dependence and intensity.
#ifndef FUSION_COMPILER_TE_TRANSFORM_H_
#define FUSION_COMPILER_TE_TRANSFORM_H_

#include <string>

#include "compiler/te/program.h"

namespace fusion::te {

// Replaces every load of `tensor` (defined by a map te) by the te's body at the load's indices, then removes the te if
// nothing else needs it. A padded load `%t[i]?v` becomes `if i in box then body else v`. Rounding to the tensor's type
// is kept by a cast where the body's type is a float narrower than f32.
absl::Status Inline(Program* program, TensorId tensor);

// Removes tes whose outputs nothing reads, and unused tensors' numbers stay (ids are stable).
void RemoveDead(Program* program);

// Renumbers tensors and axes by first use from the outputs and drops names, so that equal computations print equally:
// the base of profile keys. Constants bound to inputs (weights) keep only type and shape; immediates keep their bits.
Program Canonicalize(const Program& program);

// Does element o of the te depend on one element of `tensor` per load, or on many (a fold axis occurs in an index)?
// §5.2.
enum class Dependence { kNone, kOne, kMany };
Dependence DependenceOf(const Te& te, TensorId tensor);

struct WorkCount {
  double fma = 0;       // multiply-adds and plain arithmetic, in scalar operations
  double special = 0;   // cost-weighted operations beyond an add (exp, div, …), GetOpInfo().cost units
  double elements = 0;  // domain points (spatial × fold)
};
WorkCount CountWork(const Te& te);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_TRANSFORM_H_
