// A stage as a product of matrices that a library of the target performs (cuBLASLt).
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_PRODUCT_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_PRODUCT_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// A phase of its own. Recognised by the roles of axes, of a nest whose adjacent axes are fused: one axis with which one
// operand alone moves, one for the other operand, one fold axis, at most one with which both move, and addresses that
// are matrices. What follows the sum may be a bias along the contiguous axis of the result. FAILED_PRECONDITION.
absl::StatusOr<movement::Phase> LibraryProductPhase(const Nest& nest, const DeviceModel& device,
                                                    const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_PRODUCT_H_
