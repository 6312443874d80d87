#include "compiler/pipeline/precision_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler/ecg/rewriter.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion {
namespace {

using ecg::kNone;
using ecg::Node;
using ecg::Value;
using ecg::ValueId;
using ecg::ValueType;

constexpr float kLargestHalf = 65504;

Tensor ToHalf(const Tensor& tensor) {
  Tensor half(DType::kF16, tensor.shape());
  auto* out = half.mutable_as<uint16_t>();
  const auto* in = tensor.as<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const bool finite = std::isfinite(in[i]);
    out[i] = FloatToHalf(finite ? std::clamp(in[i], -kLargestHalf, kLargestHalf) : in[i]);
  }
  return half;
}

class Halver {
 public:
  explicit Halver(const ecg::Graph& source)
      : source_(source), rewriter_(source), wide_(source.values().size(), true), half_(source.values().size(), kNone) {}

  ecg::Graph Run() {
    for (const Node& node : source_.nodes()) {
      if (!TryHalf(node)) {
        for (const ValueId input : node.inputs) MakeWide(input);
        rewriter_.Copy(node);
      }
    }
    for (const ValueId output : source_.outputs()) MakeWide(output);
    return rewriter_.Finish();
  }

 private:
  bool IsWide(ValueId v) const { return v != kNone && source_.value(v).type.dtype == DType::kF32; }

  ValueId AddCast(ValueId value, DType to, const std::string& name) {
    ecg::Attributes attrs;
    attrs.Set("to", ops::OnnxNumber(to));
    const ValueType type{to, rewriter_.graph()->value(value).type.shape};
    const ecg::NodeId id = rewriter_.graph()->AddNode("Cast", name, {value}, std::move(attrs), {type}, {name});
    return rewriter_.graph()->node(id).outputs[0];
  }

  // Binds the f32 form of a value of which only the f16 form exists so far.
  void MakeWide(ValueId v) {
    if (v == kNone || wide_[v]) return;
    rewriter_.Bind(v, AddCast(half_[v], DType::kF32, source_.value(v).name));
    wide_[v] = true;
  }

  ValueId HalfOf(ValueId v) {
    if (half_[v] != kNone) return half_[v];
    const Value& value = source_.value(v);
    if (value.constant) {
      ecg::Graph* graph = rewriter_.graph();
      half_[v] = value.opaque ? graph->AddOpaqueConstant(value.name, ToHalf(*value.constant))
                              : graph->AddConstant(value.name, ToHalf(*value.constant));
    } else {
      half_[v] = AddCast(rewriter_.Map(v), DType::kF16, value.name);
    }
    return half_[v];
  }

  // Says for each of the node's inputs whether it becomes f16; for none if the operator must not change.
  std::vector<bool> Narrowed(const Node& node) const {
    std::vector<bool> narrowed(node.inputs.size(), false);
    const ops::OpDef* def = ops::FindOp(node.op);
    bool data = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ops::InputRole role = i < def->roles.size() ? def->roles[i] : ops::InputRole::kData;
      narrowed[i] = IsWide(node.inputs[i]) && (role == ops::InputRole::kData || role == ops::InputRole::kScalar);
      data = data || (narrowed[i] && role == ops::InputRole::kData);
    }
    const bool results = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return IsWide(v); });
    if (!data || !results) narrowed.assign(node.inputs.size(), false);
    return narrowed;
  }

  bool TryHalf(const Node& node) {
    const std::vector<bool> narrowed = Narrowed(node);
    if (std::none_of(narrowed.begin(), narrowed.end(), [](bool b) { return b; })) return false;
    // A graph with this node alone shows whether the operator accepts f16.
    ecg::Graph trial;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) {
        inputs.push_back(kNone);
        continue;
      }
      const Value& value = source_.value(node.inputs[i]);
      const ValueType type{narrowed[i] ? DType::kF16 : value.type.dtype, value.type.shape};
      if (value.constant && !value.opaque) {
        inputs.push_back(trial.AddConstant("", narrowed[i] ? HalfConstant(node.inputs[i]) : *value.constant));
      } else {
        inputs.push_back(trial.AddInput("", type));
      }
    }
    std::vector<const Value*> values;
    for (const ValueId v : inputs) values.push_back(v == kNone ? nullptr : &trial.value(v));
    const ops::OpContext context(node.op, node.name, node.attrs, values);
    const auto types = ops::InferTypes(context, static_cast<int>(node.outputs.size()));
    if (!types.ok()) return false;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNone) continue;
      const ValueType& before = source_.value(node.outputs[o]).type;
      const DType wanted = before.dtype == DType::kF32 ? DType::kF16 : before.dtype;
      if ((*types)[o].dtype != wanted || (*types)[o].shape != before.shape) return false;
    }
    const ecg::NodeId alone = trial.AddNode(node.op, node.name, inputs, node.attrs, *types);
    if (!ops::LowerNodes(trial, {alone}, trial.node(alone).outputs).ok()) return false;

    std::vector<ValueId> mapped;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!narrowed[i]) MakeWide(node.inputs[i]);
      mapped.push_back(narrowed[i] ? HalfOf(node.inputs[i]) : rewriter_.Map(node.inputs[i]));
    }
    std::vector<std::string> names;
    for (const ValueId v : node.outputs) names.push_back(source_.value(v).name);
    const ecg::NodeId id = rewriter_.graph()->AddNode(node.op, node.name, std::move(mapped), node.attrs, *types, names);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId old = node.outputs[o], made = rewriter_.graph()->node(id).outputs[o];
      if (IsWide(old)) {
        half_[old] = made;
        wide_[old] = false;
      } else {
        rewriter_.Bind(old, made);
      }
    }
    return true;
  }

  const Tensor& HalfConstant(ValueId v) { return *rewriter_.graph()->value(HalfOf(v)).constant; }

  const ecg::Graph& source_;
  ecg::Rewriter rewriter_;
  std::vector<bool> wide_;     // by old value: Map() has its f32 form
  std::vector<ValueId> half_;  // by old value: its f16 form in the new graph, or kNone
};

}  // namespace

ecg::Graph StoreAsHalves(const ecg::Graph& graph) { return Halver(graph).Run(); }

}  // namespace fusion
