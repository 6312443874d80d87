#include "compiler/ops/op_list.h"

namespace fusion::ops {

std::vector<OpDef> ConvolutionOps() { return {}; }

}  // namespace fusion::ops
