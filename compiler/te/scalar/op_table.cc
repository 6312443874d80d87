#include "compiler/te/scalar/op_table.h"

namespace fusion::te {

const OpInfo& GetOpInfo(Op op) { return RowOf(op).info; }

}  // namespace fusion::te
