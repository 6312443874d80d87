#include "server/scheduler/model_error_of.h"

#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

ModelError Summarize(const std::vector<ModelErrorRow>& rows) {
  std::vector<std::pair<double, double>> pairs;
  for (const ModelErrorRow& row : rows) {
    if (row.latency_ns > 0) pairs.emplace_back(row.model_ns, row.latency_ns);
  }
  return SummarizeModelError(pairs);
}

}  // namespace

absl::StatusOr<ModelError> ModelErrorOf(Store& store, const std::string& device_fingerprint) {
  ASSIGN_OR_RETURN(const std::vector<ModelErrorRow> rows, store.ModelErrors(device_fingerprint));
  return Summarize(rows);
}

absl::StatusOr<ModelError> PlanErrorOf(Store& store, const std::string& device_fingerprint) {
  ASSIGN_OR_RETURN(const std::vector<ModelErrorRow> rows, store.PlanErrors(device_fingerprint));
  return Summarize(rows);
}

}  // namespace fusion
