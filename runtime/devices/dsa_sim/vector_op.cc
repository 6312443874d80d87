#include "runtime/devices/dsa_sim/vector_op.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fusion::dsa {
namespace {

constexpr std::array kOps = {
    VectorOpInfo{"fill", 0, false},  VectorOpInfo{"copy", 1, false},       VectorOpInfo{"relu", 1, false},
    VectorOpInfo{"exp", 1, false},   VectorOpInfo{"tanh", 1, false},       VectorOpInfo{"erf", 1, false},
    VectorOpInfo{"sqrt", 1, false},  VectorOpInfo{"reciprocal", 1, false}, VectorOpInfo{"add", 2, false},
    VectorOpInfo{"sub", 2, false},   VectorOpInfo{"mul", 2, false},        VectorOpInfo{"div", 2, false},
    VectorOpInfo{"max", 2, false},   VectorOpInfo{"min", 2, false},        VectorOpInfo{"sum", 1, true},
    VectorOpInfo{"maximum", 1, true}};
static_assert(kOps.size() == static_cast<size_t>(VectorOp::kMaximum) + 1);

}  // namespace

const VectorOpInfo& GetVectorOpInfo(VectorOp op) { return kOps[static_cast<size_t>(op)]; }

std::optional<VectorOp> ParseVectorOp(const std::string& name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (name == kOps[i].name) return static_cast<VectorOp>(i);
  }
  return std::nullopt;
}

float ApplyVectorOp(VectorOp op, float a, float b) {
  switch (op) {
    case VectorOp::kFill:
    case VectorOp::kCopy:
      return a;
    case VectorOp::kRelu:
      return a < 0 ? 0 : a;  // NaN stays
    case VectorOp::kExp:
      return std::exp(a);
    case VectorOp::kTanh:
      return std::tanh(a);
    case VectorOp::kErf:
      return std::erf(a);
    case VectorOp::kSqrt:
      return std::sqrt(a);
    case VectorOp::kReciprocal:
      return 1 / a;
    case VectorOp::kAdd:
    case VectorOp::kSum:
      return a + b;
    case VectorOp::kSub:
      return a - b;
    case VectorOp::kMul:
      return a * b;
    case VectorOp::kDiv:
      return a / b;
    case VectorOp::kMax:
    case VectorOp::kMaximum:
      return std::isnan(a) || a > b ? a : b;
    case VectorOp::kMin:
      return std::isnan(a) || a < b ? a : b;
  }
  return a;
}

}  // namespace fusion::dsa
