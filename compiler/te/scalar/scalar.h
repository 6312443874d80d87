// Scalar expressions: the body of a tensor expression. They are immutable and shared. Scalars and indices meet only at
// FromIndex (Index → Scalar) and at Index::Load (integer tensor → Index). Every node has an element type; arithmetic
// needs equal types on both sides, and comparisons give bool. The constructors fold constants, x+0 and x*1 only where
// that is exact for all values.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_H_

#include <functional>
#include <vector>

#include "compiler/te/index/index.h"
#include "compiler/te/scalar/immediate.h"
#include "compiler/te/scalar/pred.h"
#include "compiler/te/scalar/scalar_node.h"
#include "compiler/te/scalar/scalar_op.h"
#include "runtime/base/dtype.h"

namespace fusion::te {

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
