// A stage as a convolution of images that a library of the target performs (cuDNN).
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_CONVOLUTION_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_CONVOLUTION_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Turns the nest into a phase of its own, if it is such a convolution. It is recognised by the roles of the axes of a
// nest whose divided axes are split. The operands that move with a spatial axis decide its role:
// - image alone: images, rows, columns;
// - filter alone: results of a group;
// - both: groups.
//
// The reduction axes, which move both operands, are taps of rows, taps of columns and channels of a group. Each occurs
// at most once, and there is more than one tap in all. Further conditions:
// - Addresses are affine and nested like [n, c, h, w] or [n, h, w, c], in image and result alike.
// - A tap outside of the image counts as zero, by the load's condition, and there are as many rows and columns as fit
//   with one padding on either side.
// - A constant filter may lie in any order: it is packed, and the kernel gets a buffer for it.
// - The result has the operands' type, and nothing follows the sum.
//
// Fails with FAILED_PRECONDITION where a condition is not met.
absl::StatusOr<movement::Phase> LibraryConvolutionPhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_CONVOLUTION_H_
