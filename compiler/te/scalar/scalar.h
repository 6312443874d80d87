// Scalar expressions: the body of a tensor expression. They are immutable and shared. Scalars and indices meet only at
// FromIndex (Index → Scalar) and at Index::Load (integer tensor → Index). Every node has an element type; arithmetic
// needs equal types on both sides, and comparisons give bool. The constructors fold constants, x+0 and x*1 only where
// that is exact for all values.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/te/index/index.h"
#include "runtime/base/dtype.h"

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

enum class Cmp : uint8_t { kLt, kGe, kEq, kNe };
struct Comparison {
  Index lhs;
  Cmp cmp = Cmp::kLt;
  Index rhs;
};
using Pred = std::vector<Comparison>;  // conjunction; empty is true

// Returns the truth of a comparison where the ranges of its axes decide it.
std::optional<bool> Decide(const Comparison& comparison);
// The cut `axis < at` that a pred with one comparison of one axis expresses.
struct AxisCut {
  Axis axis;
  int64_t at = 0;
};
std::optional<AxisCut> CutOf(const Pred& pred);
// Drops repeated comparisons and those that always hold; sets *never when one cannot hold.
Pred Simplify(const Pred& pred, bool* never);
Pred Substitute(const Pred& pred, const std::function<const Index*(const Axis&)>& map);
Pred MapTensors(const Pred& pred, const std::function<TensorId(TensorId)>& map);

enum class ScalarKind : uint8_t { kImm, kLoad, kIf, kOp, kCast, kFromIndex, kAcc };

struct ScalarNode;
using Scalar = std::shared_ptr<const ScalarNode>;

struct ScalarNode {
  ScalarKind kind = ScalarKind::kImm;
  DType dtype = DType::kF32;
  double fvalue = 0;           // kImm of float type
  int64_t ivalue = 0;          // kImm of integer or bool type
  TensorId tensor = -1;        // kLoad
  std::vector<Index> indices;  // kLoad, one per dimension, logical coordinates
  Scalar pad;                  // kLoad: %t[i]?pad, an immediate: the value outside the tensor's box, where no memory is
                               // touched. Null: indices must be provably in bounds
  Pred pred;                   // kIf: lazy, the branch not taken loads nothing
  Op op = Op::kAdd;            // kOp
  std::vector<Scalar> args;    // kOp; kIf: {then, else}; kCast: {x}
  Index index;                 // kFromIndex: an i64
  int acc = 0;                 // kAcc: accumulator number, inside a general reduction
};

Scalar Imm(DType dtype, double value);  // integers and bool are rounded towards zero
Scalar ImmInt(DType dtype, int64_t value);
Scalar Load(TensorId tensor, DType dtype, std::vector<Index> indices, Scalar pad = nullptr);
// Simplifies the pred; if that decides it, returns the branch alone.
Scalar If(Pred pred, Scalar then_value, Scalar else_value);
Scalar Call(Op op, std::vector<Scalar> args);  // CHECKs arity and types: a violation is a bug of the lowering
Scalar Cast(DType dtype, Scalar x);            // ONNX Cast: float→int truncates, →bool is != 0
Scalar FromIndex(Index index);                 // i64
Scalar Acc(int acc, DType dtype);

// Shorthands for lowerings: Add(a, b) etc. are Call(Op::kAdd, {a, b}).
Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar Max(const Scalar& a, const Scalar& b);
Scalar Min(const Scalar& a, const Scalar& b);
Scalar Select(const Scalar& condition, const Scalar& a, const Scalar& b);

bool IsImm(const Scalar& s, double value);
bool StructurallyEqual(const Scalar& a, const Scalar& b);

Scalar Substitute(const Scalar& s, const std::function<const Index*(const Axis&)>& map);
Scalar MapTensors(const Scalar& s, const std::function<TensorId(TensorId)>& map);
// Replaces each load for which `f` returns non-null (f sees the load node with its indices already rewritten).
Scalar MapLoads(const Scalar& s, const std::function<Scalar(const Scalar& load)>& f);
// Replaces the accumulators that a body after a reduction reads.
Scalar MapAccs(const Scalar& s, const std::function<Scalar(const Scalar& acc)>& f);
// Visits distinct nodes in pre-order (a shared node once).
void Visit(const Scalar& s, const std::function<void(const ScalarNode&)>& f);
// Returns Σ cost of the operations (a cast costs 1); a shared node counts once.
double OpCost(const Scalar& s);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_H_
