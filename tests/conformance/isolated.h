// Runs cases in processes of their own, so that generated code that crashes or hangs fails its case only.
#ifndef FUSION_TESTS_CONFORMANCE_ISOLATED_H_
#define FUSION_TESTS_CONFORMANCE_ISOLATED_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

// run(i) for i in [0, count), each in a forked child, one child a core. A child that is ended by a signal, or by the
// deadline, gives INTERNAL. The calling process must have no other threads and no other children.
std::vector<absl::StatusOr<std::vector<Tensor>>> RunIsolated(
    int count, int deadline_s, const std::function<absl::StatusOr<std::vector<Tensor>>(int)>& run);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_ISOLATED_H_
