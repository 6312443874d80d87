#include "compiler/te/program/transform.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::te {
namespace {

// Returns whether a load inside an Index (not a scalar) reads the tensor.
bool IndexesBy(const Index& x, TensorId tensor) {
  for (const Index::Part& part : x.parts()) {
    if (part.term.kind == TermKind::kLoad && part.term.tensor == tensor) return true;
    if (part.term.inner && IndexesBy(*part.term.inner, tensor)) return true;
    for (const Index& index : part.term.indices) {
      if (IndexesBy(index, tensor)) return true;
    }
  }
  return false;
}

bool IndexesBy(const Pred& pred, TensorId tensor) {
  return std::any_of(pred.begin(), pred.end(),
                     [&](const Comparison& c) { return IndexesBy(c.lhs, tensor) || IndexesBy(c.rhs, tensor); });
}

bool IndexesBy(const Te& te, TensorId tensor) {
  bool found = te.reduction && IndexesBy(te.reduction->pred, tensor);
  VisitScalars(te, [&](const Scalar& scalar) {
    Visit(scalar, [&](const ScalarNode& node) {
      found |= IndexesBy(node.index, tensor) || IndexesBy(node.pred, tensor);
      for (const Index& index : node.indices) found |= IndexesBy(index, tensor);
    });
  });
  return found;
}

struct IndicesLess {
  bool operator()(const std::vector<Index>& a, const std::vector<Index>& b) const {
    for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
      if (const int order = a[d].Compare(b[d])) return order < 0;
    }
    return a.size() < b.size();
  }
};

// Substitutes the body of a map te at the indices of a load. Loads at the same place get the same nodes, so that a
// chain in which each te reads its producer twice stays linear in size.
class Inliner {
 public:
  Inliner(const Te& producer, Scalar body) : producer_(producer), body_(std::move(body)) {
    if (IsNarrowFloat(body_->dtype) && body_->kind != ScalarKind::kLoad) {
      // A load has been rounded. The cast goes through f32, because a cast to the type that a value nominally has is dropped; a store rounds
      // through f32, too.
      body_ = Cast(body_->dtype, Cast(DType::kF32, body_));
    }
  }

  Scalar At(const ScalarNode& load) {
    Scalar& plain = plain_[load.indices];
    if (plain == nullptr) {
      std::unordered_map<int, const Index*> by_axis;
      for (size_t a = 0; a < producer_.axes.size(); ++a) by_axis[producer_.axes[a].id] = &load.indices[a];
      plain = Substitute(body_, [&](const Axis& axis) -> const Index* {
        auto it = by_axis.find(axis.id);
        return it == by_axis.end() ? nullptr : it->second;
      });
    }
    if (load.pad == nullptr) return plain;
    Pred pred;
    for (size_t a = 0; a < producer_.axes.size(); ++a) {
      const Interval range = load.indices[a].Range();
      const int64_t extent = producer_.axes[a].extent;
      if (range.lo < 0) pred.push_back({load.indices[a], Cmp::kGe, Index(0)});
      if (range.hi >= extent) pred.push_back({load.indices[a], Cmp::kLt, Index(extent)});
    }
    if (pred.empty()) return plain;
    for (const auto& [pad, value] : padded_[load.indices]) {
      if (StructurallyEqual(pad, load.pad)) return value;
    }
    Scalar value = If(std::move(pred), plain, load.pad);
    padded_[load.indices].emplace_back(load.pad, value);
    return value;
  }

 private:
  const Te& producer_;
  Scalar body_;
  std::map<std::vector<Index>, Scalar, IndicesLess> plain_;
  std::map<std::vector<Index>, std::vector<std::pair<Scalar, Scalar>>, IndicesLess> padded_;
};

bool Reads(const Te& te, TensorId tensor) {
  bool reads = false;
  VisitTensors(te, [&](TensorId read) { reads |= read == tensor; });
  return reads;
}

}  // namespace

Te CopyTe(const Te& te, const std::function<TensorId(TensorId)>& tensor, Program* program) {
  Te copy = te;
  std::map<int, Index> fresh;
  const auto renumber = [&](std::vector<Axis>* axes) {
    for (Axis& axis : *axes) {
      const Axis made = program->NewAxis(axis.extent);
      fresh.emplace(axis.id, Index(made));
      axis = made;
    }
  };
  renumber(&copy.axes);
  if (copy.reduction) renumber(&copy.reduction->axes);
  const auto axis_map = [&](const Axis& axis) -> const Index* {
    const auto it = fresh.find(axis.id);
    return it == fresh.end() ? nullptr : &it->second;
  };
  const auto rewrite = [&](std::vector<Scalar>* scalars) {
    for (Scalar& s : *scalars) s = MapTensors(Substitute(s, axis_map), tensor);
  };
  rewrite(&copy.body);
  rewrite(&copy.then);
  if (copy.routine) {
    for (TensorId& input : copy.routine->inputs) input = tensor(input);
  }
  if (copy.reduction) {
    rewrite(&copy.reduction->init);
    for (Comparison& c : copy.reduction->pred) {
      c.lhs = MapTensors(Substitute(c.lhs, axis_map), tensor);
      c.rhs = MapTensors(Substitute(c.rhs, axis_map), tensor);
    }
  }
  for (TensorId& output : copy.outputs) output = tensor(output);
  return copy;
}

absl::Status Inline(Program* program, TensorId tensor) {
  const int producer_index = program->DefiningTe(tensor);
  if (producer_index < 0) return absl::InvalidArgumentError(absl::StrCat("no expression defines %", tensor));
  const Te producer = program->tes[producer_index];
  if (!producer.IsMap()) {
    return absl::FailedPreconditionError(absl::StrCat("%", tensor, " is a reduction; only a map can be inlined"));
  }
  std::vector<Te*> readers;
  for (size_t t = producer_index + 1; t < program->tes.size(); ++t) {
    if (Reads(program->tes[t], tensor)) readers.push_back(&program->tes[t]);
  }
  for (const Te* reader : readers) {
    if (IndexesBy(*reader, tensor)) {
      return absl::FailedPreconditionError(
          absl::StrCat("%", tensor, " is read inside an index; it has to be materialised"));
    }
  }
  const size_t position =
      std::find(producer.outputs.begin(), producer.outputs.end(), tensor) - producer.outputs.begin();
  for (Te* reader : readers) {
    Inliner inliner(producer, producer.body[position]);
    const auto at = [&](const Scalar& load) { return load->tensor == tensor ? inliner.At(*load) : nullptr; };
    if (reader->reduction) {
      for (Scalar& s : reader->reduction->init) s = MapLoads(s, at);
    }
    for (Scalar& s : reader->body) s = MapLoads(s, at);
    for (Scalar& s : reader->then) s = MapLoads(s, at);
    AddOrigins(producer, reader);
  }
  for (TensorId output : producer.outputs) {
    const bool live =
        std::count(program->outputs.begin(), program->outputs.end(), output) > 0 ||
        std::any_of(program->tes.begin(), program->tes.end(), [&](const Te& te) { return Reads(te, output); });
    if (live) return absl::OkStatus();
  }
  program->tes.erase(program->tes.begin() + producer_index);
  return absl::OkStatus();
}

void RemoveDead(Program* program) {
  std::vector<bool> live(program->tensors.size(), false);
  for (TensorId output : program->outputs) live[output] = true;
  std::vector<Te> kept;
  for (size_t t = program->tes.size(); t-- > 0;) {
    Te& te = program->tes[t];
    if (std::none_of(te.outputs.begin(), te.outputs.end(), [&](TensorId output) { return live[output]; })) continue;
    VisitTensors(te, [&](TensorId tensor) { live[tensor] = true; });
    kept.push_back(std::move(te));
  }
  std::reverse(kept.begin(), kept.end());
  program->tes = std::move(kept);
}

Dependence DependenceOf(const Te& te, TensorId tensor) {
  Dependence result = Dependence::kNone;
  const auto load_of = [&](const std::vector<Index>& indices) {
    result = std::max(result, Dependence::kOne);
    if (!te.reduction) return;
    for (const Axis& axis : te.reduction->axes) {
      for (const Index& index : indices) {
        if (index.UsesAxis(axis.id)) result = Dependence::kMany;
      }
    }
  };
  const std::function<void(const Index&)> in_index = [&](const Index& x) {
    for (const Index::Part& part : x.parts()) {
      if (part.term.kind == TermKind::kLoad && part.term.tensor == tensor) load_of(part.term.indices);
      if (part.term.inner) in_index(*part.term.inner);
      for (const Index& index : part.term.indices) in_index(index);
    }
  };
  const auto in_pred = [&](const Pred& pred) {
    for (const Comparison& c : pred) {
      in_index(c.lhs);
      in_index(c.rhs);
    }
  };
  if (te.reduction) in_pred(te.reduction->pred);
  VisitScalars(te, [&](const Scalar& scalar) {
    Visit(scalar, [&](const ScalarNode& node) {
      if (node.kind == ScalarKind::kLoad && node.tensor == tensor) load_of(node.indices);
      for (const Index& index : node.indices) in_index(index);
      in_index(node.index);
      in_pred(node.pred);
    });
  });
  return result;
}

WorkCount CountWork(const Te& te) {
  double points = 1, reduction_points = 1;
  for (const Axis& axis : te.axes) points *= static_cast<double>(axis.extent);
  if (te.reduction) {
    for (const Axis& axis : te.reduction->axes) reduction_points *= static_cast<double>(axis.extent);
  }
  WorkCount work;
  work.elements = points * reduction_points;
  std::unordered_map<const ScalarNode*, bool> seen;
  const auto count = [&](const Scalar& scalar, double times) {
    Visit(scalar, [&](const ScalarNode& node) {
      if (node.kind != ScalarKind::kOp && node.kind != ScalarKind::kCast) return;
      if (!seen.try_emplace(&node, true).second) return;
      const double cost = node.kind == ScalarKind::kCast ? 1 : GetOpInfo(node.op).cost;
      (cost > 1 ? work.special : work.fma) += cost * times;
    });
  };
  for (const Scalar& body : te.body) count(body, work.elements);
  for (const Scalar& then : te.then) count(then, points);
  if (te.reduction && te.reduction->kind != ReductionKind::kGeneral) {
    const bool product_sum =
        te.reduction->kind == ReductionKind::kSum && te.body[0]->kind == ScalarKind::kOp && te.body[0]->op == Op::kMul;
    if (!product_sum) work.fma += work.elements;  // a sum of products needs no instruction for it
  }
  return work;
}

}  // namespace fusion::te
