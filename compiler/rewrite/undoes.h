// Does one rule undo another?
#ifndef FUSION_COMPILER_REWRITE_UNDOES_H_
#define FUSION_COMPILER_REWRITE_UNDOES_H_

#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {

// Does `second`, applied to what `first` makes, make what `first` was applied to? Operands of commutative operators may
// stand in either order, and `second` may be more general than the reverse of `first`. A rule may undo itself. Guards
// tell directions apart that their terms do not (small operands first), so where there are any only the plain reverse
// counts.
bool Undoes(const Rule& second, const Rule& first);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_UNDOES_H_
