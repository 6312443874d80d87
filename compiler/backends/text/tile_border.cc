#include "compiler/backends/text/tile_border.h"

#include <algorithm>
#include <optional>

#include "compiler/te/scalar/rounded.h"
#include "runtime/base/check.h"

namespace fusion::text {

using te::Axis;
using te::Index;
using te::Op;
using te::Scalar;
using te::ScalarKind;

namespace {

std::optional<int64_t> Evaluate(const Index& index, const std::map<int, int64_t>& values) {
  int64_t result = index.constant();
  for (const Index::Part& part : index.parts()) {
    int64_t value;
    if (part.term.kind == te::TermKind::kAxis) {
      auto it = values.find(part.term.axis.id);
      if (it == values.end()) return std::nullopt;
      value = it->second;
    } else if (part.term.inner != nullptr) {
      const std::optional<int64_t> inner = Evaluate(*part.term.inner, values);
      if (!inner) return std::nullopt;
      const int64_t d = part.term.divisor;
      const int64_t m = ((*inner % d) + d) % d;
      value = part.term.kind == te::TermKind::kMod ? m : (*inner - m) / d;
    } else {
      return std::nullopt;
    }
    result += part.coefficient * value;
  }
  return result;
}

bool Holds(const te::Comparison& c, const std::map<int, int64_t>& values, bool* known) {
  const std::optional<int64_t> a = Evaluate(c.lhs, values), b = Evaluate(c.rhs, values);
  if (!a || !b) {
    *known = false;
    return true;
  }
  switch (c.cmp) {
    case te::Cmp::kLt:
      return *a < *b;
    case te::Cmp::kGe:
      return *a >= *b;
    case te::Cmp::kEq:
      return *a == *b;
    case te::Cmp::kNe:
      return *a != *b;
  }
  return true;
}

}  // namespace

Scalar TakeGuards(const Scalar& s, te::ReductionKind kind, te::Pred* guards) {
  auto is_identity = [&](const Scalar& x) {
    if (x->kind != ScalarKind::kImm) return false;
    if (!IsFloat(x->dtype)) return kind == te::ReductionKind::kSum && x->ivalue == 0;
    if (kind == te::ReductionKind::kSum) return x->fvalue == 0;
    if (kind == te::ReductionKind::kProd) return x->fvalue == 1;
    if (kind == te::ReductionKind::kMax) return x->fvalue < -3.4e38;
    return x->fvalue > 3.4e38;
  };
  if (s->kind == ScalarKind::kIf && is_identity(s->args[1])) {
    guards->insert(guards->end(), s->pred.begin(), s->pred.end());
    return TakeGuards(s->args[0], kind, guards);
  }
  if (kind == te::ReductionKind::kSum && s->kind == ScalarKind::kCast) {
    const Scalar x = TakeGuards(s->args[0], kind, guards);
    return x == s->args[0] ? s : te::CastOf(*s, x);
  }
  if (kind == te::ReductionKind::kSum && s->kind == ScalarKind::kOp && s->op == Op::kMul) {
    const Scalar a = TakeGuards(s->args[0], kind, guards), b = TakeGuards(s->args[1], kind, guards);
    if (a != s->args[0] || b != s->args[1]) return te::Call(Op::kMul, {a, b});
  }
  return s;
}

std::vector<TileRun> RunsOfTiles(const Axis& row, int tile_rows, const te::Pred& guards,
                                 const std::vector<std::map<int, int64_t>>& points) {
  std::vector<TileRun> runs;
  for (int64_t start = 0; start < row.extent;) {
    const int rows = static_cast<int>(std::min<int64_t>(tile_rows, row.extent - start));
    std::vector<bool> mask;
    bool all = true;
    for (int r = 0; r < rows && !guards.empty(); ++r) {
      for (const auto& point : points) {
        auto values = point;
        values[row.id] = start + r;
        bool holds = true;
        for (const te::Comparison& guard : guards) {
          bool k = true;
          const bool h = Holds(guard, values, &k);
          FUSION_CHECK(k, "a row's border test uses an axis that is neither the row nor unrolled");
          holds = holds && h;
        }
        mask.push_back(holds);
        all = all && holds;
      }
    }
    if (all) mask.clear();
    if (!runs.empty() && runs.back().rows == rows && runs.back().mask == mask) {
      ++runs.back().count;
    } else {
      runs.push_back({start, 1, rows, mask});
    }
    start += rows;
  }
  return runs;
}

}  // namespace fusion::text
