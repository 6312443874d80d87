#include "compiler/ops/registry/expression.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/te/program/transform.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

absl::StatusOr<te::Program> ProgramOf(const OpContext& context) {
  absl::StatusOr<te::Program> program = te::Parse(context.attrs.String(kExpressionText));
  if (!program.ok()) return context.Error(absl::StrCat("its expression: ", program.status().message()));
  if (program->tes.size() != 1) return context.Error("its text is not one expression");
  return program;
}

absl::StatusOr<std::vector<ecg::ValueType>> Infer(const OpContext& context, int num_outputs) {
  ASSIGN_OR_RETURN(const te::Program program, ProgramOf(context));
  if (program.inputs.size() != context.inputs.size() || program.outputs.size() != static_cast<size_t>(num_outputs)) {
    return context.Error(absl::StrCat("its expression has ", program.inputs.size(), " inputs and ",
                                      program.outputs.size(), " outputs, the node ", context.inputs.size(), " and ",
                                      num_outputs));
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const te::TensorInfo& info = program.tensors[program.inputs[i]];
    const int input = static_cast<int>(i);
    if (context.Has(input) && context.Type(input).dtype == info.dtype && context.ShapeOf(input) == info.shape) continue;
    return context.Error(
        absl::StrCat("input ", i, " is not ", DTypeName(info.dtype), ShapeToString(info.shape), ", as its text says"));
  }
  std::vector<ecg::ValueType> types;
  for (te::TensorId output : program.outputs) {
    types.push_back({program.tensors[output].dtype, program.tensors[output].shape});
  }
  return types;
}

// Is every load of the tensor at the axes of the result, in order?
bool ReadInPlace(const te::Te& te, te::TensorId tensor) {
  bool in_place = true;
  te::VisitScalars(te, [&](const te::Scalar& root) {
    te::Visit(root, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || node.tensor != tensor) return;
      in_place = in_place && node.indices.size() == te.axes.size();
      for (size_t d = 0; in_place && d < node.indices.size(); ++d) {
        in_place = node.indices[d] == te::Index(te.axes[d]);
      }
    });
  });
  return in_place;
}

MappingType Mapping(const OpContext& context, int input) {
  const absl::StatusOr<te::Program> program = ProgramOf(context);
  if (!program.ok() || input >= static_cast<int>(program->inputs.size())) return MappingType::kManyToMany;
  const te::Te& te = program->tes[0];
  const te::TensorId tensor = program->inputs[input];
  if (te::DependenceOf(te, tensor) == te::Dependence::kMany) return MappingType::kManyToMany;
  if (ReadInPlace(te, tensor)) return MappingType::kOneToOne;
  const int64_t read = NumElements(program->tensors[tensor].shape);
  const int64_t made = NumElements(program->tensors[te.outputs[0]].shape);
  return read < made ? MappingType::kOneToMany : MappingType::kShuffle;
}

double Flops(const OpContext& context, const std::vector<ecg::ValueType>&) {
  const absl::StatusOr<te::Program> program = ProgramOf(context);
  return program.ok() ? te::CountWork(program->tes[0]).fma : 0;
}

absl::Status Lower(LowerContext& context) {
  ASSIGN_OR_RETURN(const te::Program expression, ProgramOf(context));
  te::Program* program = context.builder->program();
  std::map<te::TensorId, te::TensorId> tensors;
  for (size_t i = 0; i < expression.inputs.size(); ++i) tensors[expression.inputs[i]] = context.in[i];
  for (size_t o = 0; o < expression.outputs.size(); ++o) {
    const te::TensorInfo& info = expression.tensors[expression.outputs[o]];
    context.out[o] = program->AddTensor("", info.dtype, info.shape, te::Role::kIntermediate);
    tensors[expression.outputs[o]] = context.out[o];
  }
  te::Te te = te::CopyTe(expression.tes[0], [&](te::TensorId tensor) { return tensors.at(tensor); }, program);
  program->tes.push_back(std::move(te));
  return absl::OkStatus();
}

}  // namespace

Expression ToExpression(const te::Program& program, const te::Te& te) {
  Expression result;
  te::Program alone;
  std::map<te::TensorId, te::TensorId> tensors;
  const auto add = [&](te::TensorId tensor, te::Role role) {
    const auto [it, fresh] = tensors.emplace(tensor, -1);
    if (fresh) it->second = alone.AddTensor("", program.tensors[tensor].dtype, program.tensors[tensor].shape, role);
    return fresh;
  };
  te::VisitTensors(te, [&](te::TensorId tensor) {
    if (add(tensor, te::Role::kInput)) result.inputs.push_back(tensor);
  });
  for (te::TensorId output : te.outputs) add(output, te::Role::kOutput);
  alone.tes.push_back(te::CopyTe(te, [&](te::TensorId tensor) { return tensors.at(tensor); }, &alone));
  result.text = te::Print(alone);
  return result;
}

std::vector<OpDef> ExpressionOps() {
  OpDef def;
  def.name = kExpression;
  def.min_inputs = 0;
  def.max_inputs = -1;
  def.num_outputs = -1;
  def.attrs = {{kExpressionText, AttrKind::kString, /*required=*/true}};
  def.internal = true;
  def.narrow_types = true;  // only moved by the operators that it is made from
  def.infer = Infer;
  def.mapping = Mapping;
  def.flops = Flops;
  def.lower = Lower;
  return {def};
}

}  // namespace fusion::ops
