// For tests of what bundles leave to libraries: a graph compiled with a worker's measurements and run by the bundle's
// device, through the driver and the libraries that the processor plays (runtime/devices/cuda/testing).
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

// What a library computes of the kernel, in the order of its phases.
std::vector<LibraryCall> LibraryCallsOf(const movement::Kernel& kernel);

class LibraryBundles {
 public:
  // Makes the processor this process's GPU.
  static absl::StatusOr<std::unique_ptr<LibraryBundles>> Create();
  ~LibraryBundles();

  struct Options {
    DeviceModel device;
    double share = 1;  // of our kernels' time, that the library was measured to take
    std::string precision = "fp32";
    std::vector<Tensor> inputs = {};  // random where there are none
  };
  struct Result {
    std::vector<Tensor> outputs;
    std::vector<LibraryCall> calls;  // that the bundle leaves to libraries
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
