// Computes how far the cost model is from the measurements of a device ("": of all devices) in this server's database.
#ifndef FUSION_SERVER_SCHEDULER_MODEL_ERROR_OF_H_
#define FUSION_SERVER_SCHEDULER_MODEL_ERROR_OF_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/cost/model_error.h"
#include "db/stores/store.h"

namespace fusion {

absl::StatusOr<ModelError> ModelErrorOf(Store& store, const std::string& device_fingerprint);

// The same over whole plans, which were measured as finished bundles; ModelError::kernels counts plans.
absl::StatusOr<ModelError> PlanErrorOf(Store& store, const std::string& device_fingerprint);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_MODEL_ERROR_OF_H_
