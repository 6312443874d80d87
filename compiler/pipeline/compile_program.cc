#include "compiler/pipeline/compile_program.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/accelerator/choose_program.h"
#include "compiler/accelerator/program_account.h"
#include "compiler/accelerator/program_bundle.h"
#include "compiler/accelerator/whole_program.h"
#include "compiler/api/specialisations.h"
#include "compiler/backends/backend.h"
#include "compiler/pipeline/bundle_parts.h"
#include "compiler/pipeline/check_options.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/passes.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion {
namespace {

// Runs the passes over the graph.
absl::Status MakeGraph(const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                       StageClock* clock, CompileAccount* account, Planned* planned) {
  RETURN_IF_ERROR(CheckOptions(options, context));
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  if (dims.size() > 1) {
    return absl::UnimplementedError(absl::StrCat("target ", context.device->kind, " builds one program, not ",
                                                 dims.size(), ": bind each --dim to one extent"));
  }
  CompileOptions bound = options;
  bound.specialised_dims.clear();
  bound.dims.insert(dims[0].begin(), dims[0].end());
  bound.disabled_passes.insert("open-indices");  // tables of indices are loaded by gathers, as values that are known
  Compilation compilation{files, bound, context, nullptr, clock, account, planned};
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kGraph, &compilation));
  account->nodes_rewritten = static_cast<int64_t>(planned->graph.nodes().size());
  if (planned->input_extents.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("target ", context.device->kind, " has no inputs whose extents a run decides"));
}

absl::StatusOr<accelerator::ModelOnMachine> Place(const Planned& planned, const CompileOptions& options,
                                                  const CompileContext& context) {
  ASSIGN_OR_RETURN(const dsa::Machine machine, dsa::StoredMachine(context.device->isa));
  return accelerator::PlaceModel(planned.graph, machine, options.precision == "fp16" ? DType::kF16 : DType::kF32);
}

}  // namespace

bool RunsWholePrograms(const CompileContext& context) {
  const Backend* backend = FindBackend(context.device->kind);
  return backend != nullptr && backend->RunsWholePrograms();
}

absl::StatusOr<CompileAccount> CompileProgram(const ModelFiles& files, const CompileOptions& options,
                                              const CompileContext& context, const std::string& bundle_path) {
  CompileAccount account;
  StageClock clock(context, &account);
  Planned planned;
  RETURN_IF_ERROR(MakeGraph(files, options, context, &clock, &account, &planned));
  RETURN_IF_ERROR(clock.Begin("plan", "programs of the whole model"));
  ASSIGN_OR_RETURN(const accelerator::ModelOnMachine model, Place(planned, options, context));
  ASSIGN_OR_RETURN(const accelerator::BuiltProgram built,
                   accelerator::ChooseProgram(model, accelerator::VariantsFor(options.planner), context, &account));
  accelerator::AccountForProgram(model, built.program, &account);
  RETURN_IF_ERROR(clock.Begin("write", "weights"));
  Manifest head = BundleHead(files, options, *context.device);
  for (const auto& [name, words] : accelerator::FactsOf(model, built.program)) head.options[name] = words;
  RETURN_IF_ERROR(accelerator::WriteProgramBundle(model, built, head, bundle_path, &account));
  clock.End();
  return account;
}

absl::StatusOr<CompileAccount> PlanProgram(const ModelFiles& files, const CompileOptions& options,
                                           const CompileContext& context, std::string* text) {
  CompileAccount account;
  StageClock clock(context, &account);
  Planned planned;
  RETURN_IF_ERROR(MakeGraph(files, options, context, &clock, &account, &planned));
  RETURN_IF_ERROR(clock.Begin("plan", "a program of the whole model"));
  ASSIGN_OR_RETURN(const accelerator::ModelOnMachine model, Place(planned, options, context));
  ASSIGN_OR_RETURN(const accelerator::WholeProgram program,
                   accelerator::MakeWholeProgram(model, accelerator::VariantsFor(options.planner)[0]));
  accelerator::AccountForProgram(model, program, &account);
  clock.End();
  *text = accelerator::PlanInWords(model, program);
  return account;
}

}  // namespace fusion
