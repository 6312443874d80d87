// Functions of indices: substitution, row-major addresses, lanes, text.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/index/index.h"

namespace fusion::te {
namespace {

using Part = Index::Part;

// Rebuilds x from its rewritten terms; `leaf` returns the index that replaces an axis term (or null to keep it).
class Rewriter {
 public:
  Rewriter(const std::function<const Index*(const Axis&)>* axes, const std::function<TensorId(TensorId)>* tensors)
      : axes_(axes), tensors_(tensors) {}

  // Returns false when nothing changes.
  bool Rewrite(const Index& x, Index* out) const {
    bool changed = false;
    int64_t constant = x.constant();
    std::vector<Part> parts;
    for (const Part& p : x.parts()) {
      Index value;
      if (!RewriteTerm(p.term, &value)) {
        if (changed) parts.push_back(p);
        continue;
      }
      if (!changed) parts.assign(x.parts().begin(), x.parts().begin() + (&p - x.parts().data()));
      changed = true;
      constant += value.constant() * p.coefficient;
      for (const Part& v : value.parts()) parts.push_back({v.term, v.coefficient * p.coefficient});
    }
    if (changed) *out = Index::FromParts(constant, std::move(parts));
    return changed;
  }

 private:
  bool RewriteTerm(const Term& term, Index* out) const {
    switch (term.kind) {
      case TermKind::kAxis: {
        const Index* value = axes_ ? (*axes_)(term.axis) : nullptr;
        if (value) *out = *value;
        return value != nullptr;
      }
      case TermKind::kFloorDiv:
      case TermKind::kMod: {
        Index inner;
        if (!Rewrite(*term.inner, &inner)) return false;
        *out = term.kind == TermKind::kMod ? Mod(inner, term.divisor) : FloorDiv(inner, term.divisor);
        return true;
      }
      case TermKind::kLoad: {
        bool changed = false;
        std::vector<Index> indices = term.indices;
        for (Index& i : indices) {
          Index value;
          if (Rewrite(i, &value)) {
            i = std::move(value);
            changed = true;
          }
        }
        const TensorId tensor = tensors_ ? (*tensors_)(term.tensor) : term.tensor;
        if (!changed && tensor == term.tensor) return false;
        *out = Index::Load(tensor, std::move(indices), term.load_range);
        return true;
      }
    }
    return false;
  }

  const std::function<const Index*(const Axis&)>* axes_;
  const std::function<TensorId(TensorId)>* tensors_;
};

// Axes of ClassifyLanes; real axes have ids >= 0.
constexpr int kVectorAxis = -2, kLaneAxis = -3;

}  // namespace

Index Substitute(const Index& x, const std::function<const Index*(const Axis&)>& map) {
  Index out;
  return Rewriter(&map, nullptr).Rewrite(x, &out) ? out : x;
}

Index MapTensors(const Index& x, const std::function<TensorId(TensorId)>& map) {
  Index out;
  return Rewriter(nullptr, &map).Rewrite(x, &out) ? out : x;
}

void CollectAxes(const Index& x, std::vector<Axis>* axes) {
  for (const Part& p : x.parts()) {
    if (p.term.kind == TermKind::kAxis) {
      const bool known = std::any_of(axes->begin(), axes->end(), [&](const Axis& a) { return a.id == p.term.axis.id; });
      if (!known) axes->push_back(p.term.axis);
    }
    if (p.term.inner) CollectAxes(*p.term.inner, axes);
    for (const Index& i : p.term.indices) CollectAxes(i, axes);
  }
}

Index Linearize(const std::vector<Index>& indices, const std::vector<int64_t>& extents) {
  int64_t stride = 1, constant = 0;
  std::vector<Part> parts;
  for (size_t d = indices.size(); d-- > 0;) {
    constant += indices[d].constant() * stride;
    for (const Part& p : indices[d].parts()) parts.push_back({p.term, p.coefficient * stride});
    stride *= extents[d];
  }
  return Index::FromParts(constant, std::move(parts));
}

std::vector<Index> Delinearize(const Index& linear, const std::vector<int64_t>& extents) {
  std::vector<Index> indices(extents.size());
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(extents[d], 1);
    indices[d] = FloorDiv(linear, stride);
    if (d > 0) indices[d] = Mod(indices[d], extent);  // the outermost is in range because `linear` is
    stride *= extent;
  }
  return indices;
}

LaneAccess ClassifyLanes(const Index& address, const Axis& axis, int64_t lanes) {
  const auto classify = [](int64_t coefficient) {
    return coefficient == 0 ? LaneAccess::kInvariant : coefficient == 1 ? LaneAccess::kContiguous : LaneAccess::kOther;
  };
  int64_t coefficient;
  if (address.AffineIn(axis.id, &coefficient)) return classify(coefficient);
  const Index split = Index(Axis{kVectorAxis, (axis.extent + lanes - 1) / lanes}) * lanes + Axis{kLaneAxis, lanes};
  const Index by_lane = Substitute(address, [&](const Axis& a) { return a.id == axis.id ? &split : nullptr; });
  return by_lane.AffineIn(kLaneAxis, &coefficient) ? classify(coefficient) : LaneAccess::kOther;
}

std::string ToString(const Index& x, const std::function<std::string(int axis_id)>& axis_name,
                     const std::function<std::string(TensorId)>& tensor_name) {
  std::string text;
  for (const Part& p : x.parts()) {
    const int64_t c = p.coefficient;
    absl::StrAppend(&text, c > 0 ? (text.empty() ? "" : " + ") : (text.empty() ? "-" : " - "));
    if (c != 1 && c != -1) absl::StrAppend(&text, c > 0 ? c : -c, "*");
    switch (p.term.kind) {
      case TermKind::kAxis:
        absl::StrAppend(&text, axis_name ? axis_name(p.term.axis.id) : absl::StrCat("i", p.term.axis.id));
        break;
      case TermKind::kFloorDiv:
      case TermKind::kMod: {
        const Index& inner = *p.term.inner;
        const bool bare = inner.constant() == 0 && inner.parts().size() == 1 && inner.parts()[0].coefficient == 1;
        const std::string inner_text = ToString(inner, axis_name, tensor_name);
        absl::StrAppend(&text, bare ? inner_text : absl::StrCat("(", inner_text, ")"),
                        p.term.kind == TermKind::kMod ? "%" : "//", p.term.divisor);
        break;
      }
      case TermKind::kLoad: {
        absl::StrAppend(&text, tensor_name ? tensor_name(p.term.tensor) : absl::StrCat("%t", p.term.tensor), "[");
        for (size_t i = 0; i < p.term.indices.size(); ++i) {
          absl::StrAppend(&text, i ? ", " : "", ToString(p.term.indices[i], axis_name, tensor_name));
        }
        absl::StrAppend(&text, "]");
        break;
      }
    }
  }
  const int64_t c0 = x.constant();
  if (text.empty()) return absl::StrCat(c0);
  if (c0 != 0) absl::StrAppend(&text, c0 > 0 ? " + " : " - ", c0 > 0 ? c0 : -c0);
  return text;
}

}  // namespace fusion::te
