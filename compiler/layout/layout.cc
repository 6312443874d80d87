#include "compiler/layout/layout.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {

Shape Layout::PhysicalShape(const Shape& logical) const {
  if (plain()) return logical;
  if (axis_last()) return MoveLast(logical);
  Shape physical = logical;
  physical[axis] = (logical[axis] + block - 1) / block;
  physical.push_back(block);
  return physical;
}

std::vector<te::Index> Layout::Apply(const std::vector<te::Index>& logical) const {
  if (plain()) return logical;
  if (axis_last()) return MoveLast(logical);
  std::vector<te::Index> physical = logical;
  physical[axis] = te::FloorDiv(logical[axis], block);
  physical.push_back(te::Mod(logical[axis], block));
  return physical;
}

std::string Layout::ToString(int rank) const {
  if (plain()) return "plain";
  std::vector<std::string> from, to;
  for (int d = 0; d < rank; ++d) from.push_back(absl::StrCat("d", d));
  if (axis_last()) {
    to = MoveLast(from);
  } else {
    to = from;
    absl::StrAppend(&to[axis], "//", block);
    to.push_back(absl::StrCat("d", axis, "%", block));
  }
  return absl::StrCat("(", absl::StrJoin(from, ", "), ") -> (", absl::StrJoin(to, ", "), ")");
}

}  // namespace fusion
