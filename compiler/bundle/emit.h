// Emit: from kernels to texts, binaries and a bundle. Identical kernels are printed and built once, many to a file.
#ifndef FUSION_COMPILER_BUNDLE_EMIT_H_
#define FUSION_COMPILER_BUNDLE_EMIT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/instructions.h"
#include "compiler/backends/toolchain.h"
#include "compiler/kernels/block_kernel.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/onnx/import.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"
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
KernelTexts PrintKernels(const std::vector<const BlockKernel*>& kernels, const DeviceModel& device);

// Builds the binary of each file.
absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, Toolchain* toolchain);

// One launch of the program: a kernel and the values that its arguments stand for.
struct PlannedLaunch {
  BlockKernel block;
  std::vector<BlockKernel> others;  // the rest of a batch: the same code with other arguments
  std::string label;
  std::vector<std::string> nodes;
};

// Returns a text that is equal for packings that make the same bytes of a constant.
std::string PackingText(const movement::Pack& pack);

// One program of a bundle. What the pointers refer to must outlive the call.
struct BundleProgram {
  const ecg::Graph* graph = nullptr;
  const ValueLayouts* layouts = nullptr;
  const std::vector<PlannedLaunch>* launches = nullptr;
  const std::map<ecg::ValueId, Inside>* inside = nullptr;  // values that lie in another's memory
  std::vector<KernelTexts::Place> places;                  // parallel to `launches`
  std::map<std::string, int64_t> dims;                     // only for a specialisation
  std::vector<std::vector<std::string>> input_symbols;     // only for a specialisation; parallel to the graph's inputs
  std::vector<onnx_import::InputExtent> input_extents;     // only for a padded program
};

// Lays out memory and writes weights, kernels, texts, `account`'s plan and the manifest. Weights are packed as the
// kernels want them, once for all programs that share them. Files of `texts` that no launch uses are left out.
absl::Status WriteBundle(const std::vector<BundleProgram>& programs, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account);

// Writes the tiny bundle with which a worker measures one kernel or several that run one after another. Every argument
// that is read (weights too) is an input, and every argument that is written is an output; a later kernel reads what an
// earlier one wrote. The file is not synced, because it is read back at once. Its options state the kernels' keys and
// the cost model's estimates for `threads`. `place` is the first kernel's text; the others follow.
absl::Status WriteMeasurementBundle(const KernelSequence& kernels, const KernelTexts& texts,
                                    std::vector<KernelTexts::Place>::const_iterator place,
                                    const std::vector<std::string>& binaries, const DeviceModel& device, int threads,
                                    const std::string& path);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_EMIT_H_
