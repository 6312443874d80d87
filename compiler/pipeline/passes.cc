#include "compiler/pipeline/passes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/pipeline/bundle_passes.h"
#include "compiler/pipeline/compilation.h"
#include "compiler/pipeline/graph_passes.h"
#include "compiler/pipeline/kernel_passes.h"
#include "compiler/pipeline/plan_passes.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

bool StoresHalves(const Compilation& compilation) { return compilation.options.precision == "fp16"; }
bool WritesLoopsOut(const Compilation& compilation) {
  return !compilation.context.device->RepeatsLaunches() || compilation.options.disabled_passes.count("loops") > 0 ||
         passes::HasUnalignedLoops(compilation);
}
bool HasConstantPool(const Compilation& compilation) { return compilation.constants != nullptr; }

// The parts of simplify, which ecg-opt runs alone.
template <ecg::Graph (*kPart)(const ecg::Graph&)>
absl::Status Alone(Compilation* compilation) {
  compilation->planned->graph = kPart(compilation->planned->graph);
  return absl::OkStatus();
}

using P = PassPart;
using V = Verifier;

// name, stage, part, function, verifier, can be disabled, why it stands there, condition, function over a bundle
constexpr Pass kRows[] = {
    {"import", "import", P::kGraph, passes::Import, V::kGraph, false, "first: everything else needs a graph"},
    {"unroll-loops", "import", P::kGraph, passes::UnrollLoops, V::kGraph, false,
     "after import: everything behind it sees loops only where the target's runtime can repeat launches",
     WritesLoopsOut},
    {"loops", "import", P::kWithin, nullptr, V::kEnclosing, true,
     "within unroll-loops: without it every loop is written out"},
    {"simplify-narrow", "simplify", P::kGraph, passes::SimplifyNarrow, V::kGraph, false,
     "before rewrite, whose patterns assume simple graphs; it keeps the narrow constants that quantised rules look "
     "for"},
    {"rewrite", "rewrite", P::kGraph, passes::Rewrite, V::kGraph, true,
     "before layouts and plan, which judge the operators that remain"},
    {"simplify", "rewrite", P::kGraph, passes::Simplify, V::kGraph, false,
     "after rewrite: it folds what the rules leave constant, and the narrow constants that no rule took"},
    {"remove-noops", "simplify", P::kWithin, Alone<simplify::RemoveNoops>, V::kGraph, false,
     "within simplify: before folding, which could copy what an Identity only renames"},
    {"fold-constants", "simplify", P::kWithin, Alone<simplify::FoldConstants>, V::kGraph, false,
     "within simplify: before share-equal, so that equal results meet as equal constants"},
    {"share-equal", "simplify", P::kWithin, Alone<simplify::ShareEqual>, V::kGraph, false,
     "within simplify: after folding"},
    {"remove-dead", "simplify", P::kWithin, Alone<simplify::RemoveDead>, V::kGraph, false,
     "within simplify: first, so that nothing is folded that no output needs, and last"},
    {"carry-permutations", "plan", P::kWithin, Alone<simplify::CarryPermutations>, V::kGraph, true,
     "within the comparison of whole plans: the plan with it is one more, which has to be measured faster"},
    {"store-halves", "rewrite", P::kGraph, passes::StoreHalves, V::kGraph, false,
     "after simplify, which has folded constants in full precision; --precision asks for it", StoresHalves},
    {"share-constants", "rewrite", P::kGraph, passes::ShareConstants, V::kGraph, false,
     "after the last pass that makes constants; only a bundle of several programs has something to share",
     HasConstantPool},
    {"round-products", "rewrite", P::kGraph, passes::RoundProducts, V::kGraph, false,
     "after the last pass that changes what operators compute, and before those that hide constants from value ranges "
     "and take operators apart",
     passes::RoundsLikeOperators},
    {"merge-slices", "rewrite", P::kGraph, passes::MergeSlices, V::kGraph, true,
     "after every pass that knows operators or changes types, since it leaves expressions; before plan, which would "
     "meet each slice"},
    {"open-indices", "rewrite", P::kGraph, passes::OpenIndices, V::kGraph, true,
     "last over the graph, because other passes would treat its opaque constants like any other"},
    {"open-for-planner", "rewrite", P::kGraph, passes::OpenForPlanner, V::kGraph, true,
     "after every other pass over the graph: no rule knows what is left of an operator; only some planners ask for it",
     passes::PlannerWantsOpened},
    {"unroll-unaligned-loops", "rewrite", P::kGraph, passes::UnrollLoops, V::kGraph, false,
     "behind all passes that change what a loop hands on, where one has made that no whole number of lines",
     passes::HasUnalignedLoops},
    {"separate-loop-values", "rewrite", P::kGraph, passes::SeparateLoopValues, V::kGraph, false,
     "behind all passes that remove copies, since it adds some, and before layout, which sees them"},
    {"open-composites", "rewrite", P::kWithin, Alone<simplify::OpenComposites>, V::kGraph, false,
     "within open-for-planner: all that it does"},
    {"layout", "layout", P::kPlan, passes::Layout, V::kLayouts, true,
     "before plan: a layout changes which fusion blocks are fast"},
    {"plan", "plan", P::kPlan, passes::Plan, V::kPlan, false, "after layout; --planner chooses which planner it is"},
    {"beyond-table", "plan", P::kWithin, nullptr, V::kEnclosing, true,
     "within plan: after the mapping table's fusions, it tries fusion blocks that the table keeps apart"},
    {"elide-copies", "plan", P::kPlan, passes::ElideCopies, V::kElided, true,
     "before launches: a fusion block whose copies are elided has none", passes::SharesMemory},
    {"place-loops", "plan", P::kPlan, passes::PlaceLoops, V::kElided, false,
     "before launches: what begins and ends a loop has none"},
    {"launches", "plan", P::kPlan, passes::Launches, V::kLaunches, false,
     "after elide-copies: each fusion block that still has a kernel becomes a launch"},
    {"batch-launches", "plan", P::kPlan, passes::BatchLaunches, V::kLaunches, true,
     "after launches, and with the copies elided that would order kernels", passes::SharesMemory},
    {"concurrent-launches", "plan", P::kPlan, passes::ConcurrentLaunches, V::kLaunches, true,
     "after batch-launches: a batch is one launch, and shares the units already", passes::SharesMemory},
    {"tune", "tune", P::kKernels, passes::Tune, V::kTe, false,
     "after launches, for the fusion blocks that have kernels; the schedules that it tries are verified as they are "
     "made",
     passes::MayTune},
    {"kernels", "lower", P::kKernels, passes::Kernels, V::kMovement, false, "after tune, whose schedules it takes"},
    {"hold-once", "lower", P::kBundle, nullptr, V::kMovement, true,
     "after the kernels of all programs, and before share-packings, which would change the schedule of the product",
     nullptr, passes::HoldOnce},
    {"share-packings", "lower", P::kBundle, nullptr, V::kMovement, true,
     "it compares how the kernels of all programs pack a constant", nullptr, passes::SharePackings},
    {"join-launches", "lower", P::kBundle, nullptr, V::kMovement, true,
     "last: what it joins is no kernel of one fusion block any more, which passes before it schedule again",
     passes::MayJoinLaunches, passes::JoinLaunches},
};

// The model's rows, and the rows of fusion block passes behind the pass that first runs them.
std::vector<Pass> AllRows() {
  std::vector<Pass> all;
  for (const Pass& row : kRows) {
    all.push_back(row);
    if (std::string(row.name) != "plan") continue;
    for (const FusionBlockPassRow& fusion_block : FusionBlockPasses()) {
      const Verifier verifier = fusion_block.pass == FusionBlockPass::kSchedule ? V::kMovement : V::kTe;
      all.push_back(
          {fusion_block.name, "plan", P::kBlock, nullptr, verifier, fusion_block.can_disable, fusion_block.why});
    }
  }
  return all;
}

const char* PartName(PassPart part) {
  switch (part) {
    case PassPart::kGraph:
      return "graph";
    case PassPart::kPlan:
      return "plan";
    case PassPart::kKernels:
      return "kernels";
    case PassPart::kBundle:
      return "bundle";
    case PassPart::kWithin:
      return "within";
    case PassPart::kBlock:
      return "block";
  }
  return "";
}

}  // namespace

const char* VerifierName(Verifier verifier) {
  switch (verifier) {
    case Verifier::kGraph:
      return "graph";
    case Verifier::kLayouts:
      return "layout";
    case Verifier::kPlan:
      return "plan";
    case Verifier::kElided:
      return "list of elided copies";
    case Verifier::kLaunches:
      return "list of launches";
    case Verifier::kTe:
      return "program";
    case Verifier::kMovement:
      return "movement graph";
    case Verifier::kEnclosing:
      return "result";
  }
  return "";
}

absl::Span<const Pass> Passes() {
  static const std::vector<Pass> kAll = AllRows();
  return kAll;
}

const Pass* FindPass(const std::string& name) {
  const absl::Span<const Pass> all = Passes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Pass& pass) { return pass.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> PassesToDisable() {
  std::vector<std::string> names;
  for (const Pass& pass : Passes()) {
    if (pass.can_disable) names.push_back(pass.name);
  }
  return names;
}

absl::Status CheckDisabled(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const Pass* pass = FindPass(name);
    if (pass != nullptr && pass->can_disable) continue;
    return absl::InvalidArgumentError(absl::StrCat(pass == nullptr
                                                       ? absl::StrCat("no pass '", name, "' to leave out")
                                                       : absl::StrCat("pass '", name, "' cannot be disabled"),
                                                   ": use one of ", absl::StrJoin(PassesToDisable(), ", ")));
  }
  return absl::OkStatus();
}

std::string PrintPasses() {
  std::string text;
  for (const Pass& pass : Passes()) {
    absl::StrAppendFormat(&text, "%-17s %-8s verified: %-22s %s %s\n", pass.name, PartName(pass.part),
                          VerifierName(pass.verifier), pass.can_disable ? "can be disabled; " : "always runs;     ",
                          pass.why);
  }
  return text;
}

}  // namespace fusion
