#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> ShapeOps() { return {}; }

}  // namespace fusion::ops
