// Program layout: the buffers, launches and memory of one program of a bundle.
#ifndef FUSION_COMPILER_BUNDLE_PROGRAM_LAYOUT_H_
#define FUSION_COMPILER_BUNDLE_PROGRAM_LAYOUT_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/bundle/kernel_files.h"
#include "compiler/bundle/weights.h"
#include "compiler/ecg/graph.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/launch/loop_memory.h"
#include "compiler/onnx/import.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// One launch of the program: a kernel and the values that its arguments stand for.
struct PlannedLaunch {
  FusionKernel fusion_kernel;
  std::vector<FusionKernel> others;  // the rest of a batch: the same code with other arguments
  std::string label;
  std::vector<std::string> nodes;
  bool concurrent = false;  // with the launch in front of it
};

// One program of a bundle. The objects behind the pointers must outlive the call.
struct BundleProgram {
  const ecg::Graph* graph = nullptr;
  const ValueLayouts* layouts = nullptr;
  const std::vector<PlannedLaunch>* launches = nullptr;
  const std::map<ecg::ValueId, Inside>* inside = nullptr;  // values that lie in another's memory
  std::vector<KernelTexts::Place> places;                  // parallel to `launches`
  std::map<std::string, int64_t> dims;                     // only for a specialisation
  std::vector<std::vector<std::string>> input_symbols;     // only for a specialisation; parallel to the graph's inputs
  std::vector<onnx_import::InputExtent> input_extents;     // only for a padded program
  const LoopPlan* loops = nullptr;                         // null: none
};

struct LaidOut {
  ManifestProgram program;                        // without the offsets of constants, which are not known yet
  std::vector<std::pair<int, size_t>> constants;  // buffer, index into Weights::list
  bool has_extents = false;
};

// Lays out the program's memory and adds its constants to `weights`. INTERNAL where a constant output has extents.
absl::StatusOr<LaidOut> LayOut(const KernelTexts& texts, const BundleProgram& source, Weights* weights);

// The kernel's buffers that are arguments, in the order of its arguments.
std::vector<const movement::Buffer*> ArgBuffers(const FusionKernel& fusion_kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_PROGRAM_LAYOUT_H_
