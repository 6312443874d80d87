// Parts that operator definitions are made of: what many families say in the same words.
#ifndef FUSION_COMPILER_OPS_DEF_PARTS_H_
#define FUSION_COMPILER_OPS_DEF_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

// Every input→output pair has this mapping type.
std::function<MappingType(const OpContext&, int)> AlwaysMapping(MappingType type);

// Moves or selects, computes nothing.
double NoFlops(const OpContext&, const std::vector<ecg::ValueType>&);

// `axis` counted from the front, in [0, rank) (or [0, rank] with `inclusive`), or INVALID_ARGUMENT naming it.
absl::StatusOr<int64_t> CountedAxis(const OpContext& context, int64_t axis, int rank, bool inclusive = false);

// As CountedAxis for each; INVALID_ARGUMENT when one occurs twice.
absl::StatusOr<std::vector<int64_t>> CountedAxes(const OpContext& context, std::vector<int64_t> axes, int rank);

// INVALID_ARGUMENT unless input `i` has integer elements (an index tensor, a shape).
absl::Status ExpectInteger(const OpContext& context, int i, const char* input_name);

// The element type that an attribute names by its ONNX TensorProto.DataType number; UNIMPLEMENTED for strings, complex
// numbers and unknown values.
absl::StatusOr<DType> ElementType(const OpContext& context, int64_t onnx_type);

// A 1-D i64 constant.
Tensor IntsTensor(const std::vector<int64_t>& values);

// Older versions carry as an integer-list attribute what newer ones take as input `input`: moves it there, if present.
void AttributeToInput(ImportContext& import, const std::string& attribute, int input);

// Defines output `o` as a map. An empty tensor loads nothing: `body` is then not called.
void DefineMap(LowerContext& context, int o, const std::function<te::Scalar(const te::Builder::Idx& i)>& body);

// The type in which sums over elements of `dtype` are accumulated: f32 for narrower floats, itself otherwise.
DType AccumulatorType(DType dtype);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_DEF_PARTS_H_
