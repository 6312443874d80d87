#include "compiler/backends/cuda/print_kernel.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/text/narrow_floats.h"
#include "compiler/backends/text/print_task.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/work_groups.h"

namespace fusion::cuda {
namespace {

bool IsShared(const movement::Kernel& kernel, const movement::Phase& phase, int work_group_size) {
  return work_group_size > 1 && !movement::TaskPerItem(kernel, phase, work_group_size);
}

// Prints one task, whose number is the variable `task`.
void PrintOneTask(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device,
                  text::CodeWriter* out) {
  const int work_group_size = movement::WorkItems(kernel, device.work_group_size);
  const bool shared = IsShared(kernel, phase, work_group_size);
  if (shared) out->Line("const int lid = threadIdx.x;");
  text::PrintTask(kernel, phase, {device.vector_bytes / 4, shared ? work_group_size : 1}, out);
}

// Prints the tasks of a phase, in a function of its own or for the thread blocks of a persistent kernel.
void PrintPhase(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device,
                text::CodeWriter* out) {
  if (phase.tasks() == 0) return;
  const int work_group_size = movement::WorkItems(kernel, device.work_group_size);
  const bool per_item = movement::TaskPerItem(kernel, phase, work_group_size);
  const std::string first =
      per_item ? absl::StrCat("blockIdx.x * (ix)", work_group_size, " + threadIdx.x") : "blockIdx.x";
  if (kernel.persistent) {
    out->Open(absl::StrCat("for (ix task = ", first, "; task < ", phase.tasks(), "; task += ",
                           per_item ? absl::StrCat("gridDim.x * (ix)", work_group_size) : "gridDim.x", ")"));
    if (IsShared(kernel, phase, work_group_size)) out->Line("BARRIER");  // the task before may still read this scratch
  } else {
    out->Line(absl::StrCat("const ix task = ", first, ";"));
    if (per_item) out->Line(absl::StrCat("if (task >= ", phase.tasks(), ") return;"));
  }
  PrintOneTask(kernel, phase, device, out);
  if (kernel.persistent) out->Close();
}

// The phases of one function.
using Phases = absl::Span<const movement::Phase>;

// Prints phases that run beside each other: each has a range of the launch's thread blocks. All threads of a block take
// the same branch, so that a branch may hold barriers.
void PrintBeside(const movement::Kernel& kernel, Phases phases, const DeviceModel& device, text::CodeWriter* out) {
  const int work_group_size = movement::WorkItems(kernel, device.work_group_size);
  int64_t first = 0;  // of the phase's thread blocks
  for (const movement::Phase& phase : phases) {
    const int64_t end = first + movement::WorkGroups(kernel, phase, work_group_size);
    if (end == first) continue;
    out->Open(absl::StrCat(first > 0 ? "else " : "", "if (blockIdx.x < ", end, ")"));
    const bool per_item = movement::TaskPerItem(kernel, phase, work_group_size);
    const std::string block = first > 0 ? absl::StrCat("(blockIdx.x - ", first, ")") : "blockIdx.x";
    out->Line(absl::StrCat("const ix task = ", block,
                           per_item ? absl::StrCat(" * (ix)", work_group_size, " + threadIdx.x;") : ";"));
    if (per_item) out->Open(absl::StrCat("if (task < ", phase.tasks(), ")"));
    PrintOneTask(kernel, phase, device, out);
    if (per_item) out->Close();
    out->Close();
    first = end;
  }
}

// Declares buffer b, which lies at `place`.
std::string Declaration(const std::string& pointer, size_t b, const std::string& place) {
  return absl::StrCat(pointer, " const b", b, " = (", pointer, ")ALIGNED(", place, ");");
}

// Prints the phases of a persistent kernel and its loops over phases, with barriers between them.
void PrintTogether(const movement::Kernel& kernel, const DeviceModel& device, text::CodeWriter* out) {
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const movement::Phase& phase = kernel.phases[p];
    if (p > 0 && !phase.beside) out->Line("SYNC_DEVICE");
    if (const movement::PhaseLoop* loop = movement::PhaseLoopAt(kernel, p); loop != nullptr) {
      out->Open(absl::StrCat("for (int iteration = 0; iteration < ", loop->trips, "; ++iteration)"));
      out->Line("if (iteration > 0) SYNC_DEVICE");
      for (size_t b = 0; b < kernel.buffers.size(); ++b) {
        if (kernel.buffers[b].moves_with != loop - kernel.phase_loops.data()) continue;
        const std::string pointer = text::PointerType(kernel.buffers[b], /*read_only=*/false);
        out->Line(Declaration(pointer, b, absl::StrCat("m", b, "[iteration]")));
      }
    }
    PrintPhase(kernel, phase, device, out);
    for (const movement::PhaseLoop& loop : kernel.phase_loops) {
      if (loop.end == p + 1) out->Close();
    }
  }
}

}  // namespace

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  const int work_group_size = movement::WorkItems(kernel, device.work_group_size);
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  text::CodeWriter out;
  int function = -1;
  for (const movement::PhaseRange& launch : movement::LaunchesOf(kernel)) {
    ++function;
    if (movement::LibraryCallOf(kernel.phases[launch.first]) != nullptr) continue;
    const Phases phases = Phases(kernel.phases).subspan(launch.first, launch.end - launch.first);
    std::set<int> written;
    for (const movement::Phase& phase : phases) written.merge(movement::WrittenBuffers(phase));
    std::vector<std::string> parameters, buffers;
    const bool loops = !kernel.phase_loops.empty();
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.buffers[b];
      if (buffer.scope == Scope::kWarp) continue;  // declared where a row begins
      const bool is_written = written.count(static_cast<int>(b)) > 0;
      const std::string pointer = text::PointerType(buffer, !is_written);
      if (buffer.scope == Scope::kBlock) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")(scratch + ", scratch[b], ");"));
        continue;
      }
      // Other thread blocks may write to this buffer meanwhile, so its pointer is not __restrict__: otherwise the
      // compiler would move loads across the grid barrier.
      // Where phases repeat, values that lie apart in one iteration lie together in others.
      const bool shared = may_alias.count(static_cast<int>(b)) > 0 ||
                          (kernel.persistent && (is_written || (loops && !buffer.is_constant)));
      if (buffer.moves_with >= 0) {
        parameters.push_back(absl::StrCat(text::PointerType(buffer, /*read_only=*/false), " const* __restrict__ m", b));
        continue;  // declared in its loop
      }
      parameters.push_back(absl::StrCat(pointer, shared ? " m" : " __restrict__ m", b));
      buffers.push_back(Declaration(pointer, b, absl::StrCat("m", b)));
    }
    if (kernel.persistent) parameters.push_back("u32* grid_barrier");
    // One thread block on a multiprocessor is enough: without this number ptxas spills to make room for more.
    out.Open(absl::StrCat("extern \"C\" __global__ void __launch_bounds__(", work_group_size, ", 1) ",
                          PhaseSymbol(symbol, function), "(", absl::StrJoin(parameters, ", "), ")"));
    // The slack lets vectors read past the end of the last buffer.
    if (kernel.scratch_bytes > 0) {
      out.Line(absl::StrCat("__shared__ __align__(64) char scratch[", kernel.scratch_bytes + 64, "];"));
    }
    if (std::any_of(phases.begin(), phases.end(),
                    [&](const movement::Phase& phase) { return IsShared(kernel, phase, work_group_size); })) {
      out.Line(absl::StrCat("__shared__ i64 partials[", work_group_size, "];"));
    }
    for (const std::string& line : buffers) out.Line(line);
    if (std::any_of(phases.begin(), phases.end(),
                    [&](const movement::Phase& phase) { return text::NeedsWideIndices(phase, work_group_size); })) {
      out.Line("typedef i64 ix;");
    }
    if (kernel.persistent) {
      PrintTogether(kernel, device, &out);
    } else if (phases.size() > 1) {
      PrintBeside(kernel, phases, device, &out);
    } else {
      PrintPhase(kernel, phases[0], device, &out);
    }
    out.Close();
  }
  return text::WithNarrowFloats(out.text());
}

}  // namespace fusion::cuda
