// Core dumps hold models, weights and keys.
#ifndef FUSION_RUNTIME_BASE_CORE_DUMPS_H_
#define FUSION_RUNTIME_BASE_CORE_DUMPS_H_

#include "absl/status/status.h"

namespace fusion {

// No dump of this process is ever written. Processes that it starts have the limit, too.
absl::Status RefuseCoreDumps();

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_CORE_DUMPS_H_
