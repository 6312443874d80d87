#include "compiler/plan/planners/graph_turbo/lowering/te_evaluator.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

void CollectAddresses(const te::Index& index, std::set<te::TensorId>* tensors) {
  for (const te::Index::Part& part : index.parts()) {
    if (part.term.kind == te::TermKind::kLoad) tensors->insert(part.term.tensor);
    if (part.term.inner) CollectAddresses(*part.term.inner, tensors);
    for (const te::Index& inner : part.term.indices) CollectAddresses(inner, tensors);
  }
}

// The tensors whose elements are addresses. They keep their extents, so that the indices in which they stand need no
// shift.
std::set<te::TensorId> AddressesOf(const te::Program& program) {
  std::set<te::TensorId> tensors;
  const auto collect = [&](const te::Pred& pred) {
    for (const te::Comparison& comparison : pred) {
      CollectAddresses(comparison.lhs, &tensors);
      CollectAddresses(comparison.rhs, &tensors);
    }
  };
  for (const te::Te& te : program.tes) {
    if (te.reduction) collect(te.reduction->pred);
    te::VisitScalars(te, [&](const te::Scalar& scalar) {
      te::Visit(scalar, [&](const te::ScalarNode& node) {
        CollectAddresses(node.index, &tensors);
        collect(node.pred);
        for (const te::Index& index : node.indices) CollectAddresses(index, &tensors);
      });
    });
  }
  return tensors;
}

std::vector<int64_t> Strides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return strides;
}

// Calls `visit(a, b)` with the row-major numbers of each element of a box of these extents in two arrays that hold it.
template <typename Visit>
void VisitBox(const std::vector<int64_t>& extents, const std::vector<int64_t>& a_origin,
              const std::vector<int64_t>& a_extents, const std::vector<int64_t>& b_origin,
              const std::vector<int64_t>& b_extents, const Visit& visit) {
  const std::vector<int64_t> a_strides = Strides(a_extents), b_strides = Strides(b_extents);
  int64_t a = 0, b = 0, count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    a += a_origin[d] * a_strides[d];
    b += b_origin[d] * b_strides[d];
    count *= extents[d];
  }
  std::vector<int64_t> at(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(a, b);
    for (size_t d = extents.size(); d-- > 0;) {
      a += a_strides[d];
      b += b_strides[d];
      if (++at[d] < extents[d]) break;
      a -= at[d] * a_strides[d];
      b -= at[d] * b_strides[d];
      at[d] = 0;
    }
  }
}

void Put(Tensor* tensor, int64_t at, float value) {
  if (tensor->dtype() == DType::kF32) {
    tensor->mutable_as<float>()[at] = value;
  } else if (IsFloat(tensor->dtype())) {
    tensor->SetDouble(at, value);
  } else {
    tensor->SetInt(at, static_cast<int64_t>(value));
  }
}

float Get(const Tensor& tensor, int64_t at) {
  if (tensor.dtype() == DType::kF32) return tensor.as<float>()[at];
  if (IsFloat(tensor.dtype())) return static_cast<float>(tensor.GetDouble(at));
  return static_cast<float>(tensor.GetInt(at));
}

// The boxes of all tensors of an expression, and the program over them.
class PartOfExpression {
 public:
  PartOfExpression(const AccessMap& access, const dsa::EvaluationRequest& request)
      : whole_(access.program()), request_(request), kept_(AddressesOf(whole_)) {
    std::vector<Region> results;
    for (const dsa::TensorBox& box : request.results) {
      Region region = WholeRegion(box.extents);
      for (size_t d = 0; d < box.origin.size(); ++d) {
        region.ranges[d].begin += box.origin[d];
        region.ranges[d].end += box.origin[d];
      }
      results.push_back(std::move(region));
    }
    ReductionPart part;
    if (request.reduce_end > 0) {
      part = {whole_.tes[0].reduction->axes[0].id, {request.reduce_begin, request.reduce_end}};
    }
    regions_ = access.Required(results, part).tensors;
    // The results of one expression are computed over one box.
    for (const te::Te& te : whole_.tes) {
      Region joined;
      if (te.routine) continue;
      for (const te::TensorId output : te.outputs) joined.Join(regions_[output]);
      for (const te::TensorId output : te.outputs) regions_[output] = joined;
    }
    for (size_t i = 0; i < request.inputs.size(); ++i) operand_of_[whole_.inputs[request.inputs[i]]] = i;
  }

  absl::StatusOr<std::vector<std::vector<float>>> Run() {
    te::Program part;
    part.next_axis = whole_.next_axis;
    for (te::TensorId t = 0; t < static_cast<int>(whole_.tensors.size()); ++t) {
      const te::TensorInfo& info = whole_.tensors[t];
      part.AddTensor(info.name, info.dtype, ExtentsOf(t),
                     info.role == te::Role::kConstant ? te::Role::kInput : info.role);
    }
    for (const te::Te& te : whole_.tes) {
      if (!regions_[te.outputs[0]].nothing) part.tes.push_back(Restrict(te));
    }
    std::vector<Tensor> inputs;
    for (const te::TensorId t : part.inputs) inputs.push_back(InputOf(t, part.tensors[t]));
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, te::Interpret(part, inputs));
    std::vector<std::vector<float>> values;
    for (size_t r = 0; r < outputs.size(); ++r) {
      const dsa::TensorBox& box = request_.results[r];
      std::vector<int64_t> from = box.origin;
      const std::vector<int64_t> origin = OriginOf(whole_.outputs[r]);
      for (size_t d = 0; d < from.size(); ++d) from[d] -= origin[d];
      std::vector<float>& result = values.emplace_back();
      VisitBox(box.extents, from, outputs[r].shape(), from, outputs[r].shape(),
               [&](int64_t a, int64_t) { result.push_back(Get(outputs[r], a)); });
    }
    return values;
  }

 private:
  // The box that the part holds of a tensor. An operand's is the one that the instruction has.
  std::vector<int64_t> OriginOf(te::TensorId t) const {
    const Shape& shape = whole_.tensors[t].shape;
    if (kept_.count(t) > 0) return std::vector<int64_t>(shape.size(), 0);
    if (const auto it = operand_of_.find(t); it != operand_of_.end()) return request_.operands[it->second].origin;
    std::vector<int64_t> origin(shape.size(), 0);
    for (size_t d = 0; d < regions_[t].ranges.size(); ++d) origin[d] = regions_[t].ranges[d].begin;
    return origin;
  }
  std::vector<int64_t> ExtentsOf(te::TensorId t) const {
    const Shape& shape = whole_.tensors[t].shape;
    if (kept_.count(t) > 0) return shape;
    if (const auto it = operand_of_.find(t); it != operand_of_.end()) return request_.operands[it->second].extents;
    if (regions_[t].nothing) return std::vector<int64_t>(shape.size(), 1);
    std::vector<int64_t> extents;
    for (const Range& range : regions_[t].ranges) extents.push_back(range.length());
    return extents;
  }

  Tensor InputOf(te::TensorId t, const te::TensorInfo& info) const {
    Tensor tensor(info.dtype, info.shape);
    const auto it = operand_of_.find(t);
    if (it == operand_of_.end()) return tensor;
    const dsa::TensorBox& box = request_.operands[it->second];
    const std::vector<float>& values = request_.values[it->second];
    std::vector<int64_t> origin = box.origin;
    const std::vector<int64_t> base = OriginOf(t), zero(box.extents.size(), 0);
    for (size_t d = 0; d < origin.size(); ++d) origin[d] -= base[d];
    VisitBox(box.extents, zero, box.extents, origin, info.shape,
             [&](int64_t a, int64_t b) { Put(&tensor, b, values[a]); });
    return tensor;
  }

  te::Te Restrict(const te::Te& te) const {
    te::Te part = te;
    if (te.routine) return part;
    std::map<int, te::Index> moved;
    const auto restrict = [&](te::Axis* axis, const Range& range) {
      axis->extent = range.length();
      moved.emplace(axis->id, te::Index(*axis) + te::Index(range.begin));
    };
    for (size_t a = 0; a < part.axes.size(); ++a) restrict(&part.axes[a], regions_[te.outputs[0]].ranges[a]);
    if (part.reduction && request_.reduce_end > 0) {
      restrict(&part.reduction->axes[0], {request_.reduce_begin, request_.reduce_end});
    }
    const auto axis_map = [&](const te::Axis& axis) -> const te::Index* {
      const auto it = moved.find(axis.id);
      return it == moved.end() ? nullptr : &it->second;
    };
    const auto shift = [&](const te::Scalar& load) -> te::Scalar {
      const std::vector<int64_t> origin = OriginOf(load->tensor);
      std::vector<te::Index> indices;
      for (size_t d = 0; d < origin.size(); ++d) indices.push_back(load->indices[d] - te::Index(origin[d]));
      return te::Load(load->tensor, load->dtype, std::move(indices), load->pad);
    };
    const auto rewrite = [&](std::vector<te::Scalar>* scalars) {
      for (te::Scalar& scalar : *scalars) scalar = te::MapLoads(te::Substitute(scalar, axis_map), shift);
    };
    rewrite(&part.body);
    rewrite(&part.then);
    if (part.reduction) {
      rewrite(&part.reduction->init);
      for (te::Comparison& comparison : part.reduction->pred) {
        comparison.lhs = te::Substitute(comparison.lhs, axis_map);
        comparison.rhs = te::Substitute(comparison.rhs, axis_map);
      }
    }
    return part;
  }

  const te::Program& whole_;
  const dsa::EvaluationRequest& request_;
  const std::set<te::TensorId> kept_;
  std::vector<Region> regions_;
  std::map<te::TensorId, size_t> operand_of_;
};

}  // namespace

TeEvaluator::TeEvaluator(const std::vector<te::Program>& expressions) {
  for (const te::Program& expression : expressions) expressions_.emplace_back(expression);
}

absl::StatusOr<TeEvaluator> TeEvaluator::FromTexts(const dsa::Program& program) {
  std::vector<te::Program> expressions;
  for (const dsa::Expression& expression : program.expressions) {
    ASSIGN_OR_RETURN(expressions.emplace_back(), te::Parse(expression.text));
  }
  return TeEvaluator(expressions);
}

absl::StatusOr<std::vector<std::vector<float>>> TeEvaluator::Evaluate(const dsa::EvaluationRequest& request) {
  return PartOfExpression(expressions_[request.expression], request).Run();
}

}  // namespace fusion::graph_turbo
