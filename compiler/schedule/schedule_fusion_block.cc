#include "compiler/schedule/schedule_fusion_block.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/traffic.h"
#include "compiler/schedule/cut_stages.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/schedule/library/library_stage.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_form.h"
#include "compiler/schedule/schedule_routine.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/stitch/worth_halos.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/tile/products.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Results of a tile: F(4, 3) saves most, and F(2, 3) loses least where images are small.
constexpr int64_t kFilterOutputs[] = {4, 2};

// Chunks into which two-phase reductions are cut. The model chooses.
constexpr int64_t kChunks[] = {2, 4, 8, 16, 32, 64, 128};

// The factor that two-phase reductions must save by the model, which favours their larger tasks: it does not count that
// a task reads a product's rows again for each panel.
constexpr double kSplitMargin = 1.03;

// The fewest terms of a chunk, since shorter ones would have many results.
constexpr int64_t kLeastChunk = 64;

// The factor that minimal filtering must save by the model; otherwise accuracy would be traded for little.
constexpr double kFilterMargin = 1.15;

// The share of the time for which tiles move between the phases of minimal filtering that computing does not hide. (The
// model takes all memory traffic of a phase to overlap with its computation.)
constexpr double kTilesShare = 0.5;

// The form whose tasks compute the halos of their windows, and the factor that it must save by the model where the plan
// does not ask for it: it changes how work is shared out, and by how much was measured to differ from the estimate by
// up to a tenth (docs/decisions/0048-halos.md).
constexpr char kHalosForm[] = "halos";
constexpr double kHalosMargin = 1.1;
// The factor that tasks of several rows of windows must save by the model, since choices of layouts between blocks
// follow small differences.
constexpr double kRowsMargin = 1.05;

// The form whose tasks walk down the rows of an image and keep what windows need again
// (docs/decisions/0069-sliding-windows.md).
constexpr char kSlidingForm[] = "windows";

// The form whose phases run beside each other (docs/decisions/0058-stages-beside-each-other.md).
constexpr char kBesideForm[] = "beside";

// Lets the packs that read the transformed filter read the model's filter instead, and transform it.
absl::Status TransformFilter(const TransformedFilter& filtered, movement::Kernel* kernel) {
  for (const movement::Buffer& buffer : kernel->buffers) {
    if (buffer.tensor == filtered.filter && buffer.packed_from < 0) {
      return absl::FailedPreconditionError("the schedule reads the transformed filter unpacked");
    }
  }
  for (movement::Pack& pack : kernel->packs) {
    if (pack.source_tensor != filtered.filter) continue;
    pack.source_tensor = filtered.source;
    pack.transform = filtered.transform;
  }
  return absl::OkStatus();
}

// The fusion block with its one product computed by a library of the target, and text for everything else. The
// product's epilogue is part of the library's call if it can be.
absl::StatusOr<ScheduledFusionBlock> ScheduleWithLibrary(const FusionBlockForm& form, const DeviceModel& device,
                                                         const std::set<std::string>& disabled_passes,
                                                         ChoiceLog* choices) {
  const bool any = !device.product_library.empty() || !device.convolution_library.empty();
  const int product = any ? OnlyProduct(form.program, device) : -1;
  if (product < 0)
    return absl::FailedPreconditionError(
        "the fusion block does not have exactly one product, or the device has no library for it");
  const ChoiceLog before = *choices;
  const auto schedule = [&](const te::Program& program) {
    return ScheduleForm(program, form.layouts, device, {InTasks::kNoProducts, product}, choices);
  };
  absl::StatusOr<ScheduledFusionBlock> scheduled = schedule(form.program);
  for (const bool rounded : {false, true}) {
    if (scheduled.ok()) break;
    FusionBlockPassContext context;
    context.product = product;
    context.rounded_product = rounded;
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> bare,
                     RunFusionBlockPass(FusionBlockPass::kBareProduct, form, context, disabled_passes));
    if (!bare) continue;
    *choices = before;
    scheduled = schedule(bare->program);
  }
  return scheduled;
}

// One schedule of a fusion block. The model orders them, and a measurement may choose another than the first.
struct Candidate {
  ScheduledFusionBlock scheduled;
  ChoiceLog log;
  double latency_ns;
  std::string form;  // its label
};

bool HasSeveralPhases(const ScheduledFusionBlock& scheduled) { return scheduled.kernel.phases.size() > 1; }

// Checks that the hand-overs are as asked for. Fails as CheckWithin does.
absl::Status CheckAsked(const ScheduleOptions& options, const ScheduledFusionBlock& scheduled,
                        const te::Program& program) {
  return CheckWithin(options.hand_overs, scheduled.hand_overs, program, /*only_asked=*/true);
}

// Nanoseconds in which one core writes and reads what phases hand to each other.
double TilesNs(const movement::Kernel& kernel, const DeviceModel& device) {
  double bytes = 0, moved = 0;
  for (const movement::Buffer& buffer : kernel.buffers) {
    if (buffer.scope == Scope::kDevice) bytes += static_cast<double>(movement::SizeBytes(buffer));
  }
  if (bytes == 0) return 0;
  for (const movement::Phase& phase : kernel.phases) {
    for (const auto& traffic : movement::TrafficOf(kernel, movement::AccessesOf(phase), device)) {
      if (kernel.buffers[traffic.buffer].scope == Scope::kDevice) moved += traffic.read_bytes + traffic.write_bytes;
    }
  }
  return 1e9 * moved / device.CopyBandwidth(bytes);
}

// The cuts in front of and behind the stage that reads a tensor.
std::vector<int> CutsAround(const te::Program& program, te::TensorId tensor) {
  const auto reader = std::find_if(program.tes.begin(), program.tes.end(),
                                   [&](const te::Te& te) { return TensorsRead(te).count(tensor) > 0; });
  const int stage = static_cast<int>(reader - program.tes.begin());
  std::vector<int> cuts;
  for (const int cut : {stage, stage + 1}) {
    if (cut > 0 && cut < static_cast<int>(program.tes.size())) cuts.push_back(cut);
  }
  return cuts;
}

// Collects the candidates of one fusion block: makes other forms of its program and schedules them.
class Candidates {
 public:
  Candidates(const FusionBlockForm& given, const DeviceModel& device, const ScheduleOptions& options, ChoiceLog* log)
      : given_(given), device_(device), options_(options), log_(log) {}

  absl::Status AddAll() {
    ASSIGN_OR_RETURN(const FusionBlockForm split, Cut());
    RETURN_IF_ERROR(AddPlain(split));
    RETURN_IF_ERROR(AddSplitPrefixes());
    RETURN_IF_ERROR(AddHalos(split));
    RETURN_IF_ERROR(AddSliding());
    RETURN_IF_ERROR(AddBeside(split));
    RETURN_IF_ERROR(AddFiltered());
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> spread, RunPass(FusionBlockPass::kSplitK, split));
    if (spread) Add(*spread, InTasks::kNoProducts, "split-k").IgnoreError();
    RETURN_IF_ERROR(AddWindows(split));
    if (MayCut(options_.hand_overs)) {
      RETURN_IF_ERROR(AddCut(split, "cut"));
      if (spread) RETURN_IF_ERROR(AddCut(*spread, "split-k-cut"));
    }
    RETURN_IF_ERROR(KeepAsked());
    AddPersistent();
    return absl::OkStatus();
  }

  std::vector<Candidate>& all() { return all_; }

 private:
  absl::StatusOr<std::optional<FusionBlockForm>> RunPass(FusionBlockPass pass, const FusionBlockForm& form,
                                                         int64_t filter_outputs = 0) {
    FusionBlockPassContext context;
    context.device = &device_;
    context.choices = log_;
    context.filter_outputs = filter_outputs;
    return RunFusionBlockPass(pass, form, context, options_.disabled_passes);
  }

  bool AsksFor(absl::string_view form) const {
    return std::any_of(options_.directives.begin(), options_.directives.end(), [&](const auto& directive) {
      return directive.choice == "form" && directive.alternative == form;
    });
  }

  absl::Status Add(const FusionBlockForm& form, InTasks in_tasks, std::string label, const std::vector<int>& cuts = {},
                   bool beside = false) {
    ChoiceLog log = *log_;
    FormRequest request{in_tasks, -1, cuts, !form.partials.empty(), beside, &options_.hand_overs};
    if (form.filtered) request.plain_sums = &form.filtered->plain;
    ASSIGN_OR_RETURN(ScheduledFusionBlock scheduled, ScheduleForm(form.program, form.layouts, device_, request, &log));
    if (form.filtered) {
      RETURN_IF_ERROR(TransformFilter(*form.filtered, &scheduled.kernel));
      for (size_t t = given_.program.tensors.size(); t < form.program.tensors.size(); ++t) {
        const te::TensorInfo& made = form.program.tensors[t];
        if (made.constant) scheduled.constants[static_cast<int>(t)] = *made.constant;
      }
    }
    double ns = movement::EstimateCost(scheduled.kernel, device_, device_.parallel_units).latency_ns;
    if (form.filtered) ns = kFilterMargin * (ns + kTilesShare * TilesNs(scheduled.kernel, device_));
    if (in_tasks == InTasks::kHalos) ns *= kHalosMargin;
    if (in_tasks == InTasks::kWindowRows) ns *= kRowsMargin;
    if (!form.partials.empty()) ns *= kSplitMargin;
    all_.push_back({std::move(scheduled), std::move(log), ns, std::move(label)});
    return absl::OkStatus();
  }

  // Returns the form with its long products cut along the reduction.
  absl::StatusOr<FusionBlockForm> Cut() {
    ASSIGN_OR_RETURN(std::optional<FusionBlockForm> cut, RunPass(FusionBlockPass::kKBlocking, given_));
    return cut ? *std::move(cut) : given_;
  }

  // The form that every fusion block has; where its stages cannot be stitched, also one with products inside tasks.
  absl::Status AddPlain(const FusionBlockForm& split) {
    RETURN_IF_ERROR(Add(split, InTasks::kNoProducts, "plain"));
    const te::Program& program = split.program;
    if (program.tes.size() > 1 && HasSeveralPhases(all_[0].scheduled)) {
      const bool products = std::any_of(program.tes.begin(), program.tes.end(),
                                        [&](const te::Te& te) { return WantsRegisterTile(program, te, device_); });
      const absl::Status in_tasks = products ? Add(split, InTasks::kProducts, "tasks") : absl::OkStatus();
      if (!in_tasks.ok()) absl::StrAppend(&all_[0].scheduled.reason, "; in tasks: ", in_tasks.message());
    }
    if (given_.program.tes.size() == 1)
      all_[0].scheduled.reason.clear();  // slices along the reduction count as one stage
    return absl::OkStatus();
  }

  // Forms in which long prefix reductions are computed in parts, which many units need to share a row.
  absl::Status AddSplitPrefixes() {
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> parts, RunPass(FusionBlockPass::kSplitPrefixes, given_));
    if (!parts) return absl::OkStatus();
    Add(*parts, InTasks::kNoProducts, "prefixes-split").IgnoreError();
    return AddCopied(*parts, "prefixes-split-copied");
  }

  // A form in which tasks compute the halos of their windows.
  absl::Status AddHalos(const FusionBlockForm& split) {
    const bool asked = AsksFor(kHalosForm);
    if (!asked && !WorthHalos(split.program, device_)) return absl::OkStatus();
    const absl::Status added = AddWithCopies(split, InTasks::kHalos, kHalosForm);
    return asked ? Annotate(added, "with halos in tasks") : absl::OkStatus();
  }

  // A form in which windows slide along a loop in each task, where a directive asks for it.
  absl::Status AddSliding() {
    if (!AsksFor(kSlidingForm)) return absl::OkStatus();
    if (!StrategyOf(device_).sliding_windows) {
      return absl::FailedPreconditionError(
          absl::StrCat("form=", kSlidingForm, ": windows slide along loops inside the tasks of a processor, and a ",
                       device_.kind, " device is none"));
    }
    return Annotate(AddWithCopies(given_, InTasks::kSliding, kSlidingForm), absl::StrCat("form=", kSlidingForm));
  }

  // Adds the form with or without copies of its windows: the cheaper one. The error is the refusal without copies,
  // where both are refused.
  absl::Status AddWithCopies(const FusionBlockForm& form, InTasks in_tasks, const char* label) {
    const size_t before = all_.size();
    const absl::Status added = Add(form, in_tasks, label);
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> copied, RunPass(FusionBlockPass::kCopyWindows, form));
    if (copied) Add(*copied, in_tasks, label).IgnoreError();
    if (all_.size() == before) return added;
    if (all_.size() == before + 2) {
      all_.erase(all_.end() - (all_.back().latency_ns < all_[before].latency_ns ? 2 : 1));
    }
    return absl::OkStatus();
  }

  // Stages that hand nothing to each other as phases that run beside each other, where a directive asks for that.
  absl::Status AddBeside(const FusionBlockForm& form) {
    if (!AsksFor(kBesideForm)) return absl::OkStatus();
    if (!StrategyOf(device_).phases_beside) {
      return absl::FailedPreconditionError(
          absl::StrCat("form=", kBesideForm, ": a kernel of ", device_.kind, " runs its phases one after another"));
    }
    CutProgram cut = UnconnectedStages(form.program);
    const bool routine = std::any_of(cut.program.tes.begin(), cut.program.tes.end(),
                                     [](const te::Te& te) { return te.routine.has_value(); });
    if (cut.cuts.empty() || routine) {
      return absl::FailedPreconditionError(absl::StrCat(
          "form=", kBesideForm, ": ", routine ? "a routine has a launch of its own" : "all stages are connected"));
    }
    const FusionBlockForm parts{std::move(cut.program), form.layouts, form.filtered, form.partials, form.chunks};
    absl::Status refusal;
    bool added = false;
    for (const InTasks in_tasks : {InTasks::kNoProducts, InTasks::kProducts}) {
      const absl::Status status = Add(parts, in_tasks, kBesideForm, cut.cuts, /*beside=*/true);
      added = added || status.ok();
      if (refusal.ok()) refusal = status;
    }
    return added ? absl::OkStatus() : Annotate(refusal, absl::StrCat("form=", kBesideForm));
  }

  // Convolutions by minimal filtering (Winograd). In one task, tiles are transformed, multiplied and transformed back:
  // they stay near the core, but each task reads all filters. With the product as a phase of its own, filters are read
  // once, and tiles go through memory.
  absl::Status AddFiltered() {
    if (!StrategyOf(device_).minimal_filtering) return absl::OkStatus();
    for (const int64_t outputs : kFilterOutputs) {
      ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> filtered,
                       RunPass(FusionBlockPass::kWinograd, given_, outputs));
      if (!filtered) continue;
      const std::string label = absl::StrCat("winograd", outputs);
      Add(*filtered, InTasks::kFiltering, label).IgnoreError();
      const std::vector<int> cuts = CutsAround(filtered->program, filtered->filtered->filter);
      if (Add(*filtered, InTasks::kFiltering, label + "-phases", cuts).ok()) continue;
      Add(*filtered, InTasks::kNoProducts, label + "-phases").IgnoreError();
    }
    return absl::OkStatus();
  }

  // Other forms of windows: with their borders copied around them, row by row first, or both.
  absl::Status AddWindows(const FusionBlockForm& split) {
    RETURN_IF_ERROR(AddCopied(split, "windows-copied"));
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> separated, RunPass(FusionBlockPass::kSeparateWindows, split));
    if (!separated) return absl::OkStatus();
    Add(*separated, InTasks::kWindows, "windows-separate").IgnoreError();
    return AddCopied(*separated, "windows-separate-copied");
  }
  absl::Status AddCopied(const FusionBlockForm& form, const char* label) {
    ASSIGN_OR_RETURN(const std::optional<FusionBlockForm> copied, RunPass(FusionBlockPass::kCopyWindows, form));
    if (!copied) return absl::OkStatus();
    Add(*copied, InTasks::kWindows, label).IgnoreError();
    if (!device_.WorkItemsAreLanes()) Add(*copied, InTasks::kWindowRows, absl::StrCat(label, "-rows")).IgnoreError();
    return absl::OkStatus();
  }

  // Forms with phases that are cut where the plan asks for device scope.
  absl::Status AddCut(const FusionBlockForm& form, const std::string& label) {
    for (const CutEdges edges : {CutEdges::kRequired, CutEdges::kAllowed}) {
      const std::string each = absl::StrCat(label, edges == CutEdges::kAllowed ? "-all" : "");
      AddCutAt(form, edges, each);
      RETURN_IF_ERROR(AddSplitReductions(form, edges, each));
    }
    return absl::OkStatus();
  }
  void AddCutAt(const FusionBlockForm& form, CutEdges edges, const std::string& label) {
    absl::StatusOr<CutProgram> cut = CutStages(form.program, options_.hand_overs, edges, form.partials);
    const bool plain = form.partials.empty();  // other forms give no reason why a plan cannot be met
    if (!cut.ok()) {
      if (plain) refused_ = cut.status();
      return;
    }
    if (cut->cuts.empty()) return;
    const FusionBlockForm parts{std::move(cut->program), form.layouts, form.filtered, form.partials, form.chunks};
    for (const InTasks in_tasks : {InTasks::kNoProducts, InTasks::kProducts}) {
      const std::string each = absl::StrCat(label, in_tasks == InTasks::kProducts ? "-tasks" : "");
      if (const absl::Status added = Add(parts, in_tasks, each, cut->cuts); !added.ok() && plain) refused_ = added;
    }
  }

  // Forms in which the phase in front of a cut computes parts of the reductions behind it. Fewer chunks than the device
  // wants tasks are tried only where there cannot be more: the tasks would share out rows, too, and then each would
  // read all of a product's other operand for a few of them.
  absl::Status AddSplitReductions(const FusionBlockForm& form, CutEdges edges, const std::string& label) {
    FusionBlockPassContext context;
    context.is_cut = [&](te::TensorId tensor, const te::Te& reader) {
      return IsCut(options_.hand_overs, tensor, reader, edges);
    };
    std::map<int64_t, FusionBlockForm> forms;  // by the number of chunks
    for (const int64_t chunks : kChunks) {
      context.chunks = chunks;
      context.least_chunk = kLeastChunk;
      ASSIGN_OR_RETURN(std::optional<FusionBlockForm> split,
                       RunFusionBlockPass(FusionBlockPass::kSplitReductions, form, context, options_.disabled_passes));
      if (split) forms.emplace(split->chunks, *std::move(split));
    }
    const bool enough = !forms.empty() && forms.rbegin()->first >= WantedTasks(device_);
    for (const auto& [chunks, split] : forms) {
      if (!enough || chunks >= WantedTasks(device_)) AddCutAt(split, edges, absl::StrCat(label, "-chunks", chunks));
    }
    return absl::OkStatus();
  }

  // Drops the forms that hand over otherwise than the plan asks, or do not meet its directives. Fails, with the reason,
  // where none is left.
  absl::Status KeepAsked() {
    const size_t tried = all_.size();
    std::erase_if(all_, [&](const Candidate& candidate) {
      absl::Status kept = CheckAsked(options_, candidate.scheduled, given_.program);
      kept.Update(candidate.log.CheckStageDirectives());
      if (!kept.ok() && refused_.ok()) refused_ = kept;
      return !kept.ok();
    });
    if (!all_.empty() || tried == 0) return absl::OkStatus();
    return refused_;
  }

  // Forms with several phases in one launch (persistent kernels), where work-groups may wait for each other.
  void AddPersistent() {
    for (size_t f = 0, n = all_.size(); f < n && device_.persistent_groups > 0; ++f) {
      if (all_[f].scheduled.kernel.BetweenBarriers().size() < 2) continue;
      Candidate persistent = all_[f];
      persistent.scheduled.kernel.persistent = true;
      persistent.form += "-persistent";
      persistent.latency_ns =
          movement::EstimateCost(persistent.scheduled.kernel, device_, device_.parallel_units).latency_ns;
      all_.push_back(std::move(persistent));
    }
  }

  const FusionBlockForm& given_;
  const DeviceModel& device_;
  const ScheduleOptions& options_;
  ChoiceLog* const log_;
  std::vector<Candidate> all_;
  absl::Status refused_;  // why a form that the plan asks for could not be made
};

}  // namespace

absl::StatusOr<ScheduledFusionBlock> ScheduleFusionBlock(const te::Program& program,
                                                         const std::map<te::TensorId, Layout>& layouts,
                                                         const DeviceModel& device, const ScheduleOptions& options) {
  if (program.tes.size() == 1 && program.tes[0].routine) return ScheduleRoutine(program, layouts);
  const FusionBlockForm given{program, layouts, std::nullopt};
  ChoiceLog log(options.choices, options.directives);
  ChoiceLog library_log = log;
  // The model never chooses a library for a stage, because it knows nothing of libraries.
  if (absl::StatusOr<ScheduledFusionBlock> library =
          ScheduleWithLibrary(given, device, options.disabled_passes, &library_log);
      library.ok() && CheckAsked(options, *library, program).ok() && library_log.CheckStageDirectives().ok() &&
      log.Pick("library", {"no", "yes"}, ChoiceKind::kUnmodelled) == 1) {
    RETURN_IF_ERROR(log.CheckKernelDirectives());
    library->within = CheckWithin(options.hand_overs, library->hand_overs, program);
    library->choices = log.met();
    library->choices.insert(library->choices.end(), library_log.met().begin(), library_log.met().end());
    return library;
  }
  Candidates candidates(given, device, options, &log);
  RETURN_IF_ERROR(candidates.AddAll());
  std::vector<Candidate>& all = candidates.all();
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.latency_ns < b.latency_ns; });
  const int taken = log.Pick("form", all, [](const Candidate& one) { return one.form; });
  RETURN_IF_ERROR(log.CheckKernelDirectives());
  Candidate& form = all[taken];
  if (form.scheduled.kernel.BetweenBarriers().size() > 1 && StrategyOf(device).phases_are_launches &&
      device.persistent_groups == 0) {
    absl::StrAppend(&form.scheduled.reason, form.scheduled.reason.empty() ? "" : "; ",
                    "each phase is a launch, because work-groups of this device cannot wait for each other");
  }
  form.scheduled.choices = form.log.met();
  const bool chosen = !log.met().empty() && log.met().back().name == "form";
  if (chosen) form.scheduled.choices.push_back(log.met().back());
  form.scheduled.within = CheckWithin(options.hand_overs, form.scheduled.hand_overs, program);
  if (!form.scheduled.within.ok() && !form.scheduled.reason.empty()) {
    form.scheduled.within =
        absl::FailedPreconditionError(absl::StrCat(form.scheduled.within.message(), ": ", form.scheduled.reason));
  }
  return std::move(form.scheduled);
}

}  // namespace fusion
