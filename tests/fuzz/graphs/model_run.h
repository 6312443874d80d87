// Imports and runs ONNX models in memory: whole, or one operator on constants.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_MODEL_RUN_H_
#define FUSION_TESTS_FUZZ_GRAPHS_MODEL_RUN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "onnx/onnx_pb.h"

namespace fusion::fuzz {

// Returns a model without operators, with one version of every domain that the registry has.
onnx::ModelProto EmptyModel();

onnx::TensorProto ToProto(const std::string& name, const Tensor& tensor);
onnx::ValueInfoProto TypeProto(const std::string& name, DType dtype, const Shape& shape);

absl::StatusOr<ecg::Graph> ImportModel(const onnx::ModelProto& model);

using TensorsByName = std::map<std::string, Tensor>;

// Returns the results of `node` if all values that it reads, also in its subgraphs, are constants. Fails like import,
// and with RESOURCE_EXHAUSTED where a value would have more elements than anybody wants to wait for.
absl::StatusOr<TensorsByName> RunNode(const onnx::NodeProto& node, const TensorsByName& values);

// Returns the outer names that the node and its subgraphs read.
std::vector<std::string> Reads(const onnx::NodeProto& node);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_MODEL_RUN_H_
