#include "compiler/schedule/fusion_block_passes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/movement/verify.h"
#include "compiler/schedule/library/library_stage.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/rewrite/copy_windows.h"
#include "compiler/schedule/rewrite/k_blocking.h"
#include "compiler/schedule/rewrite/minimal_filtering.h"
#include "compiler/schedule/rewrite/separate_windows.h"
#include "compiler/schedule/rewrite/split_k.h"
#include "compiler/schedule/rewrite/split_reductions.h"
#include "compiler/te/program/split_prefixes.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using Result = absl::StatusOr<std::optional<FusionBlockForm>>;

// Returns the form with another program, or nullopt where there is none.
Result WithProgram(const FusionBlockForm& form, std::optional<te::Program> program) {
  if (!program) return std::nullopt;
  return FusionBlockForm{*std::move(program), form.layouts, form.filtered};
}

Result RunFormStages(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  ASSIGN_OR_RETURN(te::Program staged, FormStages(form.program, context.kept));
  return WithProgram(form, std::move(staged));
}

Result RunBareProduct(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  return WithProgram(form, WithBareProduct(form.program, context.product, context.rounded_product));
}

Result RunSplitPrefixes(const FusionBlockForm& form, const FusionBlockPassContext&) {
  std::optional<te::Program> split = te::SplitPrefixes(form.program);
  if (!split) return std::nullopt;
  std::set<te::TensorId> kept;  // the parts are computed where they are read
  for (const te::Te& te : form.program.tes) kept.insert(te.outputs.begin(), te.outputs.end());
  ASSIGN_OR_RETURN(te::Program staged, FormStages(*std::move(split), kept));
  return WithProgram(form, std::move(staged));
}

Result RunKBlocking(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  te::Program cut = BlockAlongK(form.program, *context.device, context.choices);
  if (cut.tes.size() == form.program.tes.size()) return std::nullopt;  // each cut adds expressions
  return WithProgram(form, std::move(cut));
}

Result RunWinograd(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  std::optional<FilteredProgram> filtered = FilterMinimally(form.program, context.filter_outputs);
  if (!filtered) return std::nullopt;
  return FusionBlockForm{std::move(filtered->program), form.layouts,
                         TransformedFilter{filtered->filter, filtered->source, std::move(filtered->transform),
                                           std::move(filtered->plain)}};
}

Result RunSplitK(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  return WithProgram(form, SplitK(form.program, *context.device));
}

Result RunSeparateWindows(const FusionBlockForm& form, const FusionBlockPassContext&) {
  std::optional<SeparatedProgram> separated = SeparateWindows(form.program, form.layouts);
  if (!separated) return std::nullopt;
  return FusionBlockForm{std::move(separated->program), std::move(separated->layouts), form.filtered};
}

Result RunCopyWindows(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  const auto layout_of = [&](te::TensorId tensor) {
    const auto it = form.layouts.find(tensor);
    return it == form.layouts.end() ? Layout() : it->second;
  };
  return WithProgram(form, CopyWindows(form.program, layout_of, *context.device));
}

Result RunSplitReductions(const FusionBlockForm& form, const FusionBlockPassContext& context) {
  const CutTest behind_reductions = [&](te::TensorId tensor, const te::Te&) {
    const int maker = form.program.DefiningTe(tensor);
    return maker >= 0 && form.program.tes[maker].reduction.has_value();
  };
  std::optional<SplitProgram> split = SplitReductions(form.program, context.is_cut ? context.is_cut : behind_reductions,
                                                      {context.chunks, context.least_chunk});
  if (!split) return std::nullopt;
  return FusionBlockForm{std::move(split->program), form.layouts, form.filtered, std::move(split->partials),
                         split->chunks};
}

constexpr FusionBlockPassRow kRows[] = {
    {FusionBlockPass::kLower, "lower", nullptr, false,
     "first: each operator of the fusion block becomes tensor expressions, which every later pass reads"},
    {FusionBlockPass::kFormStages, "form-stages", RunFormStages, false,
     "before the schedules: the stages that remain are what a schedule places in a task"},
    {FusionBlockPass::kBareProduct, "bare-product", RunBareProduct, true,
     "before a library is tried: a library computes a product without what follows it"},
    {FusionBlockPass::kSplitPrefixes, "split-prefixes", RunSplitPrefixes, true,
     "before the other forms: the parts' totals are reductions like any others"},
    {FusionBlockPass::kKBlocking, "k-blocking", RunKBlocking, true,
     "before the other forms: most of them start from products that are already cut along the reduction"},
    {FusionBlockPass::kWinograd, "winograd", RunWinograd, true,
     "starts from the uncut program, because it needs a whole window; the cost model compares the forms"},
    {FusionBlockPass::kSplitK, "split-k", RunSplitK, true,
     "after k-blocking: it spreads a reduction over units that the results alone leave idle"},
    {FusionBlockPass::kSeparateWindows, "separate-windows", RunSeparateWindows, true,
     "before copy-windows, which then serves the rows of a separated window, too"},
    {FusionBlockPass::kCopyWindows, "copy-windows", RunCopyWindows, true,
     "after the forms of windows: it copies borders for windows as the passes before have left them"},
    {FusionBlockPass::kSplitReductions, "split-reductions", RunSplitReductions, true,
     "last of the forms: it starts from products as they will run, and from the barriers that the plan asks for"},
    {FusionBlockPass::kSchedule, "schedule", nullptr, false,
     "last: places the stages of each form in tasks, and keeps the form of least estimated time"},
};

const FusionBlockPassRow& RowOf(FusionBlockPass pass) { return kRows[static_cast<int>(pass)]; }

absl::Status Broken(const char* name, const char* what, const absl::Status& found) {
  return absl::InternalError(absl::StrCat("pass '", name, "' made a wrong ", what,
                                          " (a fault of the compiler): ", std::string(found.message())));
}

}  // namespace

absl::Span<const FusionBlockPassRow> FusionBlockPasses() { return kRows; }

Result RunFusionBlockPass(const FusionBlockPassRow& row, const FusionBlockForm& form,
                          const FusionBlockPassContext& context, const std::set<std::string>& disabled) {
  if (disabled.count(row.name) > 0) {
    if (row.can_disable) return std::nullopt;
    return absl::InvalidArgumentError(absl::StrCat("pass '", row.name, "' cannot be disabled"));
  }
  ASSIGN_OR_RETURN(std::optional<FusionBlockForm> made, row.run(form, context));
  if (!made) return std::nullopt;
  // Only the lowering proves bounds: later indices are compositions of proven ones, often beyond the prover.
  const absl::Status verified = te::Verify(made->program, te::BoundsProof::kInherited);
  if (!verified.ok()) return Broken(row.name, "program", verified);
  return made;
}

Result RunFusionBlockPass(FusionBlockPass pass, const FusionBlockForm& form, const FusionBlockPassContext& context,
                          const std::set<std::string>& disabled) {
  return RunFusionBlockPass(RowOf(pass), form, context, disabled);
}

absl::Status VerifyAfter(FusionBlockPass pass, const te::Program& program) {
  const te::BoundsProof bounds =
      pass == FusionBlockPass::kLower ? te::BoundsProof::kRequired : te::BoundsProof::kInherited;
  const absl::Status verified = te::Verify(program, bounds);
  return verified.ok() ? verified : Broken(RowOf(pass).name, "program", verified);
}

absl::Status VerifySchedule(const movement::Kernel& kernel) {
  const absl::Status verified = movement::Verify(kernel);
  return verified.ok() ? verified : Broken(RowOf(FusionBlockPass::kSchedule).name, "movement graph", verified);
}

}  // namespace fusion
