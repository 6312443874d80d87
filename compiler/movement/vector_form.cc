#include "compiler/movement/vector_form.h"

namespace fusion::movement {

using te::Op;

bool HasVectorForm(const te::ScalarNode& node) {
  switch (node.op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMax:
    case Op::kMin:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSign:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kExp:
    case Op::kLog:
    case Op::kErf:
    case Op::kTanh:
    case Op::kIsNan:
    case Op::kIsInf:
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
    case Op::kSelect:
      return true;
    case Op::kPow: {
      const te::ScalarNode& exponent = *node.args[1];
      return exponent.kind == te::ScalarKind::kImm &&
             (exponent.fvalue == 2 || exponent.fvalue == 3 || exponent.fvalue == 0.5);
    }
    default:
      return false;
  }
}

}  // namespace fusion::movement
