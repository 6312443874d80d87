#include "server/scheduler/device_wish.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/target.h"

namespace fusion {

bool DeviceWish::Fits(const AttachedWorker& worker) const {
  const Target wanted = ParseTarget(target);
  if (!worker.measure_kinds.count(wanted.kind) || !wanted.IsFor(worker.device)) return false;
  return std::all_of(require.begin(), require.end(), [&](const auto& requirement) {
    const auto& [key, value] = requirement;
    if (key == "name") return worker.name == value;
    if (key == "device") return worker.device.name == value;
    if (key == "fingerprint") return absl::StartsWith(worker.fingerprint, value);
    const auto label = worker.labels.find(key);
    return label != worker.labels.end() && label->second == value;
  });
}

std::string DeviceWish::InWords() const {
  if (require.empty()) return target;
  return absl::StrCat(target, " with ", absl::StrJoin(require, ", ", absl::PairFormatter("=")));
}

}  // namespace fusion
