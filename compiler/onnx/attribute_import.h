// Converts ONNX attributes to those of the graph.
#ifndef FUSION_COMPILER_ONNX_ATTRIBUTE_IMPORT_H_
#define FUSION_COMPILER_ONNX_ATTRIBUTE_IMPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/tensor_import.h"

namespace onnx {
class AttributeProto;
}

namespace fusion::onnx_import {

// Converts an attribute and takes a tensor's bytes out of the proto. `node` names the node in errors.
absl::StatusOr<ecg::Attribute> TakeAttribute(onnx::AttributeProto* proto, const std::string& node);

// Returns the value of a Constant node from its only attribute (value, value_float, value_ints, …).
absl::StatusOr<Tensor> TakeConstantValue(onnx::AttributeProto* proto, const std::string& node, ExternalFiles* files);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_ATTRIBUTE_IMPORT_H_
