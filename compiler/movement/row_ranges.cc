#include "compiler/movement/row_ranges.h"

#include <set>

#include "compiler/te/scalar/axis_cuts.h"

namespace fusion::movement {

using te::Axis;
using te::Index;

std::vector<RowRange> RowRangesOf(const te::Scalar& body, const Axis& axis) {
  constexpr size_t kMostCuts = 6;
  std::set<int64_t> cuts;
  te::VisitCuts(body, [&](const te::AxisCut& cut) {
    if (cut.axis.id == axis.id && cut.at > 0 && cut.at < axis.extent) cuts.insert(cut.at);
  });
  if (cuts.empty() || cuts.size() > kMostCuts) return {{axis, body}};
  cuts.insert(axis.extent);
  std::vector<RowRange> ranges;
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    const Axis part{axis.id, end - begin};
    const Index at = Index(part) + begin;
    ranges.push_back(
        {part, te::Substitute(body, [&](const Axis& one) { return one.id == axis.id ? &at : nullptr; })});
    begin = end;
  }
  return ranges;
}

}  // namespace fusion::movement
