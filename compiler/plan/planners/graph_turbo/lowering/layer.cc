#include "compiler/plan/planners/graph_turbo/lowering/layer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/te/program/transform.h"

namespace fusion::graph_turbo {
namespace {

const te::ScalarNode* WithoutCasts(const te::Scalar& scalar) {
  const te::ScalarNode* node = scalar.get();
  while (node->kind == te::ScalarKind::kCast) node = node->args[0].get();
  return node;
}

bool Uses(const te::ScalarNode& load, const te::Axis& axis) {
  return std::any_of(load.indices.begin(), load.indices.end(),
                     [&](const te::Index& index) { return index.UsesAxis(axis.id); });
}

// The tensors at whose elements the te finds addresses, and those that it loads at such addresses.
struct Indirect {
  std::set<te::TensorId> addresses, loaded;
};

Indirect IndirectLoads(const te::Te& te) {
  Indirect indirect;
  te::VisitScalars(te, [&](const te::Scalar& scalar) {
    te::Visit(scalar, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      const auto has_load = [](const te::Index& index) { return index.HasLoad(); };
      if (std::any_of(node.indices.begin(), node.indices.end(), has_load)) indirect.loaded.insert(node.tensor);
    });
  });
  return indirect;
}

// Makes what follows a product's sum an expression of its own.
te::Program SplitThen(const te::Program& program) {
  te::Program split = program;
  split.tes.clear();
  for (const te::Te& te : program.tes) {
    if (te.then.empty() || !IsMatrixProduct(te)) {
      split.tes.push_back(te);
      continue;
    }
    te::Te sum = te;
    Shape shape;
    for (const te::Axis& axis : te.axes) shape.push_back(axis.extent);
    const te::TensorId acc = split.AddTensor("acc", te.reduction->acc, shape, te::Role::kIntermediate);
    sum.outputs = {acc};
    sum.then.clear();
    te::Te then;
    std::map<int, te::Index> fresh;
    std::vector<te::Index> at;
    for (const te::Axis& axis : te.axes) {
      then.axes.push_back(split.NewAxis(axis.extent));
      at.emplace_back(then.axes.back());
      fresh.emplace(axis.id, at.back());
    }
    then.outputs = te.outputs;
    for (const te::Scalar& scalar : te.then) {
      const te::Scalar moved = te::Substitute(scalar, [&](const te::Axis& axis) -> const te::Index* {
        const auto it = fresh.find(axis.id);
        return it == fresh.end() ? nullptr : &it->second;
      });
      then.body.push_back(te::MapAccs(
          moved, [&](const te::Scalar& read) { return te::Cast(read->dtype, te::Load(acc, te.reduction->acc, at)); }));
    }
    then.origins = te.origins;
    split.tes.push_back(std::move(sum));
    split.tes.push_back(std::move(then));
  }
  return split;
}

SegmentUnit UnitOf(const te::Te& te, const std::set<te::TensorId>& weights) {
  if (te.routine) return SegmentUnit::kSpecial;
  if (IsMatrixProduct(te)) return SegmentUnit::kMatrix;
  const Indirect indirect = IndirectLoads(te);
  if (te.IsMap() && std::any_of(indirect.loaded.begin(), indirect.loaded.end(),
                                [&](te::TensorId tensor) { return weights.count(tensor) > 0; })) {
    return SegmentUnit::kGather;
  }
  return te::CountWork(te).special > 0 ? SegmentUnit::kSpecial : SegmentUnit::kVector;
}

// Fills the segment's expression from its tes.
void MakeExpression(const te::Program& program, Segment* segment, const std::set<te::TensorId>& read_later) {
  std::map<te::TensorId, te::TensorId> number;
  std::set<te::TensorId> made;
  const auto add = [&](te::TensorId tensor, te::Role role) {
    const te::TensorInfo& info = program.tensors[tensor];
    number[tensor] = segment->expression.AddTensor(info.name, info.dtype, info.shape, role);
  };
  for (const int t : segment->tes) {
    const te::Te& te = program.tes[t];
    const auto read = [&](te::TensorId tensor) {
      if (number.count(tensor) > 0) return;
      add(tensor, te::Role::kInput);
      segment->in.push_back(tensor);
    };
    te::VisitTensors(te, read);
    if (te.routine) {
      for (const te::TensorId input : te.routine->inputs) read(input);
    }
    for (const te::TensorId output : te.outputs) {
      const bool leaves = read_later.count(output) > 0;
      add(output, leaves ? te::Role::kOutput : te::Role::kIntermediate);
      if (leaves) segment->out.push_back(output);
    }
    segment->expression.tes.push_back(te::CopyTe(
        te, [&](te::TensorId tensor) { return number.at(tensor); }, &segment->expression));
  }
}

}  // namespace

bool IsMatrixProduct(const te::Te& te) {
  if (!te.reduction || te.reduction->kind != te::ReductionKind::kSum || te.body.size() != 1) return false;
  const te::ScalarNode* body = WithoutCasts(te.body[0]);
  if (body->kind != te::ScalarKind::kOp || body->op != te::Op::kMul) return false;
  const te::ScalarNode *a = WithoutCasts(body->args[0]), *b = WithoutCasts(body->args[1]);
  if (a->kind != te::ScalarKind::kLoad || b->kind != te::ScalarKind::kLoad) return false;
  bool of_a = false, of_b = false;
  for (const te::Axis& axis : te.axes) {
    of_a = of_a || (Uses(*a, axis) && !Uses(*b, axis));
    of_b = of_b || (Uses(*b, axis) && !Uses(*a, axis));
  }
  return of_a && of_b;
}

double Segment::Work(absl::Span<const Region> tensors) const {
  double work = 0;
  for (const WholeWork& te : whole) {
    if (te.routine) {
      for (const te::TensorId output : te.outputs) work += static_cast<double>(tensors[output].elements());
      continue;
    }
    if (te.elements == 0) continue;
    double needed = 0;
    for (const te::TensorId output : te.outputs) {
      needed = std::max(needed, static_cast<double>(tensors[output].elements()));
    }
    work += te.work * needed / te.elements;
  }
  return work;
}

namespace {

Segment::WholeWork WholeWorkOf(const te::Te& te, SegmentUnit unit) {
  Segment::WholeWork whole;
  whole.outputs = te.outputs;
  whole.routine = te.routine.has_value();
  if (whole.routine) return whole;
  const te::WorkCount count = te::CountWork(te);
  for (const te::Axis& axis : te.axes) whole.elements *= static_cast<double>(axis.extent);
  whole.work = unit == SegmentUnit::kMatrix ? count.elements : std::max(count.elements, count.fma + count.special);
  return whole;
}

std::vector<int> NumbersOf(const std::vector<te::TensorId>& tensors, size_t count) {
  std::vector<int> numbers(count, kNone);
  // The first, where a tensor is there twice.
  for (size_t k = tensors.size(); k-- > 0;) numbers[tensors[k]] = static_cast<int>(k);
  return numbers;
}

}  // namespace

Layer MakeLayer(const Op& op) {
  const te::Program split = SplitThen(op.access.program());
  std::set<te::TensorId> weights;
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    if (op.inputs[k] == kNone) weights.insert(split.inputs[k]);
  }
  std::vector<Segment> segments;
  for (int t = 0; t < static_cast<int>(split.tes.size()); ++t) {
    const SegmentUnit unit = UnitOf(split.tes[t], weights);
    const bool alone = unit == SegmentUnit::kMatrix || unit == SegmentUnit::kGather || split.tes[t].routine;
    const bool joins = !segments.empty() && !alone && segments.back().unit != SegmentUnit::kMatrix &&
                       segments.back().unit != SegmentUnit::kGather && !split.tes[segments.back().tes.back()].routine;
    if (!joins) segments.emplace_back().unit = unit;
    if (joins && unit == SegmentUnit::kSpecial) segments.back().unit = unit;
    segments.back().tes.push_back(t);
  }
  for (Segment& segment : segments) {
    for (const int t : segment.tes) segment.whole.push_back(WholeWorkOf(split.tes[t], segment.unit));
  }
  std::set<te::TensorId> read_later(split.outputs.begin(), split.outputs.end());
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    MakeExpression(split, &*segment, read_later);
    std::set<te::TensorId> loaded;
    if (segment->unit == SegmentUnit::kGather) loaded = IndirectLoads(split.tes[segment->tes[0]]).loaded;
    for (const te::TensorId tensor : segment->in) {
      segment->table.push_back(loaded.count(tensor) > 0 && weights.count(tensor) > 0);
    }
    read_later.insert(segment->in.begin(), segment->in.end());
  }
  Layer layer{AccessMap(split), std::move(segments), -1, 1};
  layer.input_of = NumbersOf(split.inputs, split.tensors.size());
  layer.output_of = NumbersOf(split.outputs, split.tensors.size());
  if (!layer.segments.empty() && layer.segments[0].unit == SegmentUnit::kMatrix) {
    const std::vector<te::Axis>& axes = split.tes[layer.segments[0].tes[0]].reduction->axes;
    if (!axes.empty() && split.tes[layer.segments[0].tes[0]].reduction->pred.empty()) {
      layer.chunk_axis = axes[0].id;
      layer.chunk_extent = axes[0].extent;
    }
  }
  return layer;
}

}  // namespace fusion::graph_turbo
