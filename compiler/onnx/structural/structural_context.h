// StructuralContext: what import offers to structural operators (structural_op.h) while it imports one of their nodes.
#ifndef FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_CONTEXT_H_
#define FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_CONTEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/canonical_graph.h"
#include "compiler/onnx/imported_value.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

class StructuralContext {
 public:
  virtual ~StructuralContext() = default;

  // Imports the nodes of `graph` and returns its outputs. `bound` replaces its inputs; other names are those of the
  // enclosing graphs. A graph may be imported any number of times; its constants become values once. `label`
  // ("loop[3]/") precedes the names of its nodes and values. Errors are those of ImportOnnx.
  using Bindings = std::vector<std::pair<std::string, ImportedValue>>;
  virtual absl::StatusOr<std::vector<ImportedValue>> Inline(onnx::GraphProto* graph, const Bindings& bound,
                                                            const std::string& label) = 0;

  // The graph that is being built.
  virtual CanonicalGraph& canonical() = 0;

  // Returns the value of a Constant node or of an attribute: the same value however often the node is imported.
  virtual absl::StatusOr<ecg::ValueId> ConstantOf(onnx::NodeProto* node) = 0;
  // Adds a canonical node that the model does not have, named after the node that is being imported.
  virtual absl::StatusOr<std::vector<ecg::ValueId>> AddNodes(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                             ecg::Attributes attrs, int num_outputs) = 0;
  // Counts the work of unrolling; RESOURCE_EXHAUSTED past the limits of limits.h.
  virtual absl::Status Charge(int64_t steps) = 0;

  // Adds such a node with one output.
  absl::StatusOr<ecg::ValueId> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                       ecg::Attributes attrs = {});
  ecg::ValueId AddConstant(Tensor tensor) { return canonical().graph.AddConstant("", std::move(tensor)); }
  ecg::ValueId AddInts(const std::vector<int64_t>& values);  // 1-D i64
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_CONTEXT_H_
