// A stage that a library of the target computes: a candidate at kernel scope, which only a measurement chooses.
// (PowerFusion and FusionStitching leave compute-bound operators to libraries.)
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_STAGE_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_STAGE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Returns a phase that computes the nest, a sum of products, by one library call: a product of matrices, or a
// convolution, whose constant filter may be packed (that adds a buffer to the kernel). The phase keeps the nest's loops
// and addresses. Fails with FAILED_PRECONDITION and the reason.
absl::StatusOr<movement::Phase> LibraryPhase(const Nest& nest, const DeviceModel& device, movement::Kernel* kernel,
                                             AxisSource* axes);

// The fusion block's one product that is worth a kernel; -1 where there are none or several.
int OnlyProduct(const te::Program& program, const DeviceModel& device);

// Moves what follows the product's sum to a stage of its own; nullopt where nothing follows it. With `rounded` the sum
// is stored as the narrower type to which every use rounds it; nullopt where there is no such type.
std::optional<te::Program> WithBareProduct(te::Program program, int product, bool rounded);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_STAGE_H_
