// A stage that a library of the target computes: a candidate at kernel scope (PowerFusion and FusionStitching leave
// compute-bound operators to libraries), which only a measurement chooses. What is common to all kinds of them.
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_STAGE_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_STAGE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest.h"
#include "runtime/bundle/library_call.h"

namespace fusion {

// A phase of the nest, a sum of products, that a library of the device computes alone: a product of matrices, or a
// convolution for which a constant filter may be packed (a buffer is then added to the kernel). The phase keeps the
// nest's loops and addresses. FAILED_PRECONDITION, saying why not.
absl::StatusOr<movement::Phase> LibraryPhase(const Nest& nest, const DeviceModel& device, movement::Kernel* kernel,
                                             AxisSource* axes);

// The block's one product that is worth a kernel, -1: none, or several.
int OnlyProduct(const te::Program& program, const DeviceModel& device);

// The program with what follows the product's sum in a stage of its own; nullopt where nothing does. `rounded`: the sum
// is stored as the narrower type to which all that follows rounds it; nullopt where that is not so.
std::optional<te::Program> WithBareProduct(te::Program program, int product, bool rounded);

// For the kinds of calls.

// A single sum in f32 of products of two operands, each element of which is computed and stored.
bool IsPlainSumOfProducts(const Nest& nest);
// An unconditional load; null for anything else.
const te::ScalarNode* PlainLoad(const te::Scalar& s);
movement::Phase PhaseOf(const Nest& nest, const LibraryCall& call);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_STAGE_H_
