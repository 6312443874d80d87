#include "compiler/bundle/weights.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/constant_transform.h"
#include "compiler/movement/pack_constant.h"

namespace fusion {

HeldWeight Held(const Weights::Weight& weight) {
  HeldWeight held;
  held.bytes = weight.size_bytes;
  if (weight.table) return held;
  held.source = weight.source.data();
  const int64_t element = DTypeBytes(weight.source.dtype());
  held.source_bytes = held.covered_bytes = held.transformed_bytes = weight.source.size_bytes();
  if (weight.pack == nullptr) return held;
  if (weight.pack->transform.by_dimension.empty()) {
    // A packing that repeats elements covers at most all of them.
    const movement::ConstantPacker packer(*weight.pack, weight.source.num_elements());
    held.covered_bytes = held.transformed_bytes = std::min(packer.held() * element, held.source_bytes);
  } else {
    const movement::TransformBlocks blocks = movement::BlocksOf(weight.pack->transform, weight.source.shape());
    held.transformed_bytes = NumElements(blocks.shape) * element;
  }
  return held;
}

std::string BytesIdentity(const Tensor& tensor) {
  return absl::StrCat("bytes:", reinterpret_cast<uintptr_t>(tensor.data()), " ", DTypeName(tensor.dtype()), " ",
                      tensor.num_elements());
}

namespace {

constexpr const char* kSigns[] = {"<", ">=", "==", "!="};

// An index as constant + Σ coefficient of each axis; nullopt where it is not affine.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> by_axis;
};
std::optional<Affine> AffineOf(const te::Index& index, const std::vector<te::Axis>& axes) {
  Affine result;
  te::Index rest = index;
  for (const te::Axis& axis : axes) {
    int64_t& coefficient = result.by_axis.emplace_back();
    if (!index.AffineIn(axis.id, &coefficient)) return std::nullopt;
    rest = rest - te::Index(axis) * coefficient;
  }
  if (!rest.IsConstant()) return std::nullopt;
  result.constant = rest.constant();
  return result;
}

// Does the comparison of `difference` with zero hold for every value in its range?
bool AlwaysHolds(const te::Index& difference, te::Cmp cmp) {
  const te::Interval range = difference.Range();
  return (cmp == te::Cmp::kLt && range.hi < 0) || (cmp == te::Cmp::kGe && range.lo >= 0);
}

// The packing by strides, if it has such a form. Axes that are walked as one are joined: kernels whose grids differ cut
// the same panels into other axes.
std::optional<std::string> StridesText(const movement::Pack& pack) {
  struct Condition {
    Affine difference;
    te::Cmp cmp;
  };
  std::optional<Affine> address = AffineOf(pack.address, pack.axes);
  if (!address) return std::nullopt;
  std::vector<Condition> conditions;
  for (const te::Comparison& c : pack.pred) {
    const te::Index difference = c.lhs - c.rhs;
    if (AlwaysHolds(difference, c.cmp)) continue;
    std::optional<Affine> affine = AffineOf(difference, pack.axes);
    if (!affine) return std::nullopt;
    conditions.push_back({*std::move(affine), c.cmp});
  }
  std::vector<std::vector<int64_t>*> walks = {&address->by_axis};
  for (Condition& condition : conditions) walks.push_back(&condition.difference.by_axis);
  std::vector<int64_t> extents;
  for (const te::Axis& axis : pack.axes) extents.push_back(axis.extent);
  const auto erase = [&](size_t axis) {
    extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
    for (std::vector<int64_t>* walk : walks) walk->erase(walk->begin() + static_cast<std::ptrdiff_t>(axis));
  };
  for (size_t a = extents.size(); a-- > 0;) {
    if (extents[a] == 1) {
      erase(a);
    } else if (a + 1 < extents.size() && std::all_of(walks.begin(), walks.end(), [&](const auto* walk) {
                 return (*walk)[a] == (*walk)[a + 1] * extents[a + 1];
               })) {
      extents[a + 1] *= extents[a];
      erase(a);
    }
  }
  const auto words = [](const Affine& affine) {
    return absl::StrCat(absl::StrJoin(affine.by_axis, ","), "+", affine.constant);
  };
  std::vector<std::string> tests;
  for (const Condition& c : conditions) {
    tests.push_back(absl::StrCat("|", words(c.difference), kSigns[static_cast<int>(c.cmp)], "0"));
  }
  std::sort(tests.begin(), tests.end());
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  return absl::StrCat("|", absl::StrJoin(extents, ","), "|", words(*address), absl::StrJoin(tests, ""));
}

}  // namespace

// Axis numbers differ between kernels, so the text names axes by position.
std::string PackingText(const movement::Pack& pack) {
  std::string text;
  for (const auto& [dimension, matrix] : pack.transform.by_dimension) {
    absl::StrAppend(&text, "|through ", ShapeToString(matrix.shape()), " on ", dimension);
  }
  if (const std::optional<std::string> strides = StridesText(pack)) return absl::StrCat(text, *strides);
  std::map<int, int> position;
  for (size_t i = 0; i < pack.axes.size(); ++i) {
    position[pack.axes[i].id] = static_cast<int>(i);
    absl::StrAppend(&text, "|", pack.axes[i].extent);
  }
  auto name = [&](int axis) { return absl::StrCat("a", position[axis]); };
  absl::StrAppend(&text, "|", te::ToString(pack.address, name));
  for (const te::Comparison& c : pack.pred) {
    absl::StrAppend(&text, "|", te::ToString(c.lhs, name), kSigns[static_cast<int>(c.cmp)], te::ToString(c.rhs, name));
  }
  return text;
}

bool KeepsOrder(const movement::Pack& pack, int64_t source_elements) {
  const te::Axis whole{0, source_elements};
  return PackingText(pack) == PackingText({-1, {whole}, te::Index(whole), {}, {}});
}

}  // namespace fusion
