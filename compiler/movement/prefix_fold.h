// Folds over the elements up to each one, before it, from it on or behind it, told from their expressions:
//
//   y[i] = sum(k<n) if k < i + 1 then x[k] else 0
//
// One pass over k computes all of y.
#ifndef FUSION_COMPILER_MOVEMENT_PREFIX_FOLD_H_
#define FUSION_COMPILER_MOVEMENT_PREFIX_FOLD_H_

#include <optional>
#include <vector>

#include "compiler/te/program.h"

namespace fusion::movement {

struct PrefixFold {
  te::Scalar value;        // of the element k; does not move with i
  int axis = -1;           // i, whose extent is that of the fold's axis
  bool reverse = false;    // from the last element on
  bool exclusive = false;  // without the element itself
};

// The form of a named fold over one axis, with results along one of `axes`; nullopt for every other fold.
std::optional<PrefixFold> PrefixFoldOf(const te::Fold& fold, const std::vector<te::Scalar>& body,
                                       const std::vector<te::Axis>& axes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PREFIX_FOLD_H_
