#include "server/scheduler/model_error_of.h"

#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<ModelError> ModelErrorOf(Store& store, const std::string& device_fingerprint) {
  ASSIGN_OR_RETURN(const std::vector<ModelErrorRow> rows, store.ModelErrors(device_fingerprint));
  std::vector<std::pair<double, double>> pairs;
  for (const ModelErrorRow& row : rows) {
    if (row.latency_ns > 0) pairs.emplace_back(row.model_ns, row.latency_ns);
  }
  return SummarizeModelError(pairs);
}

}  // namespace fusion
