#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> UnaryOps() { return {}; }

}  // namespace fusion::ops
