#include "compiler/te/ranges/bounds.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::te {
namespace {

// A local axis stands for "the position inside the span of axis a". Real axes have ids >= 0, lanes -2 and -3.
constexpr int kLocalBase = -1000;
bool IsLocal(const Axis& axis) { return axis.id <= kLocalBase; }

bool HasLocal(const Index& x);

bool HasLocal(const Term& term) {
  if (term.kind == TermKind::kAxis) return IsLocal(term.axis);
  if (term.inner) return HasLocal(*term.inner);
  return std::any_of(term.indices.begin(), term.indices.end(), [](const Index& i) { return HasLocal(i); });
}

bool HasLocal(const Index& x) {
  return std::any_of(x.parts().begin(), x.parts().end(), [](const Index::Part& p) { return HasLocal(p.term); });
}

bool OnlyLocal(const Index& x) {
  std::vector<Axis> axes;
  CollectAxes(x, &axes);
  return std::all_of(axes.begin(), axes.end(), IsLocal);
}

// Declared ranges of loads may be all of i64. They are clamped far beyond any extent, where their size no longer
// matters.
int64_t Clamped(__int128 v) {
  constexpr __int128 kLimit = __int128{1} << 56;
  return static_cast<int64_t>(std::clamp(v, -kLimit, kLimit));
}

Span SpanOfInterval(__int128 lo, __int128 hi) {
  const int64_t origin = Clamped(lo);
  return {origin, Clamped(hi) - origin + 1};
}

Span SpanOfLocal(const Index& x);

// Returns the span of one term that mixes local and tile axes or holds a load.
Span SpanOfTerm(const Term& term) {
  if (term.kind == TermKind::kLoad) return SpanOfInterval(term.load_range.lo, term.load_range.hi);
  const Span inner = SpanOfLocal(*term.inner);
  const int64_t c = term.divisor;
  // The distance of the span's start from the multiple of c before it: a constant when the origin is aligned.
  const Index start = Mod(inner.origin, c);
  const int64_t last = start.Range().hi + inner.length - 1;
  if (term.kind == TermKind::kFloorDiv) return {FloorDiv(inner.origin, c), last / c + 1};
  if (last < c) return {start, inner.length};
  return {0, c};
}

// Returns the span of an x whose spanned axes have been replaced by origin + local axis. Terms over tile axes alone
// belong to the origin; terms over local axes alone have a constant range.
Span SpanOfLocal(const Index& x) {
  Index origin;
  std::vector<Index::Part> tile;
  __int128 lo = x.constant(), hi = x.constant();
  for (const Index::Part& p : x.parts()) {
    const Index term = Index::FromParts(0, {{p.term, 1}});
    if (!term.HasLoad() && !HasLocal(p.term)) {
      tile.push_back(p);
      continue;
    }
    Span span;
    if (!term.HasLoad() && OnlyLocal(term)) {
      const Interval r = term.Range();
      span = SpanOfInterval(r.lo, r.hi);
    } else {
      span = SpanOfTerm(p.term);
    }
    const __int128 first = __int128{span.origin.constant()} * p.coefficient;
    const __int128 reach = __int128{span.length - 1} * p.coefficient;
    lo += first + std::min<__int128>(reach, 0);
    hi += first + std::max<__int128>(reach, 0);
    origin = origin + (span.origin - span.origin.constant()) * p.coefficient;
  }
  Span sum = SpanOfInterval(lo, hi);
  sum.origin = sum.origin + origin + Index::FromParts(0, std::move(tile));
  return sum;
}

// Replaces each spanned axis by the origin of its span plus a local axis over the span's length.
class Localizer {
 public:
  explicit Localizer(const std::function<const Span*(const Axis&)>& span_of) : span_of_(span_of) {}

  Index operator()(const Index& x) {
    return Substitute(x, [this](const Axis& axis) -> const Index* {
      for (const auto& [id, value] : known_) {
        if (id == axis.id) return &value;
      }
      const Span* span = span_of_(axis);
      if (!span) return nullptr;
      Index value = span->origin;
      if (span->length > 1) value = value + Axis{kLocalBase - axis.id, span->length};
      return &known_.emplace_back(axis.id, std::move(value)).second;
    });
  }

 private:
  const std::function<const Span*(const Axis&)>& span_of_;
  std::deque<std::pair<int, Index>> known_;  // a deque, because pointers into it must stay valid
};

bool IsEmpty(const Box& box) {
  return std::any_of(box.begin(), box.end(), [](const Span& s) { return s.length <= 0; });
}

// Limits the box to coordinates inside the tensor, because no others matter.
void Clip(const Shape& shape, Box* box) {
  for (size_t d = 0; d < shape.size(); ++d) {
    Span& span = (*box)[d];
    if (span.origin.IsConstant()) {
      const int64_t lo = std::max<int64_t>(span.origin.constant(), 0);
      const int64_t hi = std::min(span.origin.constant() + span.length, shape[d]);
      span = {lo, std::max<int64_t>(hi - lo, 0)};
    } else if (span.length >= shape[d]) {
      span = {0, shape[d]};
    }
  }
}

// Walks everything that a te reads and joins the boxes of its loads of one tensor.
class BoxCollector {
 public:
  BoxCollector(TensorId tensor, const Shape& shape, const std::function<const Span*(const Axis&)>& span_of)
      : tensor_(tensor), shape_(shape), localize_(span_of) {}

  absl::Status Add(const Scalar& s) {
    if (!s || !seen_.insert(s.get()).second) return absl::OkStatus();
    if (s->kind == ScalarKind::kLoad) {
      if (s->tensor == tensor_) RETURN_IF_ERROR(AddLoad(s->indices));
      for (const Index& i : s->indices) RETURN_IF_ERROR(AddIndex(i));
    }
    RETURN_IF_ERROR(AddIndex(s->index));
    RETURN_IF_ERROR(AddPred(s->pred));
    if (s->kind == ScalarKind::kIf) {
      bool always = true;
      for (const Comparison& c : s->pred) {
        const std::optional<bool> truth = Decide({localize_(c.lhs), c.cmp, localize_(c.rhs)});
        if (truth == false) return Add(s->args[1]);
        always &= truth == true;
      }
      if (always) return Add(s->args[0]);
    }
    for (const Scalar& arg : s->args) RETURN_IF_ERROR(Add(arg));
    return absl::OkStatus();
  }

  absl::Status AddPred(const Pred& pred) {
    for (const Comparison& c : pred) {
      RETURN_IF_ERROR(AddIndex(c.lhs));
      RETURN_IF_ERROR(AddIndex(c.rhs));
    }
    return absl::OkStatus();
  }

  Box Take() {
    if (!box_) return Box(shape_.size(), Span{0, 0});
    return *std::move(box_);
  }

 private:
  // Adds the loads inside an index.
  absl::Status AddIndex(const Index& x) {
    if (!x.HasLoad()) return absl::OkStatus();
    for (const Index::Part& p : x.parts()) {
      if (p.term.inner) RETURN_IF_ERROR(AddIndex(*p.term.inner));
      if (p.term.kind != TermKind::kLoad) continue;
      if (p.term.tensor == tensor_) RETURN_IF_ERROR(AddLoad(p.term.indices));
      for (const Index& i : p.term.indices) RETURN_IF_ERROR(AddIndex(i));
    }
    return absl::OkStatus();
  }

  absl::Status AddLoad(const std::vector<Index>& indices) {
    if (indices.size() != shape_.size()) {
      return absl::InternalError(
          absl::StrCat("a load of %", tensor_, " has ", indices.size(), " indices, its shape ", ShapeToString(shape_)));
    }
    Box box;
    for (const Index& i : indices) box.push_back(SpanOfLocal(localize_(i)));
    Clip(shape_, &box);
    if (IsEmpty(box)) return absl::OkStatus();
    if (!box_) {
      box_ = std::move(box);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(box_, Hull(*box_, box));
    Clip(shape_, &*box_);
    return absl::OkStatus();
  }

  const TensorId tensor_;
  const Shape& shape_;
  Localizer localize_;
  std::unordered_set<const ScalarNode*> seen_;
  std::optional<Box> box_;
};

// The largest number of tasks that are enumerated one by one.
constexpr int64_t kEnumerated = 1 << 14;

// Returns whether one axis walks the whole dimension: its spans overlap or touch, the first begins at 0 or before, and
// the last reaches the end.
bool WalksWhole(const Span& span, int64_t extent, const Axis& axis) {
  int64_t step = 0;
  if (!span.origin.AffineIn(axis.id, &step) || step <= 0 || step > span.length) return false;
  const Index rest = span.origin - Index(axis) * step;
  return rest.IsConstant() && rest.constant() <= 0 &&
         rest.constant() + step * (axis.extent - 1) + span.length >= extent;
}

bool IsWhole(const Span& span, int64_t extent) {
  return span.origin.IsConstant() && span.origin.constant() <= 0 && span.origin.constant() + span.length >= extent;
}

// Returns nullopt for an index with loads or with other axes.
std::optional<int64_t> ValueAt(const Index& x, const std::vector<Axis>& axes, const std::vector<int64_t>& values) {
  int64_t sum = x.constant();
  for (const Index::Part& part : x.parts()) {
    int64_t value = 0;
    if (part.term.kind == TermKind::kAxis) {
      const auto axis =
          std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.id == part.term.axis.id; });
      if (axis == axes.end()) return std::nullopt;
      value = values[axis - axes.begin()];
    } else if (part.term.inner != nullptr) {
      const std::optional<int64_t> inner = ValueAt(*part.term.inner, axes, values);
      if (!inner) return std::nullopt;
      const int64_t divisor = part.term.divisor;
      const int64_t mod = ((*inner % divisor) + divisor) % divisor;
      value = part.term.kind == TermKind::kMod ? mod : (*inner - mod) / divisor;
    } else {
      return std::nullopt;
    }
    sum += part.coefficient * value;
  }
  return sum;
}

// Enumerates the tasks and returns whether their aligned spans cover every cell of the dimensions.
bool EnumeratedWhole(const Box& box, const std::vector<int64_t>& extents, const std::vector<Axis>& axes) {
  int64_t tasks = 1, cells = 1;
  for (const Axis& axis : axes) tasks *= axis.extent;
  for (size_t d = 0; d < box.size(); ++d) {
    if (box[d].length <= 0) return false;
    cells *= (extents[d] + box[d].length - 1) / box[d].length;
  }
  if (tasks > kEnumerated || cells > tasks) return false;
  std::vector<bool> met(cells, false);
  int64_t left = cells;
  std::vector<int64_t> values(axes.size(), 0);
  for (int64_t task = 0; task < tasks && left > 0; ++task) {
    int64_t rest = task;
    for (size_t a = axes.size(); a-- > 0;) {
      values[a] = rest % axes[a].extent;
      rest /= axes[a].extent;
    }
    int64_t cell = 0;
    for (size_t d = 0; d < box.size(); ++d) {
      const std::optional<int64_t> origin = ValueAt(box[d].origin, axes, values);
      if (!origin || *origin < 0 || *origin >= extents[d] || *origin % box[d].length != 0) return false;
      cell = cell * ((extents[d] + box[d].length - 1) / box[d].length) + *origin / box[d].length;
    }
    if (!met[cell]) --left;
    met[cell] = true;
  }
  return left == 0;
}

}  // namespace

bool Covers(const Box& box, const std::vector<int64_t>& extents, const std::vector<Axis>& tasks) {
  Box joint;  // dimensions that share axes are checked together
  std::vector<int64_t> joint_extents;
  std::vector<Axis> joint_axes;
  for (size_t d = 0; d < box.size(); ++d) {
    if (extents[d] == 0) return true;
    if (IsWhole(box[d], extents[d])) continue;
    const auto alone = std::find_if(tasks.begin(), tasks.end(), [&](const Axis& axis) {
      if (!WalksWhole(box[d], extents[d], axis)) return false;
      for (size_t other = 0; other < box.size(); ++other) {
        if (other != d && box[other].origin.UsesAxis(axis.id)) return false;
      }
      return true;
    });
    if (alone != tasks.end()) continue;
    joint.push_back(box[d]);
    joint_extents.push_back(extents[d]);
    for (const Axis& axis : tasks) {
      const bool known =
          std::any_of(joint_axes.begin(), joint_axes.end(), [&](const Axis& a) { return a.id == axis.id; });
      if (!known && box[d].origin.UsesAxis(axis.id)) joint_axes.push_back(axis);
    }
  }
  return joint.empty() || EnumeratedWhole(joint, joint_extents, joint_axes);
}

absl::StatusOr<Span> SpanOf(const Index& x, const std::function<const Span*(const Axis&)>& span_of) {
  return SpanOfLocal(Localizer(span_of)(x));
}

absl::StatusOr<Box> RequiredBox(const Te& te, const Box& te_box, TensorId tensor, const Shape& shape) {
  if (te_box.size() != te.axes.size()) {
    return absl::InternalError(
        absl::StrCat("a box of ", te_box.size(), " spans for a te of ", te.axes.size(), " axes"));
  }
  Box reduction_box;
  if (te.reduction) {
    for (const Axis& axis : te.reduction->axes) reduction_box.push_back({0, std::max<int64_t>(axis.extent, 1)});
  }
  const std::function<const Span*(const Axis&)> span_of = [&](const Axis& axis) -> const Span* {
    for (size_t i = 0; i < te.axes.size(); ++i) {
      if (te.axes[i].id == axis.id) return &te_box[i];
    }
    for (size_t i = 0; i < reduction_box.size(); ++i) {
      if (te.reduction->axes[i].id == axis.id) return &reduction_box[i];
    }
    return nullptr;
  };
  BoxCollector collector(tensor, shape, span_of);
  if (te.reduction) {
    RETURN_IF_ERROR(collector.AddPred(te.reduction->pred));
    for (const Scalar& s : te.reduction->init) RETURN_IF_ERROR(collector.Add(s));
  }
  for (const Scalar& s : te.body) RETURN_IF_ERROR(collector.Add(s));
  for (const Scalar& s : te.then) RETURN_IF_ERROR(collector.Add(s));
  return collector.Take();
}

absl::StatusOr<Box> Hull(const Box& a, const Box& b) {
  if (a.size() != b.size()) {
    return absl::InternalError(absl::StrCat("boxes of ", a.size(), " and ", b.size(), " dimensions"));
  }
  Box hull(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    const Index distance = b[d].origin - a[d].origin;
    if (!distance.IsConstant()) {
      return absl::FailedPreconditionError(absl::StrCat("length not constant: dimension ", d, " starts at ",
                                                        ToString(a[d].origin), " and at ", ToString(b[d].origin)));
    }
    const int64_t offset = distance.constant();
    const int64_t lo = std::min<int64_t>(offset, 0);
    hull[d] = {a[d].origin + lo, std::max(a[d].length, offset + b[d].length) - lo};
  }
  return hull;
}

}  // namespace fusion::te
