#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> TransposeOps() { return {}; }

}  // namespace fusion::ops
