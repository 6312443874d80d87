#include "compiler/schedule/nest/form_stages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/read_share.h"
#include "compiler/te/program/extrema.h"
#include "compiler/te/program/transform.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Recomputing up to this much (in FMA-equivalents per element) costs no more than a store and a load.
constexpr double kInlineCost = 4;
// A reduction of at least so many terms costs more than a copy of its results.
constexpr double kLongSum = 8;

bool IndexLoads(const te::Index& index, te::TensorId tensor) {
  for (const te::Index::Part& part : index.parts()) {
    if (part.term.kind == te::TermKind::kLoad) {
      if (part.term.tensor == tensor) return true;
      for (const te::Index& inner : part.term.indices) {
        if (IndexLoads(inner, tensor)) return true;
      }
    } else if (part.term.inner != nullptr && IndexLoads(*part.term.inner, tensor)) {
      return true;
    }
  }
  return false;
}

struct Uses {
  bool in_body = false;
  bool in_then = false;
  bool in_index = false;  // something is addressed by the tensor's values: it must exist in memory
  bool padded = false;    // read through a padded load
};

void AddUses(const te::Scalar& root, te::TensorId tensor, bool then, Uses* uses) {
  te::Visit(root, [&](const te::ScalarNode& node) {
    if (node.kind == te::ScalarKind::kLoad && node.tensor == tensor) {
      (then ? uses->in_then : uses->in_body) = true;
      if (node.pad != nullptr) uses->padded = true;
    }
    for (const te::Index& index : node.indices) uses->in_index = uses->in_index || IndexLoads(index, tensor);
    if (node.kind == te::ScalarKind::kFromIndex) uses->in_index = uses->in_index || IndexLoads(node.index, tensor);
    for (const te::Comparison& c : node.pred) {
      uses->in_index = uses->in_index || IndexLoads(c.lhs, tensor) || IndexLoads(c.rhs, tensor);
    }
  });
}

Uses UsesOf(const te::Te& te, te::TensorId tensor) {
  Uses uses;
  for (const te::Scalar& s : te.body) AddUses(s, tensor, false, &uses);
  for (const te::Scalar& s : te.then) AddUses(s, tensor, true, &uses);
  if (te.reduction) {
    for (const te::Scalar& s : te.reduction->init) AddUses(s, tensor, true, &uses);
  }
  return uses;
}

void CollectTensors(const te::Index& index, std::set<te::TensorId>* tensors) {
  for (const te::Index::Part& part : index.parts()) {
    if (part.term.kind == te::TermKind::kLoad) {
      tensors->insert(part.term.tensor);
      for (const te::Index& inner : part.term.indices) CollectTensors(inner, tensors);
    } else if (part.term.inner != nullptr) {
      CollectTensors(*part.term.inner, tensors);
    }
  }
}

// Is `s` an unpadded load `%x[...]` without a cast? Substituting it keeps an operand a plain load.
bool IsPlainLoad(const te::Scalar& s) { return s->kind == te::ScalarKind::kLoad && s->pad == nullptr; }

bool IsLiveOut(const te::Program& program, const te::Te& te) {
  for (te::TensorId out : te.outputs) {
    if (std::find(program.outputs.begin(), program.outputs.end(), out) != program.outputs.end()) return true;
  }
  return false;
}

// Constants of one element become immediates: they enter keys by value and cost no load.
void FoldScalarConstants(te::Program* program) {
  auto reduction = [&](const te::Scalar& load) -> te::Scalar {
    const te::TensorInfo& info = program->tensors[load->tensor];
    if (!info.constant || info.constant->num_elements() != 1 || load->pad != nullptr) return nullptr;
    return IsFloat(info.dtype) ? te::Imm(info.dtype, info.constant->GetDouble(0))
                               : te::ImmInt(info.dtype, info.constant->GetInt(0));
  };
  for (te::Te& te : program->tes) {
    for (te::Scalar& s : te.body) s = te::MapLoads(s, reduction);
    for (te::Scalar& s : te.then) s = te::MapLoads(s, reduction);
  }
}

using Readers = std::map<te::TensorId, std::vector<int>>;  // the expressions that read a tensor

// Can the map be a reduction's epilogue as it stands: is it the only reader of that reduction, and does it read it
// element by element?
bool IsEpilogue(const te::Program& program, int map, const Readers& readers) {
  const te::Te& te = program.tes[map];
  for (int f = 0; f < map; ++f) {
    const te::Te& reduction = program.tes[f];
    if (reduction.IsMap() || reduction.outputs.size() != 1 ||
        reduction.reduction->kind == te::ReductionKind::kGeneral || IsLiveOut(program, reduction) ||
        reduction.axes.size() != te.axes.size()) {
      continue;
    }
    const auto reading = readers.find(reduction.outputs[0]);
    if (reading == readers.end() || reading->second != std::vector<int>{map}) continue;
    bool in_place = true;
    te::Visit(te.body[0], [&](const te::ScalarNode& node) {
      in_place = in_place && node.kind != te::ScalarKind::kIf;
      if (node.kind != te::ScalarKind::kLoad || node.tensor != reduction.outputs[0]) return;
      in_place = in_place && node.pad == nullptr;
      for (size_t d = 0; d < te.axes.size(); ++d) in_place = in_place && node.indices[d] == te::Index(te.axes[d]);
    });
    if (in_place) return true;
  }
  return false;
}

// Indices of the map expressions to substitute, last first.
std::vector<int> ChooseInlined(const te::Program& program, const std::set<te::TensorId>& kept) {
  const int n = static_cast<int>(program.tes.size());
  Readers readers;
  for (int i = 0; i < n; ++i) {
    for (te::TensorId tensor : TensorsRead(program.tes[i])) readers[tensor].push_back(i);
  }
  std::vector<bool> inlined(n, false);
  std::vector<std::map<int, double>> roots(n);  // materialised reader -> evaluations of this te there
  std::vector<int> order;
  for (int i = n - 1; i >= 0; --i) {
    const te::Te& te = program.tes[i];
    const bool candidate =
        te.IsMap() && te.outputs.size() == 1 && !IsLiveOut(program, te) && kept.count(te.outputs[0]) == 0;
    if (!candidate) continue;
    const te::TensorId tensor = te.outputs[0];
    bool must_exist = false, reuse_reduction = false;
    for (int r : readers[tensor]) {
      const Uses uses = UsesOf(program.tes[r], tensor);
      must_exist = must_exist || uses.in_index;
      if (uses.padded && !IsPlainLoad(te.body[0])) reuse_reduction = reuse_reduction || !program.tes[r].IsMap();
      const double reads = ReadsPerPoint(program.tes[r], tensor) * ReadShare(program.tes[r], tensor);
      if (inlined[r]) {
        for (const auto& [root, points] : roots[r]) roots[i][root] = std::max(roots[i][root], reads * points);
      } else {
        roots[i][r] = std::max(roots[i][r], reads * DomainPoints(program.tes[r], uses.in_body));
      }
    }
    if (must_exist || readers[tensor].empty()) continue;
    const double points = DomainPoints(te);
    double evaluations = 0;
    bool read_by_reduction = false;
    for (const auto& [root, count] : roots[i]) {
      evaluations += count;
      read_by_reduction = read_by_reduction || !program.tes[root].IsMap();
      // The reduction reads this expression at more points than it has elements, so it is an operand with reuse.
      if (!program.tes[root].IsMap() && count > 1.01 * points) reuse_reduction = true;
    }
    const double cost = te::OpCost(te.body[0]);
    bool inline_it;
    if (IsPlainLoad(te.body[0])) {
      inline_it = true;
    } else if (reuse_reduction || (read_by_reduction && IsEpilogue(program, i, readers))) {
      inline_it = false;  // a reduction between would read the first one's result, and repeat the map each time
    } else {
      inline_it = evaluations <= 1.01 * points || cost * (evaluations / points - 1) <= kInlineCost;
    }
    if (!inline_it) continue;
    inlined[i] = true;
    order.push_back(i);
  }
  return order;
}

// Would the map's axes walk the reduction's by quotients and remainders of a divisor that leaves a rest? Then no pair
// of loops over quotient and remainder makes up the axis, and every address and test of the reduction would have to
// divide.
bool DividesWithRest(const te::ScalarNode& load) {
  const auto rest = [](const te::Index& index, const auto& self) -> bool {
    for (const te::Index::Part& part : index.parts()) {
      if (part.term.inner == nullptr) continue;
      const te::Index& inner = *part.term.inner;
      const te::Interval range = inner.Range();
      if (part.term.divisor > 1 && (range.lo != 0 || (range.hi + 1) % part.term.divisor != 0)) return true;
      if (self(inner, self)) return true;
    }
    return false;
  };
  return std::any_of(load.indices.begin(), load.indices.end(),
                     [&](const te::Index& index) { return rest(index, rest); });
}

// If `map` reads the reduction's only output at one index, returns the reduction re-indexed to the map's axes, with the
// map as its epilogue.
std::optional<te::Te> MergeEpilogue(const te::Program& program, const te::Te& reduction, const te::Te& map) {
  const te::TensorId tensor = reduction.outputs[0];
  const te::ScalarNode* load = nullptr;
  bool same = true;
  te::Visit(map.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad || node.tensor != tensor) return;
    if (node.pad != nullptr) same = false;
    if (load != nullptr && !(load->indices == node.indices)) same = false;
    load = &node;
  });
  if (!same || load == nullptr) return std::nullopt;
  // A map that needs the reduction's value only under a condition (a Concat's branch) stays a stage.
  bool conditional = false;
  te::Visit(map.body[0],
            [&](const te::ScalarNode& node) { conditional = conditional || node.kind == te::ScalarKind::kIf; });
  if (conditional) return std::nullopt;
  for (const te::Index& index : load->indices) {
    if (index.HasLoad()) return std::nullopt;
  }
  // Copying the results once costs less than a long sum whose addresses divide.
  const bool long_sum = DomainPoints(reduction) >= kLongSum * DomainPoints(reduction, false);
  if (long_sum && DividesWithRest(*load)) return std::nullopt;
  const std::vector<te::Index> at = load->indices;
  auto substitution = [&](const te::Axis& axis) -> const te::Index* {
    for (size_t d = 0; d < reduction.axes.size(); ++d) {
      if (reduction.axes[d].id == axis.id) return &at[d];
    }
    return nullptr;
  };
  te::Te merged = reduction;
  merged.axes = map.axes;
  merged.outputs = map.outputs;
  for (te::Scalar& s : merged.body) s = te::Substitute(s, substitution);
  for (te::Comparison& c : merged.reduction->pred) {
    c.lhs = te::Substitute(c.lhs, substitution);
    c.rhs = te::Substitute(c.rhs, substitution);
  }
  for (te::Scalar& s : merged.reduction->init) s = te::Substitute(s, substitution);
  te::Scalar value =
      reduction.then.empty() ? te::Acc(0, reduction.reduction->acc) : te::Substitute(reduction.then[0], substitution);
  const DType dtype = program.tensors[tensor].dtype;
  if (value->dtype != dtype) value = te::Cast(dtype, value);
  merged.then = {te::MapLoads(
      map.body[0], [&](const te::Scalar& s) -> te::Scalar { return s->tensor == tensor ? value : nullptr; })};
  te::AddOrigins(map, &merged);
  return merged;
}

// The only reader of the reduction's output, or -1. `reads` is parallel to the program's expressions.
int OnlyReader(te::TensorId output, size_t reduction, const std::vector<std::set<te::TensorId>>& reads) {
  int reader = -1;
  for (size_t r = reduction + 1; r < reads.size(); ++r) {
    if (!reads[r].count(output)) continue;
    if (reader >= 0) return -1;
    reader = static_cast<int>(r);
  }
  return reader;
}

// One pass is enough: the merged expression is itself a reduction, so no earlier reduction gains a map to merge into.
void MergeEpilogues(te::Program* program, const std::set<te::TensorId>& kept) {
  std::vector<std::set<te::TensorId>> reads;
  for (const te::Te& te : program->tes) reads.push_back(TensorsRead(te));
  for (size_t f = 0; f < program->tes.size();) {
    const te::Te& reduction = program->tes[f++];
    if (reduction.IsMap() || reduction.outputs.size() != 1 ||
        reduction.reduction->kind == te::ReductionKind::kGeneral || IsLiveOut(*program, reduction) ||
        kept.count(reduction.outputs[0]) > 0) {
      continue;
    }
    const int reader = OnlyReader(reduction.outputs[0], f - 1, reads);
    if (reader < 0) continue;
    const te::Te& map = program->tes[reader];
    if (!map.IsMap() || map.outputs.size() != 1) continue;
    // Merging a map with more points than the reduction has elements would recompute the reduction.
    if (DomainPoints(map) > 1.01 * DomainPoints(reduction, false)) continue;
    std::optional<te::Te> merged = MergeEpilogue(*program, reduction, map);
    if (!merged) continue;
    reads[reader] = TensorsRead(*merged);
    program->tes[reader] = std::move(*merged);
    --f;
    program->tes.erase(program->tes.begin() + static_cast<std::ptrdiff_t>(f));
    reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(f));
  }
}

}  // namespace

std::set<te::TensorId> TensorsRead(const te::Te& te) {
  std::set<te::TensorId> tensors;
  auto visit = [&](const te::Scalar& s) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad) tensors.insert(node.tensor);
      for (const te::Index& index : node.indices) CollectTensors(index, &tensors);
      if (node.kind == te::ScalarKind::kFromIndex) CollectTensors(node.index, &tensors);
      for (const te::Comparison& c : node.pred) {
        CollectTensors(c.lhs, &tensors);
        CollectTensors(c.rhs, &tensors);
      }
    });
  };
  for (const te::Scalar& s : te.body) visit(s);
  for (const te::Scalar& s : te.then) visit(s);
  if (te.reduction) {
    for (const te::Scalar& s : te.reduction->init) visit(s);
    for (const te::Comparison& c : te.reduction->pred) {
      CollectTensors(c.lhs, &tensors);
      CollectTensors(c.rhs, &tensors);
    }
  }
  return tensors;
}

double DomainPoints(const te::Te& te, bool with_reduction) {
  double points = 1;
  for (const te::Axis& axis : te.axes) points *= static_cast<double>(axis.extent);
  if (with_reduction && te.reduction) {
    for (const te::Axis& axis : te.reduction->axes) points *= static_cast<double>(axis.extent);
  }
  return points;
}

absl::StatusOr<te::Program> FormStages(te::Program program, const std::set<te::TensorId>& kept) {
  for (const te::Te& te : program.tes) {
    if (!te.routine) continue;
    if (program.tes.size() == 1) return program;
    return absl::FailedPreconditionError(absl::StrCat(
        te.routine->name, " is a routine, which is a kernel of its own: leave its node alone in its fusion block"));
  }
  FoldScalarConstants(&program);
  te::RemoveDead(&program);
  std::vector<te::TensorId> inlined;
  for (int i : ChooseInlined(program, kept)) inlined.push_back(program.tes[i].outputs[0]);
  for (te::TensorId tensor : inlined) RETURN_IF_ERROR(te::Inline(&program, tensor));
  te::RoundBesideExtrema(&program);
  MergeEpilogues(&program, kept);
  return program;
}

}  // namespace fusion
