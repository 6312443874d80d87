// Tells whether one rule undoes another.
#ifndef FUSION_COMPILER_REWRITE_UNDOES_H_
#define FUSION_COMPILER_REWRITE_UNDOES_H_

#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {

// Returns whether `second`, applied to the result of `first`, restores the term to which `first` was applied. Operands
// of commutative operators may stand in either order, and `second` may be more general than the reverse of `first`. A
// rule may undo itself. Guards can distinguish directions that the terms do not (small operands first), so if either
// rule has guards only the plain reverse counts.
bool Undoes(const Rule& second, const Rule& first);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_UNDOES_H_
