#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> ResizeOps() { return {}; }

}  // namespace fusion::ops
