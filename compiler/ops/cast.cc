#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> CastOps() { return {}; }

}  // namespace fusion::ops
