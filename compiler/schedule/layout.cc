#include "compiler/schedule/layout.h"

#include "absl/strings/str_cat.h"

namespace fusion {

Shape Layout::PhysicalShape(const Shape& logical) const {
  if (plain()) return logical;
  Shape physical = logical;
  physical[axis] = (logical[axis] + block - 1) / block;
  physical.push_back(block);
  return physical;
}

std::vector<te::Index> Layout::Apply(const std::vector<te::Index>& logical) const {
  if (plain()) return logical;
  std::vector<te::Index> physical = logical;
  physical[axis] = te::FloorDiv(logical[axis], block);
  physical.push_back(te::Mod(logical[axis], block));
  return physical;
}

std::string Layout::ToString(int rank) const {
  if (plain()) return "plain";
  std::string from, to;
  for (int d = 0; d < rank; ++d) {
    absl::StrAppend(&from, d == 0 ? "" : ", ", "d", d);
    absl::StrAppend(&to, d == 0 ? "" : ", ", "d", d, d == axis ? absl::StrCat("//", block) : "");
  }
  return absl::StrCat("(", from, ") -> (", to, ", d", axis, "%", block, ")");
}

}  // namespace fusion
