#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> BinaryOps() { return {}; }

}  // namespace fusion::ops
