// Binds the static types of a model's inputs.
#ifndef FUSION_COMPILER_ONNX_BIND_INPUTS_H_
#define FUSION_COMPILER_ONNX_BIND_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/import_request.h"
#include "compiler/onnx/imported_value.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// Returns the name of element `i` of the sequence `name`: `name[i]`, which --shape and constants use.
std::string ElementName(const std::string& name, size_t i);

struct BoundInput {
  std::string name;
  ImportedValue::Kind kind = ImportedValue::Kind::kTensor;
  ecg::ValueType type;                    // kTensor
  std::vector<BoundInput> elements;       // kSequence: named by ElementName; kOptional: one of the same name, or none
  std::vector<std::string> symbols = {};  // kTensor: the name of each dimension that --dim bound, "" for others
};

// Returns the graph's inputs that are not initializers, in order, with every symbolic dimension bound. The length of a
// sequence `s` is the dimension `s[]`, and `s?=0` says that the optional `s` is absent (by default it is present).
// INVALID_ARGUMENT listing all unbound dimensions with the options that bind them, and for a binding that binds
// nothing.
absl::StatusOr<std::vector<BoundInput>> BindInputs(const onnx::GraphProto& graph, const ImportRequest& request);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_BIND_INPUTS_H_
