// Program transforms: the vertical transform (Souffle §6.2: substitute a body for a load, Eq. 2), dead te removal,
// canonical numbering, dependence and work.
#ifndef FUSION_COMPILER_TE_PROGRAM_TRANSFORM_H_
#define FUSION_COMPILER_TE_PROGRAM_TRANSFORM_H_

#include <functional>
#include <string>

#include "compiler/te/program/program.h"

namespace fusion::te {

// Replaces every load of `tensor` (defined by a map te) by the te's body at the load's indices, then removes the te if
// nothing else needs it. A padded load `%t[i]?v` becomes `if i in box then body else v`. Where the body computes a
// float narrower than f32, a cast keeps the rounding to the tensor's type.
absl::Status Inline(Program* program, TensorId tensor);

// Returns the te over fresh axes of `program`, the spatial ones first, with `tensor` of each tensor that it reads or
// computes. It is not added to the program.
Te CopyTe(const Te& te, const std::function<TensorId(TensorId)>& tensor, Program* program);

// Removes tes whose outputs nothing reads. Unused tensors stay, so that ids are stable.
void RemoveDead(Program* program);

// Renumbers tensors and axes by first use from the outputs and drops names, so that equal computations print equally;
// profile keys build on this. Constants bound to inputs (weights) keep only type and shape; immediates keep their bits.
Program Canonicalize(const Program& program);

// Returns whether element o of the te depends on no element of `tensor`, on one element per load, or on many (a
// reduction axis occurs in an index). Souffle §5.2.
enum class Dependence { kNone, kOne, kMany };
Dependence DependenceOf(const Te& te, TensorId tensor);

struct WorkCount {
  double fma = 0;       // multiply-adds and plain arithmetic, in scalar operations
  double special = 0;   // cost-weighted operations beyond an add (exp, div, …), GetOpInfo().cost units
  double elements = 0;  // domain points (spatial × reduction)
};
WorkCount CountWork(const Te& te);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_TRANSFORM_H_
