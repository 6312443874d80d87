// ScalarNode: a node of a scalar expression. Only the constructors of immediate.h and scalar.h make nodes.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_NODE_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_NODE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/te/index/index.h"
#include "compiler/te/scalar/pred.h"
#include "compiler/te/scalar/scalar_op.h"
#include "runtime/base/dtype.h"

namespace fusion::te {

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

// Returns a node of this kind and type, whose other members a constructor sets.
inline std::shared_ptr<ScalarNode> NewNode(ScalarKind kind, DType dtype) {
  auto node = std::make_shared<ScalarNode>();
  node->kind = kind;
  node->dtype = dtype;
  return node;
}

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_NODE_H_
