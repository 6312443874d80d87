#include "compiler/pipeline/verify.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/movement/verify.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status MadeWrong(const char* pass, const char* what, const absl::Status& found) {
  return absl::InternalError(absl::StrCat("pass '", pass, "' made a wrong ", what,
                                          " (a fault of the compiler): ", std::string(found.message())));
}

absl::Status VerifyLayouts(const ecg::Graph& graph, const ValueLayouts& layouts) {
  for (const auto& [value, layout] : layouts) {
    if (value < 0 || value >= static_cast<ecg::ValueId>(graph.values().size())) {
      return absl::InternalError(absl::StrCat("a layout belongs to value ", value, ", which does not exist"));
    }
    const int rank = static_cast<int>(graph.value(value).type.shape.size());
    if (layout.plain() || (layout.axis >= 0 && layout.axis < rank)) continue;
    return absl::InternalError(absl::StrCat("the layout of value '", graph.value(value).name, "' blocks axis ",
                                            layout.axis, ", but the value has ", rank, " axes"));
  }
  return absl::OkStatus();
}

absl::Status VerifyElided(const Planned& planned) {
  if (!planned.elided.fusion_blocks.empty() &&
      *planned.elided.fusion_blocks.rbegin() >= planned.plan.fusion_blocks.size()) {
    return absl::InternalError(
        absl::StrCat("fusion block ", *planned.elided.fusion_blocks.rbegin(), " does not exist"));
  }
  const auto values = static_cast<ecg::ValueId>(planned.graph.values().size());
  for (const auto& [value, inside] : planned.elided.values) {
    const bool exist = value >= 0 && value < values && inside.whole >= 0 && inside.whole < values;
    if (exist && value != inside.whole && inside.offset_bytes >= 0) continue;
    return absl::InternalError(
        absl::StrCat("value ", value, " lies in value ", inside.whole, " at byte ", inside.offset_bytes));
  }
  return absl::OkStatus();
}

absl::Status VerifyLaunches(const Planned& planned) {
  const size_t fusion_blocks = planned.plan.fusion_blocks.size();
  std::vector<int> launches(fusion_blocks, 0);
  for (const std::vector<size_t>& launch : planned.launches) {
    if (launch.empty()) return absl::InternalError("a launch has no fusion block");
    for (size_t b : launch) {
      if (b >= fusion_blocks)
        return absl::InternalError(absl::StrCat("a launch has fusion block ", b, " of ", fusion_blocks));
      ++launches[b];
    }
  }
  if (!planned.concurrent.empty() && (planned.concurrent.size() != planned.launches.size() || planned.concurrent[0])) {
    return absl::InternalError("which launches are concurrent is not said of each, or the first one is");
  }
  for (size_t b = 0; b < fusion_blocks; ++b) {
    const int expected = planned.elided.fusion_blocks.count(b) > 0 ? 0 : 1;
    if (launches[b] == expected) continue;
    return absl::InternalError(
        absl::StrCat("fusion block ", b, " is in ", launches[b], " launches, expected ", expected));
  }
  return absl::OkStatus();
}

absl::Status VerifyKernels(const std::vector<PlannedLaunch>& launches) {
  std::set<std::string> known;
  for (const PlannedLaunch& launch : launches) {
    if (!known.insert(launch.fusion_kernel.key).second) continue;
    RETURN_IF_ERROR(Annotate(movement::Verify(launch.fusion_kernel.kernel), launch.label));
  }
  return absl::OkStatus();
}

}  // namespace fusion
