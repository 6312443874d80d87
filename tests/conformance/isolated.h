// Runs cases in child processes, so that generated code that crashes or hangs fails its case only.
#ifndef FUSION_TESTS_CONFORMANCE_ISOLATED_H_
#define FUSION_TESTS_CONFORMANCE_ISOLATED_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

enum class CasesPerProcess {
  kOne,
  kMany,  // one after another until one crashes or is INTERNAL, which may be of its device: for slow drivers
};

// Calls run(i) for i in [0, count) in forked children, one child per core. The result is INTERNAL for a case that ends
// its child by a signal, or takes more CPU time than `deadline_s` or 20 times as much wall-clock time. The calling
// process must have no other threads and no other children.
std::vector<absl::StatusOr<std::vector<Tensor>>> RunIsolated(
    int count, int deadline_s, CasesPerProcess cases,
    const std::function<absl::StatusOr<std::vector<Tensor>>(int)>& run);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_ISOLATED_H_
