// For tests of library calls in bundles: compiles a graph with a worker's measurements and runs it on the bundle's
// device, with the driver and the libraries emulated by the processor (runtime/devices/cuda/testing).
#ifndef FUSION_COMPILER_PIPELINE_TESTING_LIBRARY_BUNDLE_H_
#define FUSION_COMPILER_PIPELINE_TESTING_LIBRARY_BUNDLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/toolchain_set.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/movement/kernel.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/library_call.h"

namespace fusion::testing {

// The library calls of the kernel, in the order of its phases.
std::vector<LibraryCall> LibraryCallsOf(const movement::Kernel& kernel);

class LibraryBundles {
 public:
  // Makes the processor act as this process's GPU.
  static absl::StatusOr<std::unique_ptr<LibraryBundles>> Create();
  ~LibraryBundles();

  struct Options {
    DeviceModel device;
    double share = 1;  // the library's measured time, as a share of our kernels' time
    std::string precision = "fp32";
    std::vector<Tensor> inputs = {};  // random if empty
  };
  struct Result {
    std::vector<Tensor> outputs;
    std::vector<LibraryCall> calls;  // the bundle's library calls
    int format = 0;
  };
  absl::StatusOr<Result> Run(const ecg::Graph& graph, const Options& options);

 private:
  LibraryBundles() = default;
  std::unique_ptr<ToolchainSet> toolchains_;
  std::string path_;
};

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_LIBRARY_BUNDLE_H_
