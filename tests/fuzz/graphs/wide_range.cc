#include "tests/fuzz/graphs/wide_range.h"

#include <limits>
#include <string>
#include <utility>

#include "compiler/analysis/interpret.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/cut_to_extents.h"

namespace fusion::fuzz {
namespace {

using ecg::ValueId;

constexpr double kMost = 0x1p145;

Tensor ToF64(const Tensor& tensor) {
  Tensor wide(DType::kF64, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) wide.SetDouble(i, tensor.GetDouble(i));
  return wide;
}

// Makes the graph in f64, whose values beyond kMost are infinities.
class WideGraph {
 public:
  explicit WideGraph(const ecg::Graph& source) : source_(source), map_(source.values().size(), ecg::kNone) {}

  absl::StatusOr<ecg::Graph> Make() {
    for (const ValueId input : source_.inputs()) {
      ecg::ValueType type = source_.value(input).type;
      if (type.dtype == DType::kF32) type.dtype = DType::kF64;
      map_[input] = graph_.AddInput(source_.value(input).name, type);
    }
    for (const ecg::Node& node : source_.nodes()) {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(Map(input));
      ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Node(node.op, inputs, node.attrs, node.outputs.size()));
      for (size_t o = 0; o < outputs.size(); ++o) {
        ASSIGN_OR_RETURN(map_[node.outputs[o]], Cut(outputs[o]));
      }
    }
    for (size_t o = 0; o < source_.outputs().size(); ++o) {
      graph_.AddOutput(Map(source_.outputs()[o]), source_.output_names()[o]);
    }
    graph_.SetOutputExtents(source_.output_extents());
    return std::move(graph_);
  }

 private:
  ValueId Map(ValueId old) {
    if (old == ecg::kNone || map_[old] != ecg::kNone) return old == ecg::kNone ? old : map_[old];
    const ecg::Value& value = source_.value(old);
    const bool is_f32 = value.type.dtype == DType::kF32;
    return map_[old] = graph_.AddConstant(value.name, is_f32 ? ToF64(*value.constant) : *value.constant);
  }

  absl::StatusOr<std::vector<ValueId>> Node(const std::string& op, std::vector<ValueId> inputs,
                                            const ecg::Attributes& attrs, size_t outputs) {
    ecg::Node node;
    node.op = op, node.inputs = inputs, node.attrs = attrs;
    ASSIGN_OR_RETURN(const std::vector<ecg::ValueType> types,
                     ops::InferTypes(ops::MakeContext(graph_, node), static_cast<int>(outputs)));
    return graph_.node(graph_.AddNode(op, "", std::move(inputs), attrs, types)).outputs;
  }
  absl::StatusOr<ValueId> One(const std::string& op, std::vector<ValueId> inputs, const ecg::Attributes& attrs = {}) {
    ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Node(op, std::move(inputs), attrs, 1));
    return outputs[0];
  }
  ValueId Number(double value) { return graph_.AddConstant("", Tensor::From<double>(DType::kF64, {}, {value})); }

  absl::StatusOr<ValueId> Cut(ValueId x) {
    if (graph_.value(x).type.dtype == DType::kF32) {
      ecg::Attributes to;
      to.Set("to", ops::OnnxNumber(DType::kF64));
      ASSIGN_OR_RETURN(x, One("Cast", {x}, to));
    }
    if (graph_.value(x).type.dtype != DType::kF64) return x;
    ASSIGN_OR_RETURN(const ValueId size, One("Abs", {x}));
    ASSIGN_OR_RETURN(const ValueId overflows, One("Greater", {size, Number(kMost)}));
    ASSIGN_OR_RETURN(const ValueId infinite, One("Mul", {x, Number(std::numeric_limits<double>::infinity())}));
    return One("Where", {overflows, infinite, x});
  }

  const ecg::Graph& source_;
  ecg::Graph graph_;
  std::vector<ValueId> map_;  // by the source's value
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> RunInWideRange(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  ASSIGN_OR_RETURN(const ecg::Graph wide, WideGraph(graph).Make());
  std::vector<Tensor> wide_inputs;
  for (const Tensor& input : inputs) wide_inputs.push_back(input.dtype() == DType::kF32 ? ToF64(input) : input);
  ASSIGN_OR_RETURN(const std::vector<Tensor> all, ecg::Interpret(wide, wide_inputs));
  return conformance::CutToExtents(graph, all);
}

}  // namespace fusion::fuzz
