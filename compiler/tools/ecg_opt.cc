// ecg-opt reads a graph's text, runs passes of the compiler's table (compiler/pipeline/passes.h) in the order given,
// and prints the graph or a form that the compiler makes of it. It also begins at a later stage, where the text is what
// it prints of that stage: tensor expressions or movement graphs of fusion blocks. `ecg-opt --help` lists options and
// forms. The golden tests (tests/golden) contain its inputs and outputs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compiler/api/modes.h"
#include "compiler/backends/placement.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/check_options.h"
#include "compiler/pipeline/pass_runner.h"
#include "compiler/pipeline/realised_plan.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/rule.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/schedule/library/library_stage.h"
#include "compiler/schedule/schedule_fusion_block.h"
#include "compiler/tools/offline_device.h"
#include "compiler/tools/one_fusion_block.h"
#include "compiler/tools/stage_texts.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

struct Options {
  std::string file = "-";
  std::vector<std::string> passes;
  std::string form;  // "": that of the text
  CompileOptions compile;
  DeviceModel device = OfflineDevice();
  bool one_fusion_block = false;                    // the whole graph, instead of a planner's fusion blocks
  std::vector<std::string> hand_overs, directives;  // of that fusion block (one_fusion_block.h)
};

// The stages at which a text may begin, and the forms that can be made of it.
enum class Stage : uint8_t { kGraph, kTe, kMovement };
struct FormsOf {
  Stage stage;
  const char* what;
  std::vector<std::string> forms;  // its own first
};

const std::vector<std::string> kForms = {"graph",    "plan",     "te",     "movement", "cpp",   "layout",
                                         "launches", "lowering", "scopes", "choices",  "rules", "passes"};

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder"));
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return text;
}

absl::Status OneOf(const std::string& option, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", value, "' is unknown: use one of ", absl::StrJoin(allowed, ", ")));
}

// Can --pass name the row? Passes over a fusion block run on the tensor expressions of each fusion block.
bool MayRun(const Pass& pass) {
  if (pass.part == PassPart::kBlock) return true;
  return pass.verifier == Verifier::kGraph && pass.run != nullptr && std::string(pass.name) != "import";
}

std::vector<std::string> PassesToRun() {
  std::vector<std::string> names;
  for (const Pass& pass : Passes()) {
    if (MayRun(pass)) names.push_back(pass.name);
  }
  return names;
}

absl::Status Check(const Options& options) {
  if (!options.form.empty()) RETURN_IF_ERROR(OneOf("--print", options.form, kForms));
  for (const std::string& pass : options.passes) RETURN_IF_ERROR(OneOf("--pass", pass, PassesToRun()));
  RETURN_IF_ERROR(OneOf("--planner", options.compile.planner, PlannerNames()));
  RETURN_IF_ERROR(OneOf("--math", options.compile.math, MathModes()));
  for (const std::string& rule : options.compile.disabled_rules) RETURN_IF_ERROR(rewrite::CheckRuleId(rule));
  return CheckDisabled(options.compile.disabled_passes);
}

// Plans the whole graph as one fusion block, with what is asked for.
absl::Status PlanOneFusionBlock(const Options& options, Compilation* compilation) {
  Planned& planned = *compilation->planned;
  RETURN_IF_ERROR(RunPass(*FindPass("layout"), compilation));
  compilation->oracle->Start(&planned.graph, &planned.layouts);
  ASSIGN_OR_RETURN(const FusionBlock all, OneFusionBlock(planned.graph, options.hand_overs, options.directives));
  planned.plan.fusion_blocks = {all};
  RETURN_IF_ERROR(Annotate(CheckPlan(planned.graph, planned.plan), "--hand-over"));
  return compilation->oracle->Fit(planned.graph, all).status();
}

// Runs the fusion block passes that --pass names on a block's stages, where they have something to do.
absl::StatusOr<FusionBlockForm> RunFusionBlockPasses(FusionBlockForm form, const Options& options) {
  ChoiceLog choices;
  FusionBlockPassContext context;
  context.device = &options.device;
  context.choices = &choices;
  context.filter_outputs = 4;
  context.chunks = 4;
  context.product = OnlyProduct(form.program, options.device);
  for (const FusionBlockPassRow& row : FusionBlockPasses()) {
    const bool named = std::find(options.passes.begin(), options.passes.end(), row.name) != options.passes.end();
    const bool needed = row.pass == FusionBlockPass::kFormStages;
    if (row.run == nullptr || (!named && !needed)) continue;
    if (row.pass == FusionBlockPass::kBareProduct && context.product < 0) continue;
    ASSIGN_OR_RETURN(std::optional<FusionBlockForm> made,
                     RunFusionBlockPass(row.pass, form, context, DisabledFusionBlockPasses(options.compile)));
    if (made) form = *std::move(made);
    if (needed) context.product = OnlyProduct(form.program, options.device);
  }
  return form;
}

// The line in front of a kernel's movement graph.
std::string FusionBlockHead(const std::string& name, const std::string& reason) {
  return absl::StrCat(name, ":", reason.empty() ? "" : absl::StrCat(" ", reason), "\n");
}

absl::StatusOr<std::string> KernelText(const movement::Kernel& kernel, const std::string& head, const std::string& name,
                                       const Options& options) {
  if (options.form == "cpp") {
    const Placement place = PlaceKernel(kernel, options.device);
    return place.backend->PrintKernel(kernel, name, place.device);
  }
  return absl::StrCat(head, movement::Print(kernel));
}

absl::StatusOr<std::string> FusionBlockText(const Planned& planned, const FusionBlock& fusion_block, int number,
                                            const Options& options, GraphFusionOracle* oracle) {
  const std::string name = absl::StrCat("block", number);
  if (options.form == "te" || options.form == "lowering") {
    const ecg::Graph& graph = planned.graph;
    ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered,
                     ops::LowerNodes(graph, fusion_block.Members(), LiveOutOf(graph, fusion_block)));
    RETURN_IF_ERROR(VerifyAfter(FusionBlockPass::kLower, lowered.program));
    if (options.form == "lowering") return te::Print(lowered.program, name);
    ASSIGN_OR_RETURN(const FusionBlockForm form, RunFusionBlockPasses({std::move(lowered.program), {}, {}}, options));
    return te::Print(form.program, name);
  }
  ASSIGN_OR_RETURN(const FusionKernel fusion_kernel, oracle->Kernel(fusion_block));
  return KernelText(fusion_kernel.kernel, FusionBlockHead(name, fusion_kernel.reason), name, options);
}

// Runs the rows of the table up to the form that is asked for, and prints it. `graph` is verified.
absl::StatusOr<std::string> Run(const Options& options, ecg::Graph graph) {
  ModelOracle latencies;
  CompileContext given;
  given.device = &options.device;
  given.oracle = &latencies;
  DeviceModel device;
  const CompileContext context = ContextFor(options.compile, given, &device);
  GraphFusionOracle oracle(context, /*threads=*/1, DisabledFusionBlockPasses(options.compile));
  ModelFiles files;
  CompileAccount account;
  StageClock clock(context, &account);
  Planned planned;
  planned.graph = std::move(graph);
  Compilation compilation{files, options.compile, context, &oracle, &clock, &account, &planned};
  RETURN_IF_ERROR(CheckOptions(options.compile, context));
  for (const std::string& name : options.passes) {
    const Pass& pass = *FindPass(name);
    if (pass.part != PassPart::kBlock) RETURN_IF_ERROR(RunPass(pass, &compilation));
  }
  if (options.form == "graph") {
    // The parser of graphs skips these lines.
    std::string fired;
    for (const RewriteAccount& rewrite : account.rewrites) {
      absl::StrAppend(&fired, "; rewrite ", rewrite.rule, " saves ", rewrite.flops_saved, " FLOPs\n");
    }
    return fired + ecg::Print(planned.graph);
  }
  if (options.one_fusion_block) {
    RETURN_IF_ERROR(PlanOneFusionBlock(options, &compilation));
  } else {
    RETURN_IF_ERROR(RunPasses(Passes(), PassPart::kPlan, &compilation));
  }
  if (options.form == "scopes") {
    ASSIGN_OR_RETURN(const auto realised, RealisePlan(planned.graph, planned.plan, &oracle));
    return ScopesText(planned.graph, planned.plan, realised);
  }
  if (options.form == "choices") return ChoicesText(planned, &oracle);
  if (options.form == "layout") return LayoutText(planned.graph, planned.layouts);
  if (options.form == "plan") return PlanText(planned.graph, planned.plan);
  if (options.form == "launches") return LaunchesText(planned);
  std::string result;
  for (size_t b = 0; b < planned.plan.fusion_blocks.size(); ++b) {
    ASSIGN_OR_RETURN(const std::string fusion_block,
                     FusionBlockText(planned, planned.plan.fusion_blocks[b], static_cast<int>(b), options, &oracle));
    absl::StrAppend(&result, fusion_block, !fusion_block.empty() && fusion_block.back() == '\n' ? "" : "\n");
  }
  return result;
}

// A fusion block in a text of several: the line in front of it, if any, and its own text.
struct FusionBlockOfText {
  std::string head, text;
};

// Cuts a text of fusion blocks where a te program begins, or behind the lines "block0: …" in front of movement graphs.
// Comments are lines that begin with a semicolon; they stay behind.
std::vector<FusionBlockOfText> FusionBlocksOf(const std::string& text, Stage stage) {
  std::vector<FusionBlockOfText> fusion_blocks;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, ";")) continue;
    const bool head = stage == Stage::kMovement && absl::StartsWith(line, "block");
    if (head || (stage == Stage::kTe && absl::StartsWith(line, "te ")) || fusion_blocks.empty()) {
      fusion_blocks.push_back({head ? absl::StrCat(line, "\n") : "", ""});
      if (head) continue;
    }
    absl::StrAppend(&fusion_blocks.back().text, line, "\n");
  }
  return fusion_blocks;
}

// The stage of a text, by its first word that is no comment.
Stage StageOf(const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view begin = absl::StripLeadingAsciiWhitespace(line);
    if (begin.empty() || absl::StartsWith(begin, ";")) continue;
    if (absl::StartsWith(begin, "te ")) return Stage::kTe;
    if (absl::StartsWith(begin, "block") || absl::StartsWith(begin, "buffer ")) return Stage::kMovement;
    break;
  }
  return Stage::kGraph;
}

// Runs from the tensor expressions of a fusion block on.
absl::StatusOr<std::string> FromTe(const std::string& text, const std::string& name, const Options& options) {
  ASSIGN_OR_RETURN(te::Program program, te::Parse(text));
  if (options.form == "lowering") return te::Print(program, name);
  ASSIGN_OR_RETURN(const FusionBlockForm form, RunFusionBlockPasses({std::move(program), {}, {}}, options));
  if (options.form == "te") return te::Print(form.program, name);
  ASSIGN_OR_RETURN(const ScheduledFusionBlock fusion_block,
                   ScheduleFusionBlock(form.program, form.layouts, options.device,
                                       {{}, DisabledFusionBlockPasses(options.compile)}));
  return KernelText(fusion_block.kernel, FusionBlockHead(name, fusion_block.reason), name, options);
}

absl::StatusOr<std::string> FromMovement(const FusionBlockOfText& fusion_block, const std::string& name,
                                         const Options& options) {
  ASSIGN_OR_RETURN(const movement::Kernel kernel, movement::Parse(fusion_block.text));
  return KernelText(kernel, fusion_block.head, name, options);
}

absl::StatusOr<std::string> FromGraph(const std::string& text, const Options& options) {
  ASSIGN_OR_RETURN(ecg::Graph graph, ecg::Parse(text));
  if (options.passes.empty() && options.form == "graph") return ecg::Print(graph);
  RETURN_IF_ERROR(Annotate(ecg::Verify(graph), "the graph as given"));
  return Run(options, std::move(graph));
}

absl::Status CheckPassesFor(const FormsOf& input, const Options& options) {
  for (const std::string& pass : options.passes) {
    if (input.stage == Stage::kTe && FindPass(pass)->part == PassPart::kBlock) continue;
    return absl::InvalidArgumentError(absl::StrCat("--pass '", pass, "' does not run on ", input.what));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Output(Options options) {
  if (options.form == "rules") return rewrite::CountRules();
  if (options.form == "passes") return PrintPasses();
  ASSIGN_OR_RETURN(const std::string text, ReadAll(options.file));
  const FormsOf inputs[] = {{Stage::kGraph, "a graph", kForms},
                            {Stage::kTe, "tensor expressions", {"te", "lowering", "movement", "cpp"}},
                            {Stage::kMovement, "a movement graph", {"movement", "cpp"}}};
  const FormsOf& input = inputs[static_cast<int>(StageOf(text))];
  if (options.form.empty()) options.form = input.forms.front();
  if (input.stage == Stage::kGraph) return FromGraph(text, options);
  RETURN_IF_ERROR(OneOf(absl::StrCat("--print of ", input.what), options.form, input.forms));
  RETURN_IF_ERROR(CheckPassesFor(input, options));
  std::string result;
  const std::vector<FusionBlockOfText> fusion_blocks = FusionBlocksOf(text, input.stage);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const std::string name = absl::StrCat("block", b);
    ASSIGN_OR_RETURN(const std::string fusion_block, input.stage == Stage::kTe
                                                         ? FromTe(fusion_blocks[b].text, name, options)
                                                         : FromMovement(fusion_blocks[b], name, options));
    absl::StrAppend(&result, fusion_block, !fusion_block.empty() && fusion_block.back() == '\n' ? "" : "\n");
  }
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Reads a graph's text, runs passes of the compiler's table in the order given, and prints the graph or a form "
      "that the compiler makes of it. It also reads the tensor expressions and movement graphs that it prints, and "
      "makes "
      "the forms behind them");
  Options options;
  std::vector<std::string> rules, disabled;
  std::string device_file;
  app.add_option("FILE", options.file, "a text; - or nothing reads standard input");
  app.add_option("--pass", options.passes,
                 absl::StrCat("passes to run: ", absl::StrJoin(PassesToRun(), ", "),
                              "; those over fusion blocks change what --print te shows"))
      ->delimiter(',')
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--print", options.form,
                 absl::StrCat(absl::StrJoin(kForms, ", "),
                              "; cpp: the kernels' text, in the language of the device; passes: the table of passes; "
                              "rules: how many rewrite rules there are; both without a graph"));
  app.add_option("--planner", options.compile.planner, absl::StrJoin(PlannerNames(), ", "));
  app.add_option("--math", options.compile.math, absl::StrJoin(MathModes(), ", "));
  app.add_option("--precision", options.compile.precision, absl::StrJoin(Precisions(), ", "));
  app.add_option("--disable-rule", rules, "leave out a rewriting rule")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--disable-pass", disabled, absl::StrCat("leave out a pass: ", absl::StrJoin(PassesToDisable(), ", ")))
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--device", device_file,
                 absl::StrCat("a device model as JSON, or one of ", absl::StrJoin(StoredTargets(), ", "),
                              ", instead of one core with AVX-512"));
  app.add_flag("--one-fusion-block", options.one_fusion_block,
               "one fusion block of the whole graph, instead of a planner's");
  app.add_option(
         "--hand-over", options.hand_overs,
         "with --one-fusion-block: VALUE>VALUE:SCOPE..SCOPE, the scopes at which the operator that makes the first "
         "value hands it to the one that makes the second")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option(
         "--directive", options.directives,
         "with --one-fusion-block: VALUE:CHOICE=ALTERNATIVE or CHOICE=ALTERNATIVE, what the schedule takes where the "
         "operator that makes the value is computed, or in the whole kernel; --print choices names them")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.compile.disabled_rules.insert(rules.begin(), rules.end());
  options.compile.disabled_passes.insert(disabled.begin(), disabled.end());
  const auto fail = [](const absl::Status& status, int code) {
    std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
    return code;
  };
  if (const absl::Status checked = Check(options); !checked.ok()) return fail(checked, 2);
  if (absl::StatusOr<DeviceModel> stored = StoredDevice(device_file); stored.ok()) {
    options.device = *std::move(stored);
  } else if (!device_file.empty()) {
    const absl::StatusOr<std::string> json = ReadAll(device_file);
    if (!json.ok()) return fail(json.status(), 2);
    absl::StatusOr<DeviceModel> device = DeviceModelFromJson(*json);
    if (!device.ok()) return fail(device.status(), 2);
    options.device = *std::move(device);
  }
  const absl::StatusOr<std::string> text = Output(options);
  if (!text.ok()) return fail(text.status(), 1);
  std::fwrite(text->data(), 1, text->size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
