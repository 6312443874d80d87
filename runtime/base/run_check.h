// A condition that only a run can decide, such as whether two extents that depend on data are compatible. The model
// computes the condition as the first element of an i64 vector; it is 0 where the condition does not hold.
#ifndef FUSION_RUNTIME_BASE_RUN_CHECK_H_
#define FUSION_RUNTIME_BASE_RUN_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace fusion {

// Fails with INVALID_ARGUMENT and `message` if values[0] is 0; "{1}" in the message stands for values[1]. An empty
// vector is OK.
absl::Status RunCheckResult(const std::string& message, absl::Span<const int64_t> values);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_RUN_CHECK_H_
