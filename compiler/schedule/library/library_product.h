// A stage as a product of matrices that a library of the target performs (cuBLASLt).
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_PRODUCT_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_PRODUCT_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Turns the nest into a phase of its own, if it is such a product. It is recognised by the roles of the axes of a nest
// whose adjacent axes are fused: one axis moves the left operand alone, one the right operand alone, at most one moves
// both, and there is one reduction axis. The addresses must be those of matrices, and a bias along the contiguous axis
// of the result may follow the sum. Fails with FAILED_PRECONDITION where this does not hold.
absl::StatusOr<movement::Phase> LibraryProductPhase(const Nest& nest, const DeviceModel& device,
                                                    const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_PRODUCT_H_
