// A condition that only a run can decide, such as whether two extents that depend on data may meet. The model computes
// it, as the first element of an i64 vector: 0 where it does not hold.
#ifndef FUSION_RUNTIME_BASE_RUN_CHECK_H_
#define FUSION_RUNTIME_BASE_RUN_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace fusion {

// INVALID_ARGUMENT with `message` if values[0] is 0; "{1}" stands for values[1]. OK for an empty vector.
absl::Status RunCheckResult(const std::string& message, absl::Span<const int64_t> values);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_RUN_CHECK_H_
