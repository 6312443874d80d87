// The operations of vector units, in one table.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_VECTOR_OP_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_VECTOR_OP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace fusion::dsa {

enum class VectorOp : uint8_t {
  kFill,
  kCopy,
  kRelu,
  kExp,
  kTanh,
  kErf,
  kSqrt,
  kReciprocal,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kSum,      // reduces the last index
  kMaximum,  // reduces the last index
};

struct VectorOpInfo {
  const char* name;
  int operands;
  bool reduces;
};

const VectorOpInfo& GetVectorOpInfo(VectorOp op);
std::optional<VectorOp> ParseVectorOp(const std::string& name);

// The operation on elements; `b` counts for operations with two operands. A reduction is one step, where `a` is the
// sum or the maximum so far. A fill returns `a`.
float ApplyVectorOp(VectorOp op, float a, float b);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_VECTOR_OP_H_
