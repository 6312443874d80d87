#include "compiler/pipeline/compile_program.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
#include "compiler/pipeline/programs.h"
#include "compiler/pipeline/sum_accounts.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion {
namespace {

// One program of the bundle.
struct Specialised {
  std::map<std::string, int64_t> dims;
  CompileAccount account;
  Planned planned;
  accelerator::ModelOnMachine model;  // of the planned graph
  accelerator::BuiltProgram built;

  std::string Name() const { return DimsInWords(dims); }
};
using AllSpecialised = std::vector<std::unique_ptr<Specialised>>;

constexpr char kExactOnly[] = "the target has no inputs whose extents a run decides";

// Runs the passes over the graph, and takes its layers to the machine.
absl::Status MakeModel(const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                       ConstantPool* constants, StageClock* clock, Specialised* made) {
  CompileOptions bound = Bound(options, made->dims);
  bound.disabled_passes.insert("open-indices");  // tables of indices are loaded by gathers, as values that are known
  Compilation compilation{files, bound, context, nullptr, clock, &made->account, &made->planned, constants};
  RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kGraph, &compilation));
  made->account.nodes_rewritten = static_cast<int64_t>(made->planned.graph.nodes().size());
  if (!made->planned.input_extents.empty()) {
    return absl::UnimplementedError(absl::StrCat(context.device->kind, ": ", kExactOnly));
  }
  RETURN_IF_ERROR(clock->Begin("plan", "programs of the whole model"));
  ASSIGN_OR_RETURN(const dsa::Machine machine, dsa::StoredMachine(context.device->isa));
  ASSIGN_OR_RETURN(made->model, accelerator::PlaceModel(made->planned.graph, machine,
                                                        options.precision == "fp16" ? DType::kF16 : DType::kF32));
  return absl::OkStatus();
}

// Makes a program of each specialisation. `make(one)` goes on behind MakeModel, and accounts for the program.
template <typename Make>
absl::StatusOr<AllSpecialised> MakeAll(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const Make& make) {
  RETURN_IF_ERROR(CheckOptions(options, context));
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  const bool several = dims.size() > 1;
  AllSpecialised all;
  ConstantPool constants;
  std::vector<NamedGraph> graphs;
  for (const std::map<std::string, int64_t>& one : dims) {
    Specialised* const made = all.emplace_back(std::make_unique<Specialised>()).get();
    made->dims = one;
    StageClock clock(context, &made->account, several ? made->Name() : "");
    absl::Status status = MakeModel(files, options, context, several ? &constants : nullptr, &clock, made);
    if (status.ok()) status = make(made);
    RETURN_IF_ERROR(several ? Annotate(status, made->Name()) : status);
    clock.End();
    if (several) made->account.exact_only = kExactOnly;
    graphs.push_back({made->Name(), &made->planned.graph});
  }
  if (several) RETURN_IF_ERROR(CheckDistinct(graphs));
  return all;
}

CompileAccount SumOf(const AllSpecialised& all) {
  std::vector<std::string> names;
  std::vector<CompileAccount> accounts;
  for (const auto& one : all) {
    names.push_back(one->Name());
    accounts.push_back(one->account);
  }
  return SumAccounts(names, accounts);
}

// The facts of all programs; one that is equal for all is said once.
std::map<std::string, std::string> FactsOf(const AllSpecialised& all) {
  std::map<std::string, std::string> facts = accelerator::FactsOf(all[0]->model, all[0]->built.program);
  for (auto& [name, words] : facts) {
    std::vector<std::string> each;
    bool equal = true;
    for (const auto& one : all) {
      const std::string own = accelerator::FactsOf(one->model, one->built.program).at(name);
      equal = equal && own == words;
      each.push_back(absl::StrCat(one->Name(), ": ", own));
    }
    if (!equal) words = absl::StrJoin(each, "; ");
  }
  return facts;
}

}  // namespace

bool RunsWholePrograms(const CompileContext& context) {
  const Backend* backend = FindBackend(context.device->kind);
  return backend != nullptr && backend->RunsWholePrograms();
}

absl::StatusOr<CompileAccount> CompileProgram(const ModelFiles& files, const CompileOptions& options,
                                              const CompileContext& context, const std::string& bundle_path) {
  const std::vector<std::string> variants = accelerator::VariantsFor(options.planner);
  ASSIGN_OR_RETURN(const AllSpecialised all, MakeAll(files, options, context, [&](Specialised* made) -> absl::Status {
                     ASSIGN_OR_RETURN(made->built,
                                      accelerator::ChooseProgram(made->model, variants, context, &made->account));
                     accelerator::AccountForProgram(made->model, made->built.program, &made->account);
                     return absl::OkStatus();
                   }));
  CompileAccount account = SumOf(all);
  StageClock clock(context, &account);
  RETURN_IF_ERROR(clock.Begin("write", "weights"));
  Manifest head = BundleHead(files, options, *context.device);
  for (const auto& [name, words] : FactsOf(all)) head.options[name] = words;
  std::vector<accelerator::ProgramInBundle> programs;
  for (const auto& one : all) {
    accelerator::ProgramInBundle& program = programs.emplace_back();
    program.model = &one->model;
    program.built = &one->built;
    program.dims = one->dims;
    if (all.size() > 1) program.input_symbols = one->planned.input_symbols;
  }
  RETURN_IF_ERROR(accelerator::WriteProgramBundle(programs, head, bundle_path, &account));
  clock.End();
  return account;
}

absl::StatusOr<CompileAccount> PlanProgram(const ModelFiles& files, const CompileOptions& options,
                                           const CompileContext& context, std::string* text) {
  const std::string variant = accelerator::VariantsFor(options.planner)[0];
  ASSIGN_OR_RETURN(const AllSpecialised all, MakeAll(files, options, context, [&](Specialised* made) -> absl::Status {
                     ASSIGN_OR_RETURN(made->built.program, accelerator::MakeWholeProgram(made->model, variant));
                     accelerator::AccountForProgram(made->model, made->built.program, &made->account);
                     return absl::OkStatus();
                   }));
  text->clear();
  for (const auto& one : all) {
    if (all.size() > 1) absl::StrAppend(text, text->empty() ? "" : "\n", "with ", one->Name(), ":\n");
    *text += accelerator::PlanInWords(one->model, one->built.program);
  }
  return SumOf(all);
}

}  // namespace fusion
