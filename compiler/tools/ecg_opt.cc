// ecg-opt [FILE|-] [--pass P,…] [--print FORM] [--planner P] [--math fast|strict|relaxed] [--disable-rule ID]
//         [--device MODEL.json]
// Reads a graph's text, runs passes in the order given, and prints the graph or a form that the compiler makes of it.
// The golden tests (tests/golden) contain its inputs and outputs.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/api/modes.h"
#include "compiler/backends/cpu/print_kernel.h"
#include "compiler/choose_layouts/choose_layouts.h"
#include "compiler/measure/block_oracle.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/plan/mapping_table.h"
#include "compiler/plan/plan.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/rule.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/simplify/passes.h"
#include "compiler/tools/offline_device.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

const char kUsage[] =
    "usage: ecg-opt [FILE|-] [--pass P,...] [--print FORM] [--planner P] [--math fast|strict|relaxed]\n"
    "               [--disable-rule ID] [--device MODEL.json]\n"
    "  FILE       a graph's text; - or nothing reads standard input\n"
    "  --pass     in this order: simplify, rewrite, simplify-narrow (for before rewrite: constants stay narrow); or "
    "one\n"
    "             part of simplify: remove-noops, fold-constants, share-equal, remove-dead\n"
    "  --print    graph (default), plan, te, movement, cpp; or rules: how many rewrite rules there are, without a "
    "graph\n"
    "  --planner  for every form but graph: dnnfusion (default), none, ...\n";

struct SimplifyPass {
  const char* name;
  ecg::Graph (*run)(const ecg::Graph&);
};
constexpr SimplifyPass kSimplifyPasses[] = {
    {"simplify", simplify::Simplify},
    {"simplify-narrow", [](const ecg::Graph& g) { return simplify::Simplify(g, simplify::Widening::kKeep); }},
    {"remove-noops", simplify::RemoveNoops},
    {"fold-constants", simplify::FoldConstants},
    {"share-equal", simplify::ShareEqual},
    {"remove-dead", simplify::RemoveDead}};

struct Options {
  std::string file = "-";
  std::vector<std::string> passes;
  std::string form = "graph", planner = "dnnfusion", math = "fast";
  std::set<std::string> disabled_rules;
  DeviceModel device = OfflineDevice();
  bool help = false;
};

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

absl::StatusOr<Options> ReadOptions(const std::vector<std::string>& args) {
  Options options;
  bool have_file = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--help" || arg == "-h") {
      options.help = true;
      return options;
    }
    if (arg == "-" || arg.empty() || arg[0] != '-') {
      if (have_file) return absl::InvalidArgumentError(absl::StrCat("one file at a time: '", arg, "' is the second"));
      options.file = arg;
      have_file = true;
      continue;
    }
    RETURN_IF_ERROR(OneOf("option", arg, {"--pass", "--print", "--planner", "--math", "--disable-rule", "--device"}));
    if (i + 1 == args.size()) return absl::InvalidArgumentError(absl::StrCat(arg, " needs a value"));
    const std::string& value = args[++i];
    if (arg == "--pass") {
      std::vector<std::string> known{"rewrite"};
      for (const SimplifyPass& pass : kSimplifyPasses) known.push_back(pass.name);
      for (const std::string& pass : std::vector<std::string>(absl::StrSplit(value, ','))) {
        RETURN_IF_ERROR(OneOf(arg, pass, known));
        options.passes.push_back(pass);
      }
    } else if (arg == "--print") {
      RETURN_IF_ERROR(OneOf(arg, value, {"graph", "plan", "te", "movement", "cpp", "rules"}));
      options.form = value;
    } else if (arg == "--planner") {
      RETURN_IF_ERROR(OneOf(arg, value, PlannerNames()));
      options.planner = value;
    } else if (arg == "--math") {
      RETURN_IF_ERROR(OneOf(arg, value, MathModes()));
      options.math = value;
    } else if (arg == "--disable-rule") {
      RETURN_IF_ERROR(rewrite::CheckRuleId(value));
      options.disabled_rules.insert(value);
    } else {
      ASSIGN_OR_RETURN(const std::string json, ReadAll(value));
      ASSIGN_OR_RETURN(options.device, DeviceModelFromJson(json));
    }
  }
  return options;
}

// `fired` gets one comment line for each rewrite; the parser of graphs skips these lines.
absl::Status RunPass(const std::string& name, const Options& options, ecg::Graph* graph, std::string* fired) {
  if (name == "rewrite") {
    rewrite::Options rewrite_options;
    ASSIGN_OR_RETURN(rewrite_options.math, MathLevelOf(options.math));
    rewrite_options.disabled = options.disabled_rules;
    ASSIGN_OR_RETURN(rewrite::Result result, rewrite::Rewrite(*graph, rewrite_options));
    *graph = std::move(result.graph);
    for (const rewrite::Firing& firing : result.firings) {
      absl::StrAppend(fired, "; rewrite ", firing.rule, " saves ", firing.flops_saved, " FLOPs\n");
    }
  }
  for (const SimplifyPass& pass : kSimplifyPasses) {
    if (name == pass.name) *graph = pass.run(*graph);
  }
  return Annotate(ecg::Verify(*graph), absl::StrCat("after ", name));
}

std::string NodeText(const ecg::Graph& graph, ecg::NodeId id) {
  for (ecg::ValueId v : graph.node(id).outputs) {
    if (v == ecg::kNone) continue;
    const std::string& name = graph.value(v).name;
    return absl::StrCat("%", name.empty() ? absl::StrCat("v", v) : name, " ", graph.node(id).op);
  }
  return graph.node(id).op;
}

std::string PlanText(const ecg::Graph& graph, const FusionPlan& plan) {
  std::string text;
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    std::vector<std::string> nodes;
    for (ecg::NodeId id : plan.blocks[b].nodes) nodes.push_back(NodeText(graph, id));
    absl::StrAppend(&text, "block ", b, ": ", absl::StrJoin(nodes, ", "), "\n");
  }
  for (const Decision& d : plan.decisions) {
    absl::StrAppend(&text, ColourName(d.colour), d.fused ? " fused " : " apart ",
                    NodeText(graph, d.producer), " -> ", NodeText(graph, d.consumer), ": ", d.reason, "\n");
  }
  return text;
}

absl::StatusOr<std::string> BlockText(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes, int number,
                                      const Options& options, GraphBlockOracle* oracle) {
  const std::string name = absl::StrCat("block", number);
  if (options.form == "te") {
    ASSIGN_OR_RETURN(ops::LoweredBlock lowered, ops::LowerNodes(graph, nodes, LiveOutOf(graph, nodes)));
    ASSIGN_OR_RETURN(const te::Program stages, FormStages(std::move(lowered.program)));
    return te::Print(stages, name);
  }
  ASSIGN_OR_RETURN(const BlockKernel block, oracle->Kernel(nodes));
  if (options.form == "cpp") return cpu::PrintKernel(block.kernel, name, options.device);
  return absl::StrCat(name, ":", block.stitched ? "" : absl::StrCat(" not stitched: ", block.reason), "\n",
                      movement::Print(block.kernel));
}

absl::StatusOr<std::string> Run(const Options& options) {
  if (options.form == "rules") return rewrite::CountRules();
  ASSIGN_OR_RETURN(const std::string text, ReadAll(options.file));
  ASSIGN_OR_RETURN(ecg::Graph graph, ecg::Parse(text));
  if (options.passes.empty() && options.form == "graph") return ecg::Print(graph);
  RETURN_IF_ERROR(Annotate(ecg::Verify(graph), "the graph as given"));
  std::string result;
  for (const std::string& pass : options.passes) RETURN_IF_ERROR(RunPass(pass, options, &graph, &result));
  if (options.form == "graph") return result + ecg::Print(graph);

  ModelOracle latencies;
  CompileContext context;
  context.device = &options.device;
  context.oracle = &latencies;
  ASSIGN_OR_RETURN(const ValueLayouts layouts, ChooseLayouts(graph, options.device, /*threads=*/1));
  GraphBlockOracle oracle(context, /*threads=*/1);
  oracle.Start(&graph, &layouts);
  ASSIGN_OR_RETURN(const FusionPlan plan, FindPlanner(options.planner)->Plan(graph, options.device, oracle, {}));
  RETURN_IF_ERROR(CheckPlan(graph, plan));
  if (options.form == "plan") return PlanText(graph, plan);
  result.clear();
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    ASSIGN_OR_RETURN(const std::string block,
                     BlockText(graph, plan.blocks[b].nodes, static_cast<int>(b), options, &oracle));
    absl::StrAppend(&result, block, !block.empty() && block.back() == '\n' ? "" : "\n");
  }
  return result;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Options> options = ReadOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "error: %s\n%s", std::string(options.status().message()).c_str(), kUsage);
    return 2;
  }
  if (options->help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const absl::StatusOr<std::string> text = Run(*options);
  if (!text.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(text.status().message()).c_str());
    return 1;
  }
  std::fwrite(text->data(), 1, text->size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
