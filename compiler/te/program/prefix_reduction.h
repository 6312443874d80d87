// Recognises, by their expressions, reductions over the elements up to each one, before it, from it on or behind it:
//
//   y[i] = sum(k<n) if k < i + 1 then x[k] else 0
//
// One pass over k computes all of y.
#ifndef FUSION_COMPILER_TE_PROGRAM_PREFIX_REDUCTION_H_
#define FUSION_COMPILER_TE_PROGRAM_PREFIX_REDUCTION_H_

#include <optional>
#include <vector>

#include "compiler/te/program/program.h"

namespace fusion::te {

struct PrefixReduction {
  Scalar value;            // of element k; does not move with i
  int axis = -1;           // i, whose extent is that of the reduction axis
  bool reverse = false;    // begins at the last element
  bool exclusive = false;  // leaves out the element itself
};

// The form of a named reduction over one axis, with results along one of `axes`; nullopt for every other reduction.
std::optional<PrefixReduction> PrefixReductionOf(const Reduction& reduction, const std::vector<Scalar>& body,
                                                 const std::vector<Axis>& axes);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_PREFIX_REDUCTION_H_
