// Emit: block kernels → texts → binaries → a bundle. Identical kernels are printed and built once, many to a file.
#ifndef FUSION_COMPILER_PIPELINE_EMIT_H_
#define FUSION_COMPILER_PIPELINE_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/toolchain.h"
#include "compiler/pipeline/block_kernel.h"
#include "compiler/pipeline/compile.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Texts of the distinct kernels among `kernels`, grouped into files, and where each kernel is.
struct KernelTexts {
  std::vector<std::string> files;  // complete C++ texts
  struct Place {
    int file = 0;
    std::string symbol;
  };
  std::vector<Place> places;  // parallel to `kernels`
  int distinct = 0;
};
KernelTexts PrintKernels(const std::vector<const BlockKernel*>& kernels, const DeviceModel& device);

absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, const DeviceModel& device,
                                                    Toolchain* toolchain);

// One launch of the program: a kernel and the values its arguments stand for.
struct PlannedLaunch {
  BlockKernel block;
  std::string label;
  std::vector<std::string> nodes;
};

// `texts.places` parallel to `launches`; files that no launch uses are left out. Lays out memory, writes weights
// (packed as the kernels want them), kernels, texts, `plan_json` and the manifest.
absl::Status WriteBundle(const ecg::Graph& graph, const ValueLayouts& layouts,
                         const std::vector<PlannedLaunch>& launches, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account);

// The tiny bundle by which a worker measures one kernel: every argument it reads (weights too) is an input, every one
// it writes an output.
absl::Status WriteMeasurementBundle(const BlockKernel& block, const KernelTexts::Place& place,
                                    const std::string& binary, const DeviceModel& device, const std::string& path);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_EMIT_H_
