#include "compiler/backends/cpu/print_kernel.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/text/narrow_floats.h"
#include "compiler/backends/text/print_task.h"
#include "compiler/cost/byte_dots.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/work_groups.h"
#include "compiler/te/routines/routine.h"

namespace fusion::cpu {
namespace {

using text::CodeWriter;
using text::StorageType;

void PrintRoutine(const movement::Step& step, const movement::RoutineCall& call, CodeWriter* out) {
  std::vector<std::string> operands;
  for (int b : call.inputs) operands.push_back(absl::StrCat("(void*)b", b));
  for (const movement::Store& store : step.stores) operands.push_back(absl::StrCat("(void*)b", store.buffer));
  out->Line(absl::StrCat("void* const operands[] = {", absl::StrJoin(operands, ", "), "};"));
  out->Line(absl::StrCat("const i64 params[] = {", absl::StrJoin(call.params, ", "), "};"));
  out->Line(absl::StrCat(te::RoutineInstance(call.name, call.element), "(operands, scratch, begin, end, params);"));
}

// Names the buffers.
void PrintBuffers(const movement::Kernel& kernel, const std::vector<int64_t>& scratch, const std::set<int>& may_alias,
                  const std::set<int>& written, CodeWriter* out) {
  int arg = 0;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const movement::Buffer& buffer = kernel.buffers[b];
    if (buffer.scope == Scope::kWarp) continue;  // declared where a row begins
    const std::string type = absl::StrCat(written.count(static_cast<int>(b)) ? "" : "const ", StorageType(buffer.dtype),
                                          "*", may_alias.count(static_cast<int>(b)) ? "" : " __restrict");
    const std::string place = buffer.scope == Scope::kBlock ? absl::StrCat("((char*)scratch + ", scratch[b], ")")
                                                            : absl::StrCat("args[", arg++, "]");
    out->Line(absl::StrCat(type, " b", b, " = (", StorageType(buffer.dtype), "*)", place, "; (void)b", b, ";"));
  }
  out->Line("(void)args; (void)scratch;");
}

// A function for the steps of a task that hardly ever run: small, and apart from the others.
void PrintRareSteps(const movement::Kernel& kernel, const movement::Phase& phase, const std::string& name,
                    const text::TaskShape& shape, const std::function<void(CodeWriter*)>& print_buffers,
                    CodeWriter* out) {
  movement::Phase rare{.grid = phase.grid};
  for (const movement::Step& step : phase.steps) {
    if (movement::IsRare(step)) rare.steps.push_back(step);
  }
  out->Open(absl::StrCat("static __attribute__((cold, noinline, minsize)) void ", name,
                         "(void* const* args, void* scratch, i64 task)"));
  print_buffers(out);
  text::PrintTask(kernel, rare, shape, out);
  out->Close();
}

}  // namespace

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  // Scratch of one step may lie where another step's scratch was.
  const auto scratch_end = [&](size_t b) { return scratch[b] + movement::SizeBytes(kernel.buffers[b]); };
  for (size_t b = 0; b < scratch.size(); ++b) {
    for (size_t other = 0; scratch[b] >= 0 && other < b; ++other) {
      if (scratch[other] < 0 || scratch[other] >= scratch_end(b) || scratch[b] >= scratch_end(other)) continue;
      may_alias.insert({static_cast<int>(b), static_cast<int>(other)});
    }
  }
  CodeWriter out;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const movement::Phase& phase = kernel.phases[p];
    const std::set<int> written = movement::WrittenBuffers(phase);
    const auto print_buffers = [&](CodeWriter* to) { PrintBuffers(kernel, scratch, may_alias, written, to); };
    const std::string rare = absl::StrCat(PhaseSymbol(symbol, static_cast<int>(p)), "_rare");
    const bool has_rare = std::any_of(phase.steps.begin(), phase.steps.end(), movement::IsRare);
    text::TaskShape shape{.lanes = lanes, .parts = true, .byte_dots = HasByteDots(device)};
    if (has_rare) PrintRareSteps(kernel, phase, rare, shape, print_buffers, &out);
    out.Open(absl::StrCat("extern \"C\" __attribute__((visibility(\"default\"))) void ",
                          PhaseSymbol(symbol, static_cast<int>(p)),
                          "(void* const* args, void* scratch, i64 begin, i64 end)"));
    print_buffers(&out);
    if (phase.tasks() == 0) {  // an empty tensor
      out.Line("(void)begin; (void)end;");
      out.Close();
      continue;
    }
    const auto* routine = phase.steps.size() == 1 ? phase.steps[0].As<movement::RoutineCall>() : nullptr;
    if (routine != nullptr) {
      PrintRoutine(phase.steps[0], *routine, &out);
      out.Close();
      continue;
    }
    out.Open("for (i64 task = begin; task < end; ++task)");
    if (has_rare) shape.rare_steps = absl::StrCat(rare, "(args, scratch, task);");
    text::PrintTask(kernel, phase, shape, &out);
    out.Close();
    if (std::any_of(phase.steps.begin(), phase.steps.end(), movement::HasStreamingStores))
      out.Line("STORES_DONE");  // before other threads read these results
    out.Close();
  }
  return text::WithNarrowFloats(out.text());
}

}  // namespace fusion::cpu
