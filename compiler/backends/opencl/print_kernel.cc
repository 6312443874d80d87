#include "compiler/backends/opencl/print_kernel.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/text/narrow_floats.h"
#include "compiler/backends/text/print_task.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/work_groups.h"
#include "runtime/base/check.h"

namespace fusion::opencl {
namespace {

// A buffer takes two parameters, and OpenCL guarantees room for 1024 bytes of them.
constexpr int kMostParameterBuffers = 64;
// Tickets of a phase for each work-group. They are few, because each costs atomic operations, but enough that a
// work-group that is held up delays the others little.
constexpr int kTicketsPerGroup = 4;

bool IsShared(const movement::Kernel& kernel, const movement::Phase& phase, int work_group_size) {
  return work_group_size > 1 && !movement::TaskPerItem(kernel, phase, work_group_size);
}

// Prints one task, whose number is the variable `task`.
void PrintTask(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device,
               text::CodeWriter* out) {
  const bool shared = IsShared(kernel, phase, device.work_group_size);
  if (shared) out->Line("const int lid = WORK_ITEM;");
  text::PrintTask(kernel, phase, {device.vector_bytes / 4, shared ? device.work_group_size : 1}, out);
}

// Prints the tasks of a phase, in a function of its own.
void PrintPhase(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device,
                text::CodeWriter* out) {
  if (phase.tasks() == 0) return;
  const bool per_item = movement::TaskPerItem(kernel, phase, device.work_group_size);
  out->Line(absl::StrCat("const i64 task = get_", per_item ? "global" : "group", "_id(0);"));
  if (per_item) out->Line(absl::StrCat("if (task >= ", phase.tasks(), ") return;"));
  PrintTask(kernel, phase, device, out);
}

// The phases of one function.
using Phases = absl::Span<const movement::Phase>;

// Prints phases that run beside each other: each has a range of the launch's work-groups. A group runs the body of one
// of the loops, once. PoCL 3.1 makes wrong code of barriers in the branches of an if: kernels crash. So the ranges are
// loops that begin with a barrier, without which it summed wrongly in them, and their step is unknown when the text is
// compiled, since a compiler makes an if of a loop that obviously runs once.
void PrintBeside(const movement::Kernel& kernel, Phases phases, const DeviceModel& device, text::CodeWriter* out) {
  int64_t first = 0;  // of the phase's work-groups
  for (const movement::Phase& phase : phases) {
    const int64_t groups = movement::WorkGroups(kernel, phase, device.work_group_size);
    if (groups == 0) continue;
    out->Open(absl::StrCat("for (i64 of_range = (i64)get_group_id(0) - ", first, "; of_range >= 0 && of_range < ",
                           groups, "; of_range += get_num_groups(0))"));
    const bool per_item = movement::TaskPerItem(kernel, phase, device.work_group_size);
    out->Line(absl::StrCat("const i64 task = of_range",
                           per_item ? absl::StrCat(" * ", device.work_group_size, " + get_local_id(0);") : ";"));
    if (IsShared(kernel, phase, device.work_group_size)) out->Line("BARRIER");
    if (per_item) out->Open(absl::StrCat("if (task < ", phase.tasks(), ")"));
    PrintTask(kernel, phase, device, out);
    if (per_item) out->Close();
    out->Close();
    first += groups;
  }
}

// The tickets of a phase, each for a run of its tasks.
struct Tickets {
  int64_t count = 0;
  int64_t tasks = 1;  // of each but the last
};
Tickets TicketsOf(const movement::Phase& phase, const DeviceModel& device) {
  const int64_t most = int64_t{kTicketsPerGroup} * device.persistent_groups;
  const int64_t tasks = std::max<int64_t>(1, (phase.tasks() + most - 1) / most);
  return {(phase.tasks() + tasks - 1) / tasks, tasks};
}

// Prints all phases in one function (a persistent kernel), for work-groups of one work-item. Work is handed out as
// tickets, each a run of a phase's tasks: a work-group takes tickets while the phase has any, waits until the tickets
// that others took are done, and goes on to the next phase. So a work-group that waits holds no ticket, and waits only
// for work-groups that run: one that has not begun, or is held up between tickets, delays nobody. Tickets are numbered
// through all iterations of a loop over phases.
void PrintPersistent(const movement::Kernel& kernel, const DeviceModel& device, text::CodeWriter* out) {
  FUSION_CHECK(device.work_group_size == 1, "a persistent kernel's work-groups have one work-item each");
  int64_t tickets = 0;  // tickets of all phases so far
  size_t p = 0;
  const auto print_phase = [&](const std::string& first, bool waits, int64_t taken) -> int64_t {
    const movement::Phase& phase = kernel.phases[p];
    const auto [own, each] = TicketsOf(phase, device);
    if (own == 0) return 0;
    // `first` tickets come before the loop's iteration, `taken` more before this phase.
    const auto after = [&](int64_t count) {
      return first.empty() ? absl::StrCat(count) : absl::StrCat(first, " + ", count);
    };
    if (waits) out->Line(absl::StrCat("AWAIT_TICKETS(", after(taken), ")"));
    const std::string end = after(taken + own);
    out->Open(absl::StrCat("for (int ticket; (ticket = next_ticket(tickets, ", end, ")) < ", end, ";)"));
    out->Open(absl::StrCat("for (i64 task = (ticket - ",
                           first.empty() ? after(taken) : absl::StrCat("(", after(taken), ")"), ") * ", each,
                           "L, end = min(task + ", each, "L, ", phase.tasks(), "L); task < end; ++task)"));
    PrintTask(kernel, phase, device, out);
    out->Close();
    out->Line("TICKET_DONE");
    out->Close();
    return own;
  };
  while (p < kernel.phases.size()) {
    const movement::PhaseLoop* const loop = movement::PhaseLoopAt(kernel, p);
    if (loop == nullptr) {
      tickets += print_phase("", tickets > 0, tickets);
      ++p;
      continue;
    }
    int64_t in_iteration = 0;
    for (size_t q = loop->first; q < loop->end; ++q) in_iteration += TicketsOf(kernel.phases[q], device).count;
    out->Open(absl::StrCat("for (int iteration = 0; iteration < ", loop->trips, "; ++iteration)"));
    out->Line(absl::StrCat("const int before = ", tickets, " + iteration * ", in_iteration, ";"));
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      if (kernel.buffers[b].moves_with != loop - kernel.phase_loops.data()) continue;
      const std::string pointer = text::PointerType(kernel.buffers[b], /*read_only=*/false);
      out->Line(
          absl::StrCat(pointer, " const b", b, " = (", pointer, ")((GLOBAL char*)m", b, " + o", b, "[iteration]);"));
    }
    out->Line("if (before > 0) { AWAIT_TICKETS(before) }");
    int64_t taken = 0;
    for (; p < loop->end; ++p) taken += print_phase("before", taken > 0, taken);
    out->Close();
    tickets += loop->trips * in_iteration;
  }
  out->Line(absl::StrCat("LEAVE_TICKETS(", tickets, ")"));
}

}  // namespace

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  const int work_group_size = device.work_group_size;
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  text::CodeWriter out;
  int function = -1;
  for (const movement::PhaseRange& launch : movement::LaunchesOf(kernel)) {
    ++function;
    const Phases phases = Phases(kernel.phases).subspan(launch.first, launch.end - launch.first);
    std::set<int> written;
    for (const movement::Phase& phase : phases) written.merge(movement::WrittenBuffers(phase));
    std::vector<std::string> parameters, buffers;
    const bool table = kernel.num_args() > kMostParameterBuffers, loops = !kernel.phase_loops.empty();
    FUSION_CHECK(!table || !loops, "a kernel with loops takes its buffers as parameters");
    if (table) parameters = {"GLOBAL char* memory", "GLOBAL char* weights", "GLOBAL const i64* places"};
    int arg = 0;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.buffers[b];
      if (buffer.scope == Scope::kWarp) continue;  // declared where a row begins
      const bool is_written = written.count(static_cast<int>(b)) > 0;
      const std::string pointer = text::PointerType(buffer, !is_written);
      if (buffer.scope == Scope::kBlock) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")(scratch + ", scratch[b], ");"));
        continue;
      }
      if (table) {
        buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")((places[", 2 * arg,
                                       "] ? weights : memory) + places[", 2 * arg + 1, "]);"));
        ++arg;
        continue;
      }
      // Other work-groups may write to this buffer meanwhile, so its pointer is not `restrict`: otherwise the compiler
      // could move loads before the wait.
      const bool shared = may_alias.count(static_cast<int>(b)) > 0 ||
                          (kernel.persistent && (is_written || (loops && !buffer.is_constant)));
      const char* restrict = shared ? "" : " restrict";
      if (buffer.moves_with >= 0) {  // declared in its loop
        parameters.push_back(absl::StrCat(text::PointerType(buffer, /*read_only=*/false), " m", b));
        parameters.push_back(absl::StrCat("GLOBAL const i64* o", b));
        continue;
      }
      parameters.push_back(absl::StrCat(pointer, restrict, " m", b));
      parameters.push_back(absl::StrCat("i64 o", b));
      buffers.push_back(absl::StrCat(pointer, " const b", b, " = (", pointer, ")((GLOBAL char*)m", b, " + o", b, ");"));
    }
    if (kernel.persistent) parameters.push_back("GLOBAL int* tickets");
    out.Open(absl::StrCat("__kernel __attribute__((reqd_work_group_size(", work_group_size, ", 1, 1))) void ",
                          PhaseSymbol(symbol, function), "(", absl::StrJoin(parameters, ", "), ")"));
    // The slack lets vectors read past the end of the last buffer.
    if (kernel.scratch_bytes > 0) {
      out.Line(absl::StrCat("__local char scratch[", kernel.scratch_bytes + 64, "] __attribute__((aligned(64)));"));
    }
    if (std::any_of(phases.begin(), phases.end(),
                    [&](const movement::Phase& phase) { return IsShared(kernel, phase, work_group_size); })) {
      out.Line(absl::StrCat("__local long partials[", work_group_size, "];"));
    }
    for (const std::string& line : buffers) out.Line(line);
    if (kernel.persistent) {
      PrintPersistent(kernel, device, &out);
    } else if (phases.size() > 1) {
      PrintBeside(kernel, phases, device, &out);
    } else {
      PrintPhase(kernel, phases[0], device, &out);
    }
    out.Close();
  }
  return text::WithNarrowFloats(out.text());
}

}  // namespace fusion::opencl
