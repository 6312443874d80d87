// The common part of the elementwise families: the types they accept, the type they compute in, and their cost.
#ifndef FUSION_COMPILER_OPS_SHARED_ELEMENTWISE_H_
#define FUSION_COMPILER_OPS_SHARED_ELEMENTWISE_H_

#include <functional>

#include "absl/status/status.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

enum class Domain : uint8_t { kFloat, kNumeric, kInteger, kBool, kAny };  // kNumeric: floats and integers

// Returns INVALID_ARGUMENT naming node and type when input `i` is outside `domain`.
absl::Status CheckDomain(const OpContext& context, int i, Domain domain);
// Returns INVALID_ARGUMENT unless those of inputs [begin, end) that are present have one element type.
absl::Status CheckSameType(const OpContext& context, int begin, int end);

// The type to compute in: f32 for floats narrower than f32, otherwise the type itself.
DType ComputeType(DType dtype);
// Returns a load, cast to the compute type.
te::Scalar LoadCompute(const te::Builder& builder, te::TensorId tensor, te::Builder::Idx index);

// Returns the number of arithmetic operations in a body. A shared one counts once.
double CountOps(const te::Scalar& body);

// Returns a mapping function that gives `type` for every input.
std::function<MappingType(const OpContext&, int)> Always(MappingType type);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_ELEMENTWISE_H_
