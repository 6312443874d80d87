// Parts that the definitions of operators which move data are made of.
#ifndef FUSION_COMPILER_OPS_DEF_PARTS_H_
#define FUSION_COMPILER_OPS_DEF_PARTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

// Moves or selects, computes nothing.
double NoFlops(const OpContext&, const std::vector<ecg::ValueType>&);

// Each axis counted from the front, in the order given; INVALID_ARGUMENT when one is out of range or occurs twice.
absl::StatusOr<std::vector<int64_t>> DistinctAxes(const OpContext& context, std::vector<int64_t> axes, int rank);

// INVALID_ARGUMENT unless the elements of input `i`, an index tensor or a shape, are i32 or i64.
absl::Status ExpectInteger(const OpContext& context, int i, const char* input_name);

// A 1-D i64 constant.
Tensor IntsTensor(const std::vector<int64_t>& values);

// Defines output `o` as a map. An empty tensor loads nothing: `body` is then not called.
void DefineMap(LowerContext& context, int o, const std::function<te::Scalar(const te::Builder::Idx& i)>& body);

// `given` as i64, negative values counted from the end of `extent`.
te::Scalar CountedIndex(const te::Scalar& given, int64_t extent);

// A float coordinate as an index in [0, extent), rounded towards zero.
te::Scalar ClampedIndex(const te::Scalar& x, int64_t extent);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_DEF_PARTS_H_
