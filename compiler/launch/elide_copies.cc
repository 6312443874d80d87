#include "compiler/launch/elide_copies.h"

#include <algorithm>
#include <optional>

#include "compiler/movement/copy_runs.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

using movement::CopyRun;
using Values = std::map<ecg::ValueId, Inside>;

// Does the value lie in the arena, between kernels?
bool IsIntermediate(const ecg::Graph& graph, ecg::ValueId v) {
  const ecg::Value& value = graph.value(v);
  return value.producer != ecg::kNone && !value.constant && !graph.IsOutput(v);
}

// Returns the value that each buffer of the kernel stands for; nullopt if a buffer stands for something else.
std::optional<std::vector<ecg::ValueId>> ValuesOf(const FusionKernel& fusion_kernel) {
  std::vector<ecg::ValueId> values;
  size_t arg = 0;
  for (const movement::Buffer& buffer : fusion_kernel.kernel.buffers) {
    if (!movement::IsArgument(buffer)) return std::nullopt;
    const KernelArg& one = fusion_kernel.args[arg++];
    if (one.kind != KernelArg::Kind::kValue) return std::nullopt;
    values.push_back(one.value);
  }
  return values;
}

class Elider {
 public:
  Elider(const ecg::Graph& graph, const Values& known, const LoopValues& of_loops)
      : graph_(graph), known_(known), of_loops_(of_loops) {}

  // Places each source wholly in one result that holds nothing else, or each result wholly in a source.
  std::optional<Values> Elide(const FusionKernel& fusion_kernel) {
    const std::optional<std::vector<CopyRun>> runs = movement::CopyRunsOf(fusion_kernel.kernel);
    const std::optional<std::vector<ecg::ValueId>> values = ValuesOf(fusion_kernel);
    if (!runs || !values || runs->empty()) return std::nullopt;
    std::optional<Values> joined = Place(fusion_kernel, *values, *runs, /*sources=*/true);
    return joined ? joined : Place(fusion_kernel, *values, *runs, /*sources=*/false);
  }

 private:
  std::optional<Values> Place(const FusionKernel& fusion_kernel, const std::vector<ecg::ValueId>& values,
                              const std::vector<CopyRun>& runs, bool sources) {
    Values placed;
    int64_t elements = 0;
    for (const CopyRun& run : runs) {
      const int part = sources ? run.source : run.target, whole = sources ? run.target : run.source;
      if (sources && whole != runs[0].target) return std::nullopt;
      elements += run.elements;
      const movement::Buffer& buffer = fusion_kernel.kernel.buffers[part];
      if ((sources ? run.from : run.to) != 0 || run.elements != buffer.elements) return std::nullopt;
      const int64_t offset = (sources ? run.to : run.from) * DTypeBytes(buffer.dtype);
      const ecg::ValueId v = values[part], w = values[whole];
      if (offset % kBufferAlignBytes != 0 || !IsIntermediate(graph_, v) || !IsIntermediate(graph_, w)) {
        return std::nullopt;
      }
      if (of_loops_.placed.count(v) > 0 || of_loops_.written.count(w) > 0) return std::nullopt;
      if (known_.count(v) > 0 || !placed.emplace(v, Inside{w, offset}).second) return std::nullopt;
    }
    if (sources && elements != fusion_kernel.kernel.buffers[runs[0].target].elements) return std::nullopt;
    return placed;
  }

  const ecg::Graph& graph_;
  const Values& known_;
  const LoopValues& of_loops_;
};

}  // namespace

ElidedCopies ElideCopies(const ecg::Graph& graph, const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                         const LoopValues& of_loops) {
  ElidedCopies elided;
  for (size_t b = 0; b < kernels.size(); ++b) {
    std::optional<Values> placed = Elider(graph, elided.values, of_loops).Elide(*kernels[b]);
    if (!placed) continue;
    elided.fusion_blocks.insert(b);
    elided.values.merge(*placed);
  }
  return elided;
}

}  // namespace fusion
