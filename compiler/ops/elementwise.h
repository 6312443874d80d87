// What the elementwise families share: types they accept, the type they compute in, their cost.
#ifndef FUSION_COMPILER_OPS_ELEMENTWISE_H_
#define FUSION_COMPILER_OPS_ELEMENTWISE_H_

#include <functional>

#include "absl/status/status.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

enum class Domain : uint8_t { kFloat, kNumeric, kInteger, kBool, kAny };  // kNumeric: floats and integers

// INVALID_ARGUMENT naming node and type when input `i` is outside `domain`.
absl::Status CheckDomain(const OpContext& context, int i, Domain domain);
// Inputs [begin, end) that are present have one element type.
absl::Status CheckSameType(const OpContext& context, int begin, int end);

// Floats narrower than f32 compute in f32; every other type in itself.
DType ComputeType(DType dtype);
// A load in the compute type.
te::Scalar LoadCompute(const te::Builder& builder, te::TensorId tensor, te::Builder::Idx index);

// Arithmetic operations in a body, a shared one once.
double CountOps(const te::Scalar& body);

// Mapping functions that hold for every input.
std::function<MappingType(const OpContext&, int)> Always(MappingType type);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_ELEMENTWISE_H_
