#include "compiler/pipeline/compile.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "compiler/api/specialisations.h"
#include "compiler/bundle/emit.h"
#include "compiler/pipeline/plan_account.h"
#include "compiler/pipeline/programs.h"
#include "compiler/pipeline/sum_accounts.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

Manifest Head(const ModelFiles& files, const CompileOptions& options, const DeviceModel& device) {
  Manifest head;
  head.generator = absl::StrCat("fusion " FUSION_VERSION " (generator ", kGeneratorVersion, ")");
  head.target = device.kind;
  head.isa = device.isa;
  head.march = device.march;
  head.model_name = files.model_name;
  head.options = {{"planner", options.planner}, {"math", options.math}, {"target", options.target}};
  if (options.precision != "fp32") head.options["precision"] = options.precision;
  if (options.size != "any") head.options["size"] = options.size;
  if (!options.disabled_rules.empty()) head.options["disabled_rules"] = absl::StrJoin(options.disabled_rules, ",");
  return head;
}

// For people: the fusion blocks, and where kernels and launches differ from them.
std::string PlanText(const Planned& planned) {
  std::vector<std::string> notes;
  for (const RealisedBlock& block : planned.realised) notes.push_back(InWords(block));
  std::string text = PrintPlan(planned.graph, planned.plan, notes);
  for (size_t b : planned.elided.blocks) {
    absl::StrAppend(&text, "fusion block ", b, " has no kernel: what it would copy is written or read in place\n");
  }
  for (size_t l = 0; l < planned.launches.size(); ++l) {
    const std::vector<size_t>& blocks = planned.launches[l];
    if (blocks.size() > 1) absl::StrAppend(&text, "one launch: fusion blocks ", absl::StrJoin(blocks, ", "), "\n");
    if (planned.concurrent.empty() || !planned.concurrent[l]) continue;
    absl::StrAppend(&text, "at the same time: fusion blocks ", absl::StrJoin(planned.launches[l - 1], ", "), " and ",
                    absl::StrJoin(blocks, ", "), "\n");
  }
  return text;
}

void AppendKernels(const PreparedPrograms& programs, std::vector<const BlockKernel*>* kernels) {
  for (const auto& program : programs) {
    for (const PlannedLaunch& launch : program->model.launches) kernels->push_back(&launch.block);
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
    BundleProgram& one = out.emplace_back();
    const Prepared& model = program->model;
    one.graph = &model.planned.graph;
    one.layouts = &model.planned.layouts;
    one.launches = &model.launches;
    one.inside = &model.planned.elided.values;
    one.places.assign(place, place + static_cast<std::ptrdiff_t>(model.launches.size()));
    place += static_cast<std::ptrdiff_t>(model.launches.size());
    if (programs.size() == 1) continue;
    one.dims = program->dims;
    one.input_symbols = model.planned.input_symbols;
    one.input_extents = model.planned.input_extents;
  }
  return WriteBundle(out, texts, binaries, Head(job.files, job.options, device), job.bundle_path, account);
}

absl::StatusOr<CompileAccount> BuildAlone(const CompileJob& job, const PreparedPrograms& programs,
                                          const CompileContext& context) {
  std::vector<const BlockKernel*> kernels;
  AppendKernels(programs, &kernels);
  const KernelTexts texts = PrintKernels(kernels, *context.device);
  CompileAccount account = SumAccounts(programs);
  account.kernels_distinct = texts.distinct;
  StageClock clock(context, &account);
  RETURN_IF_ERROR(
      clock.Begin("build", absl::StrCat(texts.distinct, " distinct kernels in ", texts.files.size(), " files")));
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, context.toolchain));
  RETURN_IF_ERROR(clock.Begin("write", "packing weights"));
  RETURN_IF_ERROR(Write(job, programs, texts, binaries, texts.places.begin(), *context.device, &account));
  clock.End();
  return account;
}

}  // namespace

absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path) {
  ASSIGN_OR_RETURN(const PreparedPrograms programs, PreparePrograms(files, options, context));
  return BuildAlone({files, options, bundle_path}, programs, context);
}

std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context) {
  std::vector<absl::StatusOr<PreparedPrograms>> models;
  std::vector<const BlockKernel*> kernels;
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
      results.push_back(BuildAlone(jobs[j], *models[j], context));
      continue;
    }
    CompileAccount account = SumAccounts(*models[j]);
    const absl::Status written =
        Write(jobs[j], *models[j], texts, *binaries, texts.places.begin() + first[j], *context.device, &account);
    results.push_back(written.ok() ? absl::StatusOr<CompileAccount>(std::move(account)) : written);
  }
  return results;
}

absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& given) {
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
    GraphBlockOracle oracle(context, Units(options, context), DisabledBlockPasses(options));
    Planned planned;
    Compilation compilation{files, bound, context, &oracle, &clock, &accounts[i], &planned};
    const absl::Status made = MakePlan(&compilation);
    RETURN_IF_ERROR(label.empty() ? made : Annotate(made, label));
    RETURN_IF_ERROR(AccountForKernels(&compilation));
    clock.End();
    if (!label.empty()) absl::StrAppend(&report.text, i > 0 ? "\n" : "", "with ", label, ":\n");
    report.text += PlanText(planned);
  }
  report.account = SumAccounts(names, accounts);
  return report;
}

}  // namespace fusion
