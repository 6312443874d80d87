// The operating system's error numbers as absl::Status.
#ifndef FUSION_RUNTIME_BASE_ERRNO_STATUS_H_
#define FUSION_RUNTIME_BASE_ERRNO_STATUS_H_

#include <string>

#include "absl/status/status.h"

namespace fusion {

// Returns a status with the message "WHAT: No space left on device". A full disk, quota, file-size limit or memory is
// RESOURCE_EXHAUSTED.
absl::Status ErrnoStatus(int error, const std::string& what);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_ERRNO_STATUS_H_
