#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> PoolingOps() { return {}; }

}  // namespace fusion::ops
