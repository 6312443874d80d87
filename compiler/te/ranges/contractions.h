// Which multiply-adds a kernel's compiler could make of a product of one operator and a sum of another one. A
// multiply-add does not round the product: where that overflows, the sum may bring it back into the type's range.
#ifndef FUSION_COMPILER_TE_RANGES_CONTRACTIONS_H_
#define FUSION_COMPILER_TE_RANGES_CONTRACTIONS_H_

#include <set>
#include <vector>

#include "compiler/te/program/program.h"
#include "compiler/te/ranges/value_ranges.h"

namespace fusion::te {

// An operand of a sum or difference, in f32 or f64, that can be an element of an input of the program as it stands:
// moved, negated, chosen, but computed no further.
struct Addend {
  TensorId input = -1;
  const Te* te = nullptr;  // of the program, in which the sum stands
  Scalar operand;
  Scalar other;  // the other operand; null: what a reduction has added up so far
  bool difference = false;
};
std::vector<Addend> AddendsOf(const Program& program);

// The operations that can compute an element of a tensor last.
struct LastOperation {
  struct Product {
    const Te* te = nullptr;
    Scalar value;  // may end in a multiplication when a kernel computes it
  };
  std::vector<Product> products;  // in f32 or f64
  std::set<TensorId> inputs;      // of the program, of which an element can be the result as it stands
};
LastOperation LastOperationOf(const Program& program, TensorId tensor);

// Can the operand overflow, and yet the exact sum be far inside the type's range? No where both have one sign, or where
// the other one is small.
bool CanBringBack(const ExpressionRanges& ranges, const Addend& addend);
// Can a product of finite numbers overflow?
bool CanOverflow(const ExpressionRanges& ranges, const LastOperation::Product& product);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RANGES_CONTRACTIONS_H_
