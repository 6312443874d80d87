// For tests: runs a model of one node through import and the interpreter.
#ifndef FUSION_COMPILER_ONNX_NODE_RUN_H_
#define FUSION_COMPILER_ONNX_NODE_RUN_H_

#include <numeric>
#include <string>
#include <vector>

#include "compiler/onnx/model_text.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {

inline std::string IntAttribute(const std::string& name, int64_t value) {
  return absl::StrCat("attribute { name: '", name, "' type: INT i: ", value, " } ");
}
inline std::string FloatAttribute(const std::string& name, double value) {
  return absl::StrCat("attribute { name: '", name, "' type: FLOAT f: ", value, " } ");
}

// Runs one node with these inputs (an empty tensor stands for an absent one) and `outputs` outputs.
inline absl::StatusOr<std::vector<Tensor>> RunNode(const std::string& op, const std::vector<Tensor>& inputs,
                                                   const std::string& attributes = "", int outputs = 1,
                                                   const std::string& domain = "com.microsoft") {
  std::string graph;
  std::vector<std::string> names, results;
  std::vector<Tensor> bound;
  for (const Tensor& input : inputs) {
    names.push_back(input.data() == nullptr ? "" : absl::StrCat("x", names.size()));
    if (names.back().empty()) continue;
    std::vector<std::string> dims;
    for (int64_t extent : input.shape()) dims.push_back(absl::StrCat(extent));
    graph += TensorInfo("input", names.back(), dims, static_cast<int>(ops::OnnxNumber(input.dtype())));
    bound.push_back(input);
  }
  for (int k = 0; k < outputs; ++k) {
    results.push_back(absl::StrCat("y", k));
    graph += TensorInfo("output", results.back(), {});
  }
  ASSIGN_OR_RETURN(
      const ImportedModel model,
      ImportText(graph + NodeText(op, names, results, "domain: '" + domain + "' name: 'n' " + attributes)));
  std::vector<ecg::NodeId> nodes(model.graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  ASSIGN_OR_RETURN(const ops::LoweredFusionBlock block, ops::LowerNodes(model.graph, nodes, model.graph.outputs()));
  std::vector<Tensor> arguments;
  for (te::TensorId id : block.program.inputs) {
    const ecg::ValueId value = block.value_of_tensor[id];
    arguments.emplace_back();
    for (size_t i = 0; i < bound.size(); ++i) {
      if (value == model.graph.inputs()[i]) arguments.back() = bound[i];
    }
    if (value != ecg::kNone && model.graph.value(value).constant.has_value()) {
      arguments.back() = *model.graph.value(value).constant;
    }
  }
  return te::Interpret(block.program, arguments);
}

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_NODE_RUN_H_
