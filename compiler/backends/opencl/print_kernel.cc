#include "compiler/backends/opencl/print_kernel.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/text/print_task.h"
#include "compiler/backends/text/work_groups.h"
#include "compiler/movement/in_place.h"

namespace fusion::opencl {
namespace {

// Two parameters each, and OpenCL promises room for 1024 bytes of them.
constexpr int kMostParameterBuffers = 64;

bool IsShared(const movement::Kernel& kernel, const movement::Phase& phase, int group) {
  return group > 1 && !text::TaskPerItem(kernel, phase, group);
}

// The tasks of a phase, in a function of its own or by groups that stay.
void PrintPhase(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device,
                text::CodeWriter* out) {
  if (phase.tasks() == 0) return;
  const int group = device.task_lanes;
  const bool per_item = text::TaskPerItem(kernel, phase, group);
  const bool shared = IsShared(kernel, phase, group);
  const char* const of = per_item ? "global" : "group";
  if (kernel.resident) {
    out->Open(absl::StrCat("for (i64 task = get_", of, "_id(0); task < ", phase.tasks(),
                           "; task += ", per_item ? "get_global_size(0)" : "get_num_groups(0)", ")"));
    if (shared) out->Line("BARRIER");  // the task before has read its scratch
  } else {
    out->Line(absl::StrCat("const i64 task = get_", of, "_id(0);"));
    if (per_item) out->Line(absl::StrCat("if (task >= ", phase.tasks(), ") return;"));
  }
  if (shared) out->Line("const int lid = get_local_id(0);");
  text::PrintTask(kernel, phase, {device.vector_bytes / 4, shared ? group : 1}, out);
  if (kernel.resident) out->Close();
}

// The phases of one function.
using Phases = absl::Span<const movement::Phase>;

}  // namespace

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  const int group = device.task_lanes;
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  text::CodeWriter out;
  for (size_t p = 0; p < (kernel.resident ? 1 : kernel.phases.size()); ++p) {
    const Phases phases = kernel.resident ? Phases(kernel.phases) : Phases(kernel.phases).subspan(p, 1);
    std::set<int> written;
    for (const movement::Phase& phase : phases) written.merge(text::WrittenBuffers(phase));
    std::vector<std::string> parameters, buffers;
    const bool table = kernel.num_args() > kMostParameterBuffers;
    if (table) parameters = {"GLOBAL char* memory", "GLOBAL char* weights", "GLOBAL const i64* places"};
    int arg = 0;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.buffers[b];
      const std::string pointer = text::PointerType(buffer, written.count(static_cast<int>(b)) == 0);
      if (buffer.scope == movement::BufferScope::kBlock) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")(scratch + ", scratch[b], ");"));
        continue;
      }
      if (table) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")((places[", 2 * arg,
                                       "] ? weights : memory) + places[", 2 * arg + 1, "]);"));
        ++arg;
        continue;
      }
      const char* restrict = may_alias.count(static_cast<int>(b)) ? "" : " restrict";
      parameters.push_back(absl::StrCat(pointer, restrict, " m", b));
      parameters.push_back(absl::StrCat("i64 o", b));
      buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")((GLOBAL char*)m", b, " + o", b, ");"));
    }
    if (kernel.resident) parameters.push_back("GLOBAL int* meeting");
    out.Open(absl::StrCat("__kernel __attribute__((reqd_work_group_size(", group, ", 1, 1))) void ",
                          PhaseSymbol(symbol, static_cast<int>(p)), "(", absl::StrJoin(parameters, ", "), ")"));
    // Slack: vectors may read past the end of the last buffer.
    if (kernel.scratch_bytes > 0) {
      out.Line(absl::StrCat("__local char scratch[", kernel.scratch_bytes + 64, "] __attribute__((aligned(64)));"));
    }
    if (std::any_of(phases.begin(), phases.end(),
                    [&](const movement::Phase& phase) { return IsShared(kernel, phase, group); })) {
      out.Line(absl::StrCat("__local long partials[", group, "];"));
    }
    for (const std::string& line : buffers) out.Line(line);
    for (const movement::Phase& phase : phases) {
      if (&phase != phases.data()) out.Line("SYNC_DEVICE");
      PrintPhase(kernel, phase, device, &out);
    }
    out.Close();
  }
  return out.text();
}

}  // namespace fusion::opencl
