// Parts shared by the definitions of operators that move data.
#ifndef FUSION_COMPILER_OPS_REGISTRY_DEF_PARTS_H_
#define FUSION_COMPILER_OPS_REGISTRY_DEF_PARTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// The FLOPs of an operator that moves or selects elements and computes nothing: 0.
double NoFlops(const OpContext&, const std::vector<ecg::ValueType>&);

// Returns each axis counted from the front, in the order given; INVALID_ARGUMENT when one is out of range or repeated.
absl::StatusOr<std::vector<int64_t>> DistinctAxes(const OpContext& context, std::vector<int64_t> axes, int rank);

// Returns INVALID_ARGUMENT unless the elements of input `i`, an index tensor or a shape, are i32 or i64.
absl::Status ExpectInteger(const OpContext& context, int i, const char* input_name);

// A 1-D i64 constant.
Tensor IntsTensor(const std::vector<int64_t>& values);

// Defines output `o` as a map. For an empty tensor `body` is not called, so that nothing is loaded.
void DefineMap(LowerContext& context, int o, const std::function<te::Scalar(const te::Builder::Idx& i)>& body);

// Returns `given` as i64; a negative value counts from the end of `extent`.
te::Scalar CountedIndex(const te::Scalar& given, int64_t extent);

// Returns a float coordinate as an index in [0, extent), rounded towards zero.
te::Scalar ClampedIndex(const te::Scalar& x, int64_t extent);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_DEF_PARTS_H_
