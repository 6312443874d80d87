// Kernel files: the texts and binaries of kernels. Identical kernels are printed and built once, many to a file.
#ifndef FUSION_COMPILER_BUNDLE_KERNEL_FILES_H_
#define FUSION_COMPILER_BUNDLE_KERNEL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/instructions.h"
#include "compiler/backends/toolchain.h"
#include "compiler/cost/device_model.h"
#include "compiler/kernels/fusion_kernel.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Texts of the distinct kernels among `kernels`, grouped into files, and the place of each kernel.
struct KernelTexts {
  struct File {
    std::string text;  // complete
    std::string kind;  // the device kind whose toolchain builds it
    Instructions instructions;
    bool on_host = false;  // Placement::on_host
  };
  std::vector<File> files;  // a file holds kernels of one processor that need the same instructions
  struct Place {
    int file = 0;
    std::string symbol;
    std::vector<int64_t> tasks;  // tasks that the runtime launches, by phase
  };
  std::vector<Place> places;  // parallel to `kernels`
  int distinct = 0;
};
KernelTexts PrintKernels(const std::vector<const FusionKernel*>& kernels, const DeviceModel& device);

// Appends other texts, whose files stay files of their own, and whose kernels are counted again.
void AppendTexts(KernelTexts more, KernelTexts* texts);

// Builds the binary of each file.
absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, Toolchain* toolchain);

// The entries of a bundle that hold a file's text and its binary.
std::string SourceName(const KernelTexts& texts, int file);
std::string BinaryName(const KernelTexts& texts, int file);

// Returns the manifest's entry for a kernel whose text is at `place`.
ManifestKernel MakeManifestKernel(const KernelTexts& texts, const FusionKernel& fusion_kernel,
                                  const KernelTexts::Place& place);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_KERNEL_FILES_H_
