#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> GatherOps() { return {}; }

}  // namespace fusion::ops
