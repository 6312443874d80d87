#include "compiler/pipeline/compile.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/specialisations.h"
#include "compiler/bundle/emit.h"
#include "compiler/pipeline/built_resources.h"
#include "compiler/pipeline/bundle_parts.h"
#include "compiler/pipeline/bundle_passes.h"
#include "compiler/pipeline/compile_program.h"
#include "compiler/pipeline/join_launches.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/plan_account.h"
#include "compiler/pipeline/programs.h"
#include "compiler/pipeline/sum_accounts.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// For people: the fusion blocks, and where kernels and launches differ from them.
std::string PlanText(const Planned& planned) {
  std::vector<std::string> notes;
  for (const RealisedFusionBlock& realised : planned.realised) notes.push_back(InWords(realised));
  std::string text = PrintPlan(planned.graph, planned.plan, notes);
  for (size_t b : planned.elided.fusion_blocks) {
    absl::StrAppend(&text, "fusion block ", b, " has no kernel: what it would copy is written or read in place\n");
  }
  for (const LaunchLoop& loop : planned.loops.launches) {
    std::vector<size_t> fusion_blocks;
    for (size_t l = loop.first; l < loop.end; ++l) {
      fusion_blocks.insert(fusion_blocks.end(), planned.launches[l].begin(), planned.launches[l].end());
    }
    absl::StrAppend(&text, "repeated ", loop.trips, " times: fusion blocks ", absl::StrJoin(fusion_blocks, ", "), "\n");
  }
  for (size_t l = 0; l < planned.launches.size(); ++l) {
    const std::vector<size_t>& fusion_blocks = planned.launches[l];
    if (fusion_blocks.size() > 1)
      absl::StrAppend(&text, "one launch: fusion blocks ", absl::StrJoin(fusion_blocks, ", "), "\n");
    if (planned.concurrent.empty() || !planned.concurrent[l]) continue;
    absl::StrAppend(&text, "at the same time: fusion blocks ", absl::StrJoin(planned.launches[l - 1], ", "), " and ",
                    absl::StrJoin(fusion_blocks, ", "), "\n");
  }
  return text;
}

void AppendKernels(const PreparedPrograms& programs, std::vector<const FusionKernel*>* kernels) {
  for (const auto& program : programs) {
    for (const PlannedLaunch& launch : program->model.launches) kernels->push_back(&launch.fusion_kernel);
  }
}

CompileAccount SumAccounts(const PreparedPrograms& programs) {
  std::vector<std::string> names;
  std::vector<CompileAccount> accounts;
  for (const auto& program : programs) {
    names.push_back(program->Name());
    accounts.push_back(program->model.account);
  }
  return SumAccounts(names, accounts);
}

// `place` is the text of the first launch of the first program; the others follow.
absl::Status Write(const CompileJob& job, const PreparedPrograms& programs, const KernelTexts& texts,
                   const std::vector<std::string>& binaries, std::vector<KernelTexts::Place>::const_iterator place,
                   const DeviceModel& device, CompileAccount* account) {
  std::vector<BundleProgram> out;
  for (const auto& program : programs) {
    const Prepared& model = program->model;
    out.push_back(ProgramOf(model.planned, model.launches, model.planned.loops, place));
    place += static_cast<std::ptrdiff_t>(model.launches.size());
    if (programs.size() > 1) Specialise(program->dims, model.planned, &out.back());
  }
  return WriteBundle(out, texts, binaries, BundleHead(job.files, job.options, device), job.bundle_path, account);
}

// Adds what was built to the accounts of the programs, whose kernels' texts begin at `place`.
void NoteBuilt(const KernelTexts& texts, const std::vector<std::string>& binaries,
               std::vector<KernelTexts::Place>::const_iterator place, const DeviceModel& device,
               PreparedPrograms* programs) {
  for (const auto& program : *programs) {
    Prepared& model = program->model;
    AccountForBuilt(model.launches, texts, place, binaries, device, &model.account);
    place += static_cast<std::ptrdiff_t>(model.launches.size());
  }
}

absl::StatusOr<CompileAccount> BuildAlone(const CompileJob& job, PreparedPrograms* prepared,
                                          const CompileContext& context) {
  const PreparedPrograms& programs = *prepared;
  std::vector<const FusionKernel*> kernels;
  AppendKernels(programs, &kernels);
  const KernelTexts texts = PrintKernels(kernels, *context.device);
  CompileAccount account = SumAccounts(programs);
  account.kernels_distinct = texts.distinct;
  StageClock clock(context, &account);
  RETURN_IF_ERROR(
      clock.Begin("build", absl::StrCat(texts.distinct, " distinct kernels in ", texts.files.size(), " files")));
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, context.toolchain));
  NoteBuilt(texts, binaries, texts.places.begin(), *context.device, prepared);
  account.plan_json = SumAccounts(programs).plan_json;
  RETURN_IF_ERROR(clock.Begin("write", "packing weights"));
  RETURN_IF_ERROR(Write(job, programs, texts, binaries, texts.places.begin(), *context.device, &account));
  clock.End();
  return account;
}

}  // namespace

absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path) {
  if (RunsWholePrograms(context)) return CompileProgram(files, options, context, bundle_path);
  ASSIGN_OR_RETURN(PreparedPrograms programs, PreparePrograms(files, options, context));
  return BuildAlone({files, options, bundle_path}, &programs, context);
}

std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context) {
  if (RunsWholePrograms(context)) {  // a program shares nothing with those of other models
    std::vector<absl::StatusOr<CompileAccount>> made;
    for (const CompileJob& job : jobs) made.push_back(CompileProgram(job.files, job.options, context, job.bundle_path));
    return made;
  }
  std::vector<absl::StatusOr<PreparedPrograms>> models;
  std::vector<const FusionKernel*> kernels;
  std::vector<std::ptrdiff_t> first;  // where the job's launches begin in `kernels`
  for (const CompileJob& job : jobs) {
    first.push_back(static_cast<std::ptrdiff_t>(kernels.size()));
    models.push_back(PreparePrograms(job.files, job.options, context));
    if (models.back().ok()) AppendKernels(*models.back(), &kernels);
  }
  const KernelTexts texts = PrintKernels(kernels, *context.device);
  const absl::StatusOr<std::vector<std::string>> binaries = BuildTexts(texts, context.toolchain);
  std::vector<absl::StatusOr<CompileAccount>> results;
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (!models[j].ok()) {
      results.push_back(models[j].status());
      continue;
    }
    if (!binaries.ok()) {
      // Some text did not build. Building each job alone lets each fail or succeed on its own.
      results.push_back(BuildAlone(jobs[j], &*models[j], context));
      continue;
    }
    const auto place = texts.places.begin() + first[j];
    NoteBuilt(texts, *binaries, place, *context.device, &*models[j]);
    CompileAccount account = SumAccounts(*models[j]);
    const absl::Status written = Write(jobs[j], *models[j], texts, *binaries, place, *context.device, &account);
    results.push_back(written.ok() ? absl::StatusOr<CompileAccount>(std::move(account)) : written);
  }
  return results;
}

absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& given) {
  if (RunsWholePrograms(given)) {
    PlanReport whole;
    ASSIGN_OR_RETURN(whole.account, PlanProgram(files, options, given, &whole.text));
    return whole;
  }
  DeviceModel device;
  const CompileContext context = ContextFor(options, given, &device);
  ASSIGN_OR_RETURN(const auto dims, Specialisations(options));
  PlanReport report;
  std::vector<CompileAccount> accounts(dims.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < dims.size(); ++i) {
    const std::string label = dims.size() > 1 ? names.emplace_back(DimsInWords(dims[i])) : names.emplace_back();
    const CompileOptions bound = Bound(options, dims[i]);
    StageClock clock(context, &accounts[i], label);
    GraphFusionOracle oracle(context, Units(options, context), DisabledFusionBlockPasses(options));
    Planned planned;
    Compilation compilation{files, bound, context, &oracle, &clock, &accounts[i], &planned};
    const absl::Status made = MakePlan(&compilation);
    RETURN_IF_ERROR(label.empty() ? made : Annotate(made, label));
    // The kernels, as a sequence of launches, give the estimate of a run.
    std::vector<PlannedLaunch> launches;
    compilation.launches = &launches;
    RETURN_IF_ERROR(RunPass(*FindPass("kernels"), &compilation));
    RETURN_IF_ERROR(AccountForKernels(&compilation));
    std::string text = PlanText(planned);
    if (passes::MayJoinLaunches(compilation) && options.disabled_passes.count("join-launches") == 0) {
      const std::vector<JoinedLaunch> joined = JoinLaunches(*context.device, compilation.Units(), &planned, &launches);
      AccountForJoined(joined, static_cast<int64_t>(launches.size()), &accounts[i]);
      text += InWords(joined);
    }
    clock.End();
    if (!label.empty()) absl::StrAppend(&report.text, i > 0 ? "\n" : "", "with ", label, ":\n");
    report.text += text;
  }
  report.account = SumAccounts(names, accounts);
  return report;
}

}  // namespace fusion
