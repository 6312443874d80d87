#include "compiler/plan/planners/graph_turbo/lowering/part_of_expression.h"

#include <map>
#include <set>
#include <utility>

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

// Is a part the same wherever its boxes lie together? Only coordinates of affine indices may depend on axes.
bool ShiftsAlike(const te::Program& program) {
  bool alike = true;
  for (const te::Te& te : program.tes) {
    alike = alike && !te.routine && !(te.reduction && !te.reduction->pred.empty());
    te::VisitScalars(te, [&](const te::Scalar& scalar) {
      te::Visit(scalar, [&](const te::ScalarNode& node) {
        alike = alike && node.kind != te::ScalarKind::kFromIndex && node.pred.empty();
        for (const te::Index& index : node.indices) {
          for (const te::Index::Part& part : index.parts()) alike = alike && part.term.kind == te::TermKind::kAxis;
        }
      });
    });
  }
  return alike;
}

void Append(const std::vector<int64_t>& numbers, std::vector<int64_t>* key) {
  key->push_back(static_cast<int64_t>(numbers.size()));
  key->insert(key->end(), numbers.begin(), numbers.end());
}

std::vector<int64_t> AbsoluteKey(const dsa::EvaluationRequest& request) {
  std::vector<int64_t> key = {request.reduce_begin, request.reduce_end};
  for (const std::vector<dsa::TensorBox>* boxes : {&request.results, &request.operands}) {
    for (const dsa::TensorBox& box : *boxes) {
      Append(box.origin, &key);
      Append(box.extents, &key);
    }
  }
  for (const int input : request.inputs) key.push_back(input);
  for (const int output : request.outputs) key.push_back(output);
  return key;
}

// The boxes of all tensors of an expression, and the program over them.
class PartMaker {
 public:
  PartMaker(const AccessMap& access, const std::set<te::TensorId>& kept, const dsa::EvaluationRequest& request)
      : whole_(access.program()), request_(request), kept_(kept) {
    std::vector<Region> results(whole_.outputs.size());
    for (size_t r = 0; r < request.results.size(); ++r) {
      const dsa::TensorBox& box = request.results[r];
      Region region = WholeRegion(box.extents);
      for (size_t d = 0; d < box.origin.size(); ++d) {
        region.ranges[d].begin += box.origin[d];
        region.ranges[d].end += box.origin[d];
      }
      results[request.OutputOf(r)] = std::move(region);
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

  PartOfExpression Make() const {
    PartOfExpression part;
    part.program.next_axis = whole_.next_axis;
    for (te::TensorId t = 0; t < static_cast<int>(whole_.tensors.size()); ++t) {
      const te::TensorInfo& info = whole_.tensors[t];
      part.program.AddTensor(info.name, info.dtype, ExtentsOf(t),
                             info.role == te::Role::kConstant ? te::Role::kInput : info.role);
    }
    for (const te::Te& te : whole_.tes) {
      if (!regions_[te.outputs[0]].nothing) part.program.tes.push_back(Restrict(te));
    }
    // An output that nobody needs has no expression in the part.
    auto& outputs = part.program.outputs;
    outputs.erase(
        std::remove_if(outputs.begin(), outputs.end(), [&](te::TensorId output) { return regions_[output].nothing; }),
        outputs.end());
    for (size_t o = 0; o < request_.operands.size(); ++o) {
      part.operands.push_back(Place(whole_.inputs[request_.inputs[o]], request_.operands[o]));
    }
    for (size_t r = 0; r < request_.results.size(); ++r) {
      part.results.push_back(Place(ResultOf(r), request_.results[r]));
    }
    return part;
  }

  // Everything that Restrict puts into a part of an expression that shifts alike, and where boxes lie.
  std::vector<int64_t> RelativeKey() const {
    std::vector<int64_t> key = {request_.reduce_end - request_.reduce_begin};
    for (te::TensorId t = 0; t < static_cast<int>(whole_.tensors.size()); ++t) Append(ExtentsOf(t), &key);
    for (const te::Te& te : whole_.tes) {
      if (regions_[te.outputs[0]].nothing) {
        key.push_back(-1);
        continue;
      }
      std::map<int, int64_t> begin;  // of axes
      for (size_t a = 0; a < te.axes.size(); ++a) {
        const Range& range = regions_[te.outputs[0]].ranges[a];
        begin[te.axes[a].id] = range.begin;
        key.push_back(range.length());
      }
      if (te.reduction && request_.reduce_end > 0) begin[te.reduction->axes[0].id] = request_.reduce_begin;
      te::VisitScalars(te, [&](const te::Scalar& scalar) {
        te::Visit(scalar, [&](const te::ScalarNode& node) {
          if (node.kind != te::ScalarKind::kLoad) return;
          const std::vector<int64_t> origin = OriginOf(node.tensor);
          for (size_t d = 0; d < origin.size(); ++d) {
            int64_t offset = node.indices[d].constant() - origin[d];
            for (const te::Index::Part& part : node.indices[d].parts()) {
              const auto found = begin.find(part.term.axis.id);
              if (found != begin.end()) offset += part.coefficient * found->second;
            }
            key.push_back(offset);
          }
        });
      });
    }
    const auto place = [&](te::TensorId tensor, const dsa::TensorBox& box) {
      const PlacedBox placed = Place(tensor, box);
      key.push_back(tensor);
      Append(placed.at, &key);
      Append(placed.extents, &key);
    };
    for (size_t o = 0; o < request_.operands.size(); ++o)
      place(whole_.inputs[request_.inputs[o]], request_.operands[o]);
    for (size_t r = 0; r < request_.results.size(); ++r) place(ResultOf(r), request_.results[r]);
    return key;
  }

 private:
  te::TensorId ResultOf(size_t result) const { return whole_.outputs[request_.OutputOf(result)]; }

  PlacedBox Place(te::TensorId t, const dsa::TensorBox& box) const {
    PlacedBox placed{t, box.origin, box.extents};
    const std::vector<int64_t> origin = OriginOf(t);
    for (size_t d = 0; d < origin.size(); ++d) placed.at[d] -= origin[d];
    return placed;
  }

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
  const std::set<te::TensorId>& kept_;
  std::vector<Region> regions_;
  std::map<te::TensorId, size_t> operand_of_;
};

}  // namespace

ExpressionParts::ExpressionParts(te::Program expression)
    : access_(std::move(expression)),
      kept_(AddressesOf(access_.program())),
      shifts_alike_(ShiftsAlike(access_.program())) {}

PartOfExpression ExpressionParts::PartOf(const dsa::EvaluationRequest& request) const {
  return PartMaker(access_, kept_, request).Make();
}

std::vector<int64_t> ExpressionParts::KeyOf(const dsa::EvaluationRequest& request) const {
  return shifts_alike_ ? PartMaker(access_, kept_, request).RelativeKey() : AbsoluteKey(request);
}

}  // namespace fusion::graph_turbo
