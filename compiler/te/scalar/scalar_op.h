// The operations of scalar expressions: their names, arities and costs. All else about them stands in op_table.h.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_OP_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_OP_H_

#include <cstdint>

namespace fusion::te {

// Operations of a scalar body. Float semantics are IEEE; kMax and kMin propagate NaN. Integer division truncates
// towards zero, and division by zero gives 0. kMod has the sign of the divisor (also for floats), kFMod that of the
// dividend. Shifts by >= width give 0.
enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFMod,
  kMin,
  kMax,
  kPow,  // (a, b) of one type
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kCeil,
  kRound,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kErf,  // (a); kRound: half to even
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kIsNan,
  kIsInf,  // (a) -> bool
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  // (a, b) -> bool
  kAnd,
  kOr,
  kXor,
  kNot,  // bool
  kBitAnd,
  kBitOr,
  kBitXor,
  kBitNot,
  kShl,
  kShr,     // integers
  kSelect,  // (bool, a, b): both evaluated
};
struct OpInfo {
  const char* name;  // "add", "exp", ...: the textual form
  int arity;
  double cost;  // in vector FMAs of a typical CPU: add 1, div 8, exp 11, erf 14, pow 40; the device model scales it
  bool commutative;
};
const OpInfo& GetOpInfo(Op op);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_OP_H_
