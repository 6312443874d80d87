#include "compiler/backends/cuda/print_kernel.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/text/print_task.h"
#include "compiler/backends/text/work_groups.h"
#include "compiler/movement/in_place.h"

namespace fusion::cuda {

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  const int group = device.task_lanes;
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  text::CodeWriter out;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const movement::Phase& phase = kernel.phases[p];
    const std::set<int> written = text::WrittenBuffers(phase);
    std::vector<std::string> parameters, buffers;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.buffers[b];
      const std::string pointer = text::PointerType(buffer, written.count(static_cast<int>(b)) == 0);
      if (buffer.scope == movement::BufferScope::kBlock) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")(scratch + ", scratch[b], ");"));
        continue;
      }
      parameters.push_back(absl::StrCat(pointer, may_alias.count(static_cast<int>(b)) ? " m" : " __restrict__ m", b));
      buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")ALIGNED(m", b, ");"));
    }
    // One block of a multiprocessor is enough: asked for no number, ptxas spills to make room for more.
    out.Open(absl::StrCat("extern \"C\" __global__ void __launch_bounds__(", group, ", 1) ",
                          PhaseSymbol(symbol, static_cast<int>(p)), "(", absl::StrJoin(parameters, ", "), ")"));
    // Slack: vectors may read past the end of the last buffer.
    if (kernel.scratch_bytes > 0) {
      out.Line(absl::StrCat("__shared__ __align__(64) char scratch[", kernel.scratch_bytes + 64, "];"));
    }
    const bool per_item = text::TaskPerItem(kernel, phase, group);
    const bool shared = group > 1 && !per_item;
    if (shared) out.Line(absl::StrCat("__shared__ i64 partials[", group, "];"));
    for (const std::string& line : buffers) out.Line(line);
    if (phase.tasks() > 0) {
      if (text::NeedsWideIndices(phase, group)) out.Line("typedef i64 ix;");
      out.Line(per_item ? absl::StrCat("const ix task = blockIdx.x * (ix)", group, " + threadIdx.x;")
                        : "const ix task = blockIdx.x;");
      if (per_item) out.Line(absl::StrCat("if (task >= ", phase.tasks(), ") return;"));
      if (shared) out.Line("const int lid = threadIdx.x;");
      text::PrintTask(kernel, phase, {device.vector_bytes / 4, shared ? group : 1}, &out);
    }
    out.Close();
  }
  return out.text();
}

}  // namespace fusion::cuda
