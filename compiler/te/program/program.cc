#include "compiler/te/program/program.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fusion::te {
namespace {

Scalar CastTo(DType dtype, Scalar x) { return x->dtype == dtype ? x : Cast(dtype, std::move(x)); }

std::vector<Axis> MakeAxes(Program* program, const Shape& shape) {
  std::vector<Axis> axes;
  axes.reserve(shape.size());
  for (int64_t extent : shape) axes.push_back(program->NewAxis(extent));
  return axes;
}

Builder::Idx ToIndices(const std::vector<Axis>& axes) { return Builder::Idx(axes.begin(), axes.end()); }

void VisitIndex(const Index& x, const std::function<void(TensorId)>& f) {
  for (const Index::Part& part : x.parts()) {
    if (part.term.inner) VisitIndex(*part.term.inner, f);
    if (part.term.kind == TermKind::kLoad) f(part.term.tensor);
    for (const Index& index : part.term.indices) VisitIndex(index, f);
  }
}

void VisitPred(const Pred& pred, const std::function<void(TensorId)>& f) {
  for (const Comparison& c : pred) {
    VisitIndex(c.lhs, f);
    VisitIndex(c.rhs, f);
  }
}

}  // namespace

void AddOrigins(const Te& from, Te* te) {
  std::vector<int> both;
  std::set_union(te->origins.begin(), te->origins.end(), from.origins.begin(), from.origins.end(),
                 std::back_inserter(both));
  te->origins = std::move(both);
}

void VisitScalars(const Te& te, const std::function<void(const Scalar&)>& f) {
  if (te.reduction) {
    for (const Scalar& s : te.reduction->init) f(s);
  }
  for (const Scalar& s : te.body) f(s);
  for (const Scalar& s : te.then) f(s);
}

void VisitTensors(const Te& te, const std::function<void(TensorId)>& f) {
  if (te.routine) {
    for (TensorId tensor : te.routine->inputs) f(tensor);
  }
  if (te.reduction) VisitPred(te.reduction->pred, f);
  VisitScalars(te, [&](const Scalar& scalar) {
    Visit(scalar, [&](const ScalarNode& node) {
      if (node.kind == ScalarKind::kLoad) f(node.tensor);
      for (const Index& index : node.indices) VisitIndex(index, f);
      VisitIndex(node.index, f);
      VisitPred(node.pred, f);
    });
  });
}

TensorId Program::AddTensor(std::string name, DType dtype, Shape shape, Role role) {
  const TensorId id = static_cast<TensorId>(tensors.size());
  tensors.push_back(TensorInfo{std::move(name), dtype, std::move(shape), role, std::nullopt});
  if (role == Role::kInput || role == Role::kConstant) inputs.push_back(id);
  if (role == Role::kOutput) outputs.push_back(id);
  return id;
}

void Program::MarkOutput(TensorId tensor) {
  if (tensors[tensor].role == Role::kIntermediate) tensors[tensor].role = Role::kOutput;
  outputs.push_back(tensor);
}

int Program::DefiningTe(TensorId tensor) const {
  for (int t = static_cast<int>(tes.size()) - 1; t >= 0; --t) {
    for (TensorId output : tes[t].outputs) {
      if (output == tensor) return t;
    }
  }
  return -1;
}

TensorId Builder::Constant(const std::string& name, Tensor value) {
  const TensorId id = program_->AddTensor(name, value.dtype(), value.shape(), Role::kConstant);
  program_->tensors[id].constant = std::move(value);
  return id;
}

Scalar Builder::At(TensorId tensor, Idx indices) const { return Load(tensor, info(tensor).dtype, std::move(indices)); }

Scalar Builder::AtOr(TensorId tensor, Idx indices, double pad) const {
  const DType dtype = info(tensor).dtype;
  return Load(tensor, dtype, std::move(indices), Imm(dtype, pad));
}

TensorId Builder::Map(const std::string& name, DType dtype, const Shape& shape,
                      const std::function<Scalar(const Idx& i)>& body) {
  Te te;
  te.axes = MakeAxes(program_, shape);
  te.body = {CastTo(dtype, body(ToIndices(te.axes)))};
  te.outputs = {program_->AddTensor(name, dtype, shape, Role::kIntermediate)};
  program_->tes.push_back(std::move(te));
  return program_->tes.back().outputs[0];
}

TensorId Builder::Reduce(const std::string& name, ReductionKind kind, DType dtype, DType acc, const Shape& shape,
                         const Shape& reduction_shape, const std::function<Scalar(const Idx& i, const Idx& r)>& body,
                         const std::function<Scalar(const Idx& i, const Scalar& acc)>& then) {
  Te te;
  te.axes = MakeAxes(program_, shape);
  Reduction reduction;
  reduction.kind = kind;
  reduction.acc = acc;
  reduction.axes = MakeAxes(program_, reduction_shape);
  const Idx i = ToIndices(te.axes);
  te.body = {CastTo(acc, body(i, ToIndices(reduction.axes)))};
  if (then) te.then = {CastTo(dtype, then(i, Acc(0, acc)))};
  te.reduction = std::move(reduction);
  te.outputs = {program_->AddTensor(name, dtype, shape, Role::kIntermediate)};
  program_->tes.push_back(std::move(te));
  return program_->tes.back().outputs[0];
}

std::vector<TensorId> Builder::GeneralReduction(
    const std::string& name, const std::vector<DType>& dtypes, const Shape& shape, const Shape& reduction_shape,
    const std::vector<Scalar>& init,
    const std::function<std::vector<Scalar>(const Idx& i, const Idx& r, const std::vector<Scalar>& acc)>& update,
    const std::function<std::vector<Scalar>(const Idx& i, const std::vector<Scalar>& acc)>& then) {
  Te te;
  te.axes = MakeAxes(program_, shape);
  Reduction reduction;
  reduction.kind = ReductionKind::kGeneral;
  reduction.axes = MakeAxes(program_, reduction_shape);
  reduction.init = init;
  std::vector<Scalar> acc;
  for (size_t a = 0; a < init.size(); ++a) acc.push_back(Acc(static_cast<int>(a), init[a]->dtype));
  const Idx i = ToIndices(te.axes);
  te.body = update(i, ToIndices(reduction.axes), acc);
  for (size_t a = 0; a < te.body.size() && a < init.size(); ++a) {
    te.body[a] = CastTo(init[a]->dtype, te.body[a]);
  }
  if (then) {
    te.then = then(i, acc);
    for (size_t o = 0; o < te.then.size() && o < dtypes.size(); ++o) te.then[o] = CastTo(dtypes[o], te.then[o]);
  }
  te.reduction = std::move(reduction);
  for (size_t o = 0; o < dtypes.size(); ++o) {
    const std::string output_name = o == 0 ? name : name + "." + std::to_string(o);
    te.outputs.push_back(program_->AddTensor(output_name, dtypes[o], shape, Role::kIntermediate));
  }
  program_->tes.push_back(std::move(te));
  return program_->tes.back().outputs;
}

std::vector<TensorId> Builder::Call(Routine routine, const std::vector<std::pair<DType, Shape>>& outputs) {
  Te te;
  for (const auto& [dtype, shape] : outputs) {
    te.outputs.push_back(program_->AddTensor(routine.name, dtype, shape, Role::kIntermediate));
  }
  te.routine = std::move(routine);
  program_->tes.push_back(std::move(te));
  return program_->tes.back().outputs;
}

}  // namespace fusion::te
