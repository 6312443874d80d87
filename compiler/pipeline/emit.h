// Emit: block kernels → texts → binaries → a bundle. Identical kernels are printed and built once, many to a file.
#ifndef FUSION_COMPILER_PIPELINE_EMIT_H_
#define FUSION_COMPILER_PIPELINE_EMIT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/instructions.h"
#include "compiler/backends/toolchain.h"
#include "compiler/onnx/import.h"
#include "compiler/pipeline/block_kernel.h"
#include "compiler/pipeline/compile.h"
#include "compiler/pipeline/elide_copies.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Texts of the distinct kernels among `kernels`, grouped into files, and where each kernel is.
struct KernelTexts {
  struct File {
    std::string text;  // complete
    std::string kind;  // whose toolchain builds it
    Instructions instructions;
    bool on_host = false;  // Placement::on_host
  };
  std::vector<File> files;  // kernels of the same processor that need the same instructions
  struct Place {
    int file = 0;
    std::string symbol;
    std::vector<int64_t> tasks;  // that the runtime launches, by phase
  };
  std::vector<Place> places;  // parallel to `kernels`
  int distinct = 0;
};
KernelTexts PrintKernels(const std::vector<const BlockKernel*>& kernels, const DeviceModel& device);

// The binary of each file.
absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, Toolchain* toolchain);

// One launch of the program: a kernel and the values its arguments stand for.
struct PlannedLaunch {
  BlockKernel block;
  std::vector<BlockKernel> others;  // of a batch: the same code with other arguments
  std::string label;
  std::vector<std::string> nodes;
};

// Equal for packings that make the same bytes of a constant.
std::string PackingText(const movement::Pack& pack);

// One program of a bundle. What is pointed to outlives the call.
struct BundleProgram {
  const ecg::Graph* graph = nullptr;
  const ValueLayouts* layouts = nullptr;
  const std::vector<PlannedLaunch>* launches = nullptr;
  const std::map<ecg::ValueId, Inside>* inside = nullptr;  // values that lie in another's memory
  std::vector<KernelTexts::Place> places;                  // parallel to `launches`
  std::map<std::string, int64_t> dims;                     // of a specialisation
  std::vector<std::vector<std::string>> input_symbols;     // of a specialisation, parallel to the graph's inputs
  std::vector<onnx_import::InputExtent> input_extents;     // of one that pads
};

// Files of `texts` that no launch uses are left out. Lays out memory, writes weights (packed as the kernels want them;
// once for all programs that share them), kernels, texts, `account`'s plan and the manifest.
absl::Status WriteBundle(const std::vector<BundleProgram>& programs, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account);

// The tiny bundle by which a worker measures kernels that run one after another, mostly one: every argument that is
// read (weights too) is an input, every one that is written an output; what an earlier kernel wrote a later one reads.
// Not synced: it is read back at once. Its options say the kernels' keys and what the cost model expects of them with
// `threads`. `place`: of the first kernel's text; the others follow.
absl::Status WriteMeasurementBundle(const KernelSequence& kernels, const KernelTexts& texts,
                                    std::vector<KernelTexts::Place>::const_iterator place,
                                    const std::vector<std::string>& binaries, const DeviceModel& device, int threads,
                                    const std::string& path);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_EMIT_H_
