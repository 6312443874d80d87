#include "compiler/te/program/split_prefixes.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "compiler/te/program/prefix_reduction.h"

namespace fusion::te {
namespace {

using Idx = Builder::Idx;

class Splitting {
 public:
  Splitting(const Te& te, PrefixReduction prefix, Program* program)
      : te_(te), prefix_(std::move(prefix)), builder_(program), acc_(te.reduction->acc), kind_(te.reduction->kind) {
    for (const Axis& axis : te.axes) {
      if (axis.id == prefix_.axis) at_ = static_cast<int>(shape_.size());
      shape_.push_back(axis.extent);
    }
    part_ = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(shape_[at_]))));
  }

  void Add() {
    Program& program = *builder_.program();
    const size_t first = program.tes.size();
    AddParts();
    program.tes.push_back(Combined());
    for (size_t t = first; t < program.tes.size(); ++t) program.tes[t].origins = te_.origins;
  }

 private:
  Scalar Identity() const { return Imm(acc_, kind_ == ReductionKind::kProd ? 1 : 0); }

  void AddParts() {
    const int64_t extent = shape_[at_];
    Shape totals = shape_;
    totals[at_] = (extent + part_ - 1) / part_;
    Shape parts = totals;
    parts.insert(parts.begin() + at_ + 1, part_);
    const TensorId values = builder_.Map("parts", acc_, parts, [&](const Idx& i) {
      const Index element = i[at_] * part_ + i[at_ + 1];
      return If({{element, Cmp::kLt, Index(extent)}}, ValueAt(i, element), Identity());
    });
    const TensorId total = builder_.Reduce("of_parts", kind_, acc_, acc_, totals, {part_}, [&](Idx i, const Idx& r) {
      i.insert(i.begin() + at_ + 1, r[0]);
      return builder_.At(values, i);
    });
    within_ = Prefixes(values, parts, at_ + 1, prefix_.exclusive);
    before_ = Prefixes(total, totals, at_, /*exclusive=*/true);
  }

  // The reduction's element `k`. The coordinates around the axis are those of a point of the parts.
  Scalar ValueAt(const Idx& point, const Index& k) const {
    std::map<int, Index> at = {{te_.reduction->axes[0].id, k}};
    for (int d = 0; d < static_cast<int>(te_.axes.size()); ++d) {
      if (d != at_) at[te_.axes[d].id] = point[d < at_ ? d : d + 1];
    }
    return Substitute(prefix_.value, [&](const Axis& axis) -> const Index* {
      const auto it = at.find(axis.id);
      return it == at.end() ? nullptr : &it->second;
    });
  }

  TensorId Prefixes(TensorId x, const Shape& shape, int axis, bool exclusive) {
    const int64_t open = exclusive ? 1 : 0;
    return builder_.Reduce("prefix", kind_, acc_, acc_, shape, {shape[axis]}, [&](Idx i, const Idx& r) {
      const Comparison taken = prefix_.reverse ? Comparison{r[0], Cmp::kGe, i[axis] + Index(open)}
                                               : Comparison{r[0], Cmp::kLt, i[axis] + Index(1 - open)};
      i[axis] = r[0];
      return If({taken}, builder_.At(x, i), Identity());
    });
  }

  // The expression that takes the place of the reduction.
  Te Combined() const {
    Te te = te_;
    te.reduction.reset();
    te.then.clear();
    Idx part;
    for (const Axis& axis : te_.axes) part.push_back(Index(axis));
    const Index element = part[at_];
    part[at_] = FloorDiv(element, part_);
    Idx point = part;
    point.insert(point.begin() + at_ + 1, Mod(element, part_));
    const Scalar x = builder_.At(before_, part), y = builder_.At(within_, point);
    const Scalar all = kind_ == ReductionKind::kProd ? x * y : x + y;
    te.body = {te_.then.empty() ? all : MapAccs(te_.then[0], [&](const Scalar&) { return all; })};
    const DType dtype = builder_.info(te_.outputs[0]).dtype;
    te.body[0] = Cast(dtype, te.body[0]);
    return te;
  }

  const Te& te_;
  const PrefixReduction prefix_;
  Builder builder_;
  const DType acc_;
  const ReductionKind kind_;
  Shape shape_;
  int at_ = -1;  // of the axis in shape_
  int64_t part_ = 1;
  TensorId within_ = -1, before_ = -1;
};

}  // namespace

std::optional<Program> SplitPrefixes(const Program& program) {
  std::optional<Program> split;
  for (size_t t = 0; t < program.tes.size(); ++t) {
    const Te& te = program.tes[t];
    const bool reduces = te.reduction.has_value() && te.outputs.size() == 1;
    std::optional<PrefixReduction> prefix = reduces ? PrefixReductionOf(*te.reduction, te.body, te.axes) : std::nullopt;
    if (prefix && te.reduction->axes[0].extent <= kLongestPrefix) prefix.reset();
    if (prefix && !split) {
      split = program;
      split->tes.resize(t);
    }
    if (prefix) {
      Splitting(te, *std::move(prefix), &*split).Add();
    } else if (split) {
      split->tes.push_back(te);
    }
  }
  return split;
}

}  // namespace fusion::te
