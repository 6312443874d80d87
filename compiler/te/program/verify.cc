#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/program/program.h"
#include "compiler/te/ranges/path_conditions.h"
#include "compiler/te/routines/routine.h"
#include "compiler/te/scalar/op_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::te {
namespace {

bool Within(const Index& x, int64_t extent, const PathConditions& conditions) {
  Interval range = x.Range();
  if (range.lo < 0 || range.hi >= extent) range = conditions.RangeOf(x);
  return (range.lo >= 0 && range.hi < extent) || range.lo > range.hi;  // an empty range: no value gets here
}

class TeVerifier {
 public:
  TeVerifier(const Program& program, const Te& te, const std::vector<bool>& defined, BoundsProof bounds)
      : program_(program), te_(te), defined_(defined), bounds_(bounds) {}

  absl::Status Run() {
    for (const Axis& axis : te_.axes) {
      if (axis.extent < 0 || !axes_.emplace(axis.id, axis.extent).second) return Error("repeated or negative axis");
    }
    if (te_.routine) return CheckRoutineTe();
    RETURN_IF_ERROR(CheckOutputs());
    if (te_.IsMap()) {
      if (te_.body.size() != te_.outputs.size() || !te_.then.empty()) return Error("a map has one body per output");
      for (size_t o = 0; o < te_.outputs.size(); ++o) {
        RETURN_IF_ERROR(CheckRoot(te_.body[o], Info(te_.outputs[o]).dtype, {}));
      }
      return absl::OkStatus();
    }
    return CheckReduction();
  }

 private:
  const TensorInfo& Info(TensorId id) const { return program_.tensors[id]; }
  absl::Status Error(const std::string& message) const {
    return absl::InternalError(absl::StrCat(message, " in: ", PrintTe(program_, te_)));
  }

  absl::Status CheckRoutineTe() {
    if (!te_.axes.empty() || te_.reduction || !te_.body.empty() || !te_.then.empty()) {
      return Error("a routine has no domain and no body");
    }
    for (TensorId input : te_.routine->inputs) {
      if (input < 0 || input >= static_cast<int>(program_.tensors.size()) || !defined_[input]) {
        return Error(absl::StrCat("%", input, " is read before it is defined"));
      }
    }
    const absl::Status status = CheckRoutine(program_, te_);
    return status.ok() ? status : Error(std::string(status.message()));
  }

  absl::Status CheckOutputs() {
    if (te_.outputs.empty()) return Error("no outputs");
    for (TensorId output : te_.outputs) {
      const Shape& shape = Info(output).shape;
      bool same = shape.size() == te_.axes.size();
      for (size_t d = 0; same && d < shape.size(); ++d) same = shape[d] == te_.axes[d].extent;
      if (!same) return Error(absl::StrCat("%", output, " has shape ", ShapeToString(shape), ", not its domain's"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckReduction() {
    const Reduction& reduction = *te_.reduction;
    const bool general = reduction.kind == ReductionKind::kGeneral;
    if (general) {
      for (const Scalar& init : reduction.init) acc_.push_back(init->dtype);
      for (const Scalar& init : reduction.init) RETURN_IF_ERROR(CheckRoot(init, init->dtype, {}, /*accs=*/0));
    } else {
      if (!reduction.init.empty()) return Error("only a general reduction has initial values");
      acc_ = {reduction.acc};
    }
    if (te_.body.size() != acc_.size() || acc_.empty()) return Error("a reduction has one body per accumulator");
    const size_t results = te_.then.empty() ? acc_.size() : te_.then.size();
    if (results != te_.outputs.size()) return Error("a reduction has one result per output");

    for (const Axis& axis : reduction.axes) {
      if (axis.extent < 0 || !axes_.emplace(axis.id, axis.extent).second) return Error("repeated or negative axis");
    }
    PathConditions conditions;
    conditions.Assume(reduction.pred);
    for (const Comparison& c : reduction.pred) {
      RETURN_IF_ERROR(CheckIndex(c.lhs, {}));
      RETURN_IF_ERROR(CheckIndex(c.rhs, {}));
    }
    for (size_t a = 0; a < acc_.size(); ++a) {
      RETURN_IF_ERROR(CheckRoot(te_.body[a], acc_[a], conditions, general ? acc_.size() : 0));
    }
    for (const Axis& axis : reduction.axes) axes_.erase(axis.id);
    checked_.clear();
    for (size_t o = 0; o < te_.then.size(); ++o) {
      RETURN_IF_ERROR(CheckRoot(te_.then[o], Info(te_.outputs[o]).dtype, {}, acc_.size()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRoot(const Scalar& s, DType dtype, const PathConditions& conditions, size_t accs = 0) {
    if (s == nullptr) return Error("missing body");
    if (s->dtype != dtype) {
      return Error(absl::StrCat("a body is ", DTypeName(s->dtype), " where ", DTypeName(dtype), " is needed"));
    }
    num_accs_ = accs;
    return CheckScalar(*s, conditions, 0);
  }

  absl::Status CheckTensor(TensorId tensor, size_t rank) {
    if (tensor < 0 || tensor >= static_cast<int>(program_.tensors.size()) || !defined_[tensor]) {
      return Error(absl::StrCat("%", tensor, " is read before it is defined"));
    }
    if (rank != Info(tensor).shape.size()) {
      return Error(absl::StrCat("%", tensor, " has ", Info(tensor).shape.size(), " dimensions, read with ", rank));
    }
    return absl::OkStatus();
  }

  absl::Status CheckIndex(const Index& x, const PathConditions& conditions) {
    for (const Index::Part& part : x.parts()) {
      const Term& term = part.term;
      if (term.kind == TermKind::kAxis) {
        auto it = axes_.find(term.axis.id);
        if (it == axes_.end() || it->second != term.axis.extent) {
          return Error(absl::StrCat("i", term.axis.id, " is not an axis here"));
        }
      } else if (term.kind == TermKind::kLoad) {
        RETURN_IF_ERROR(CheckTensor(term.tensor, term.indices.size()));
        if (!IsInteger(Info(term.tensor).dtype)) {
          return Error(absl::StrCat("%", term.tensor, " is an index but not of integers"));
        }
        RETURN_IF_ERROR(CheckLoad(term.tensor, term.indices, conditions));
      } else {
        RETURN_IF_ERROR(CheckIndex(*term.inner, conditions));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckLoad(TensorId tensor, const std::vector<Index>& indices, const PathConditions& conditions) {
    const Shape& shape = Info(tensor).shape;
    for (size_t d = 0; d < indices.size(); ++d) {
      RETURN_IF_ERROR(CheckIndex(indices[d], conditions));
      if (bounds_ == BoundsProof::kInherited || EmptyDomain() || Within(indices[d], shape[d], conditions)) continue;
      const Interval range = conditions.RangeOf(indices[d]);
      return Error(absl::StrCat("index ", d, " of a load of %", tensor, ", ", ToString(indices[d]), ", lies in [",
                                range.lo, ", ", range.hi, "], outside ", ShapeToString(shape)));
    }
    return absl::OkStatus();
  }

  bool EmptyDomain() const {
    for (const auto& [id, extent] : axes_) {
      if (extent == 0) return true;
    }
    return false;
  }

  // `context` numbers the branch, so that a shared node is checked once per branch. A subtree that needs no path
  // condition to be in bounds passes without one and then holds for all branches.
  absl::Status CheckScalar(const ScalarNode& s, const PathConditions& conditions, int context) {
    if (checked_.count({&s, 0}) || !checked_.insert({&s, context}).second) return absl::OkStatus();
    if (s.kind == ScalarKind::kLoad) {
      RETURN_IF_ERROR(CheckTensor(s.tensor, s.indices.size()));
      if (s.dtype != Info(s.tensor).dtype) return Error(absl::StrCat("load of %", s.tensor, " with another type"));
      if (!s.pad) return CheckLoad(s.tensor, s.indices, conditions);
      if (s.pad->kind != ScalarKind::kImm || s.pad->dtype != s.dtype) return Error("a pad is an immediate of the type");
      for (const Index& index : s.indices) RETURN_IF_ERROR(CheckIndex(index, conditions));
      return absl::OkStatus();
    }
    if (s.kind == ScalarKind::kFromIndex) return CheckIndex(s.index, conditions);
    if (s.kind == ScalarKind::kAcc) {
      if (s.acc < 0 || s.acc >= static_cast<int>(num_accs_) || acc_[s.acc] != s.dtype) {
        return Error(absl::StrCat("acc", s.acc, " is not an accumulator here"));
      }
      return absl::OkStatus();
    }
    if (s.kind == ScalarKind::kIf) return CheckIf(s, conditions, context);
    RETURN_IF_ERROR(CheckTypes(s));
    for (const Scalar& arg : s.args) RETURN_IF_ERROR(CheckScalar(*arg, conditions, context));
    return absl::OkStatus();
  }

  absl::Status CheckIf(const ScalarNode& s, const PathConditions& conditions, int context) {
    for (const Comparison& c : s.pred) {
      RETURN_IF_ERROR(CheckIndex(c.lhs, conditions));
      RETURN_IF_ERROR(CheckIndex(c.rhs, conditions));
    }
    if (s.args.size() != 2 || s.args[0]->dtype != s.dtype || s.args[1]->dtype != s.dtype) {
      return Error("the branches of an if differ in type");
    }
    for (int branch = 0; branch < 2; ++branch) {
      PathConditions inner = conditions;
      if (branch == 0) {
        inner.Assume(s.pred);
      } else {
        inner.AssumeNot(s.pred);
      }
      const bool free = NeedsNoFact(*s.args[branch]);
      RETURN_IF_ERROR(CheckScalar(*s.args[branch], inner, free ? context : ++contexts_));
    }
    return absl::OkStatus();
  }

  bool NeedsNoFact(const ScalarNode& s) {
    auto it = needs_no_fact_.find(&s);
    if (it != needs_no_fact_.end()) return it->second;
    bool free = !s.index.HasLoad();
    for (size_t d = 0; d < s.indices.size(); ++d) {
      const bool known =
          s.tensor >= 0 && s.tensor < static_cast<int>(program_.tensors.size()) && d < Info(s.tensor).shape.size();
      free &= !s.indices[d].HasLoad() && known && (s.pad || Within(s.indices[d], Info(s.tensor).shape[d], {}));
    }
    for (const Comparison& c : s.pred) free &= !c.lhs.HasLoad() && !c.rhs.HasLoad();
    for (const Scalar& arg : s.args) free &= NeedsNoFact(*arg);
    return needs_no_fact_[&s] = free;
  }

  absl::Status CheckTypes(const ScalarNode& s) {
    if (s.kind == ScalarKind::kCast && s.args.size() != 1) return Error("a cast has one argument");
    if (s.kind != ScalarKind::kOp) return absl::OkStatus();
    if (absl::Status status = CheckCall(s.op, s.args); !status.ok()) return Error(std::string(status.message()));
    return absl::OkStatus();
  }

  const Program& program_;
  const Te& te_;
  const std::vector<bool>& defined_;
  const BoundsProof bounds_;
  std::unordered_map<int, int64_t> axes_;  // in scope
  std::vector<DType> acc_;
  size_t num_accs_ = 0;
  int contexts_ = 0;
  std::set<std::pair<const ScalarNode*, int>> checked_;
  std::unordered_map<const ScalarNode*, bool> needs_no_fact_;
};

}  // namespace

absl::Status CheckCall(Op op, const std::vector<Scalar>& args) {
  const OpInfo& info = GetOpInfo(op);
  if (static_cast<int>(args.size()) != info.arity) {
    return absl::InvalidArgumentError(absl::StrCat(info.name, " takes ", info.arity, " arguments, not ", args.size()));
  }
  const size_t first = op == Op::kSelect ? 1 : 0;
  if (op == Op::kSelect && args[0]->dtype != DType::kBool) {
    return absl::InvalidArgumentError("select needs a bool first");
  }
  for (size_t a = first; a < args.size(); ++a) {
    const Scalar& arg = args[a];
    if (arg->dtype != args[first]->dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat(info.name, " of ", DTypeName(args[first]->dtype), " and ", DTypeName(arg->dtype)));
    }
  }
  if (!IsDefinedOn(RowOf(op), args[first]->dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(info.name, " is not defined on ", DTypeName(args[first]->dtype)));
  }
  return absl::OkStatus();
}

absl::Status Verify(const Program& program, BoundsProof bounds) {
  const int num_tensors = static_cast<int>(program.tensors.size());
  std::vector<bool> defined(num_tensors, false);
  for (TensorId input : program.inputs) {
    if (input < 0 || input >= num_tensors)
      return absl::InternalError(absl::StrCat("input %", input, " does not exist"));
    if (defined[input]) return absl::InternalError(absl::StrCat("input %", input, " is listed twice"));
    const TensorInfo& info = program.tensors[input];
    if (info.constant && (info.constant->dtype() != info.dtype || info.constant->shape() != info.shape)) {
      return absl::InternalError(absl::StrCat("the value of %", input, " is of another type or shape"));
    }
    defined[input] = true;
  }
  std::set<int> axes;
  for (const Te& te : program.tes) {
    for (TensorId output : te.outputs) {
      if (output < 0 || output >= num_tensors) {
        return absl::InternalError(absl::StrCat("output %", output, " does not exist"));
      }
      if (defined[output]) return absl::InternalError(absl::StrCat("%", output, " is defined twice"));
    }
    RETURN_IF_ERROR(TeVerifier(program, te, defined, bounds).Run());
    std::vector<Axis> own = te.axes;
    if (te.reduction) own.insert(own.end(), te.reduction->axes.begin(), te.reduction->axes.end());
    for (const Axis& axis : own) {
      if (axis.id < 0 || axis.id >= program.next_axis || !axes.insert(axis.id).second) {
        return absl::InternalError(absl::StrCat("axis i", axis.id, " is not unique in: ", PrintTe(program, te)));
      }
    }
    for (TensorId output : te.outputs) {
      if (defined[output]) return absl::InternalError(absl::StrCat("%", output, " is defined twice"));
      defined[output] = true;
    }
  }
  for (TensorId output : program.outputs) {
    if (output < 0 || output >= num_tensors || !defined[output]) {
      return absl::InternalError(absl::StrCat("output %", output, " is never defined"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::te
