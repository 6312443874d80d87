// A stage as a convolution of images that a library of the target performs (cuDNN).
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_CONVOLUTION_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_CONVOLUTION_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// A phase of its own. Recognised by the roles of axes, of a nest whose divided axes are split. By the operands that
// move with an axis:
//   image alone: images, rows, columns        filter alone: results of a group        both: groups
// and of the fold, whose axes move both: taps of rows, taps of columns, channels of a group; each at most once, more
// than one tap in all. Addresses are affine and nested like [n, c, h, w] or [n, h, w, c], in image and result alike. A
// tap outside of the image counts as zero, as the load's condition says, and there are as many rows and columns as
// fit with one padding on either side. A constant filter may lie in any order: it is packed, and the kernel gets a
// buffer. The result has the operands' type, and nothing follows the sum. FAILED_PRECONDITION.
absl::StatusOr<movement::Phase> LibraryConvolutionPhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_CONVOLUTION_H_
