// graph-turbo plans a model depth first for one cluster of an accelerator (compiler/plan/planners/graph_turbo) and
// prints at which level each output of an operator stays, beside the operators of TVM's fixed patterns, whose outputs
// all go to DDR: GraphTurbo's Table 3. tests/bench/graphturbo.py makes the table from it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/import.h"
#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion {
namespace {

struct Options {
  std::string model, machine = "stcp920";
  std::vector<std::string> shapes, dims;
  int64_t float_bytes = 2;
  double local_bytes = 0;  // 0: the machine's
  bool literal = false, text = false;
};

// Parses NAME=N,N,…
absl::StatusOr<std::pair<std::string, Shape>> NamedExtents(const std::string& option, const std::string& text) {
  const size_t eq = text.rfind('=');
  Shape shape;
  if (eq == std::string::npos || eq == 0)
    return absl::InvalidArgumentError(absl::StrCat(option, " ", text, ": expected NAME=N,N,…"));
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text.substr(eq + 1), ','))) {
    if (!absl::SimpleAtoi(part, &shape.emplace_back()) || shape.back() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(option, " ", text, ": '", part, "' is no positive number"));
    }
  }
  return std::make_pair(text.substr(0, eq), std::move(shape));
}

absl::StatusOr<ecg::Graph> ReadGraph(const Options& options) {
  if (absl::EndsWith(options.model, ".txt")) {
    std::ifstream file(options.model);
    if (!file.is_open()) return absl::NotFoundError(absl::StrCat("cannot read ", options.model));
    return ecg::Parse(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  }
  onnx_import::ImportRequest request;
  request.model_path = options.model;
  for (const std::string& text : options.shapes) {
    ASSIGN_OR_RETURN(auto named, NamedExtents("--shape", text));
    request.shapes.insert(std::move(named));
  }
  for (const std::string& text : options.dims) {
    ASSIGN_OR_RETURN(const auto named, NamedExtents("--dim", text));
    if (named.second.size() != 1) return absl::InvalidArgumentError(absl::StrCat("--dim ", text, ": expected NAME=N"));
    request.dims[named.first] = named.second[0];
  }
  ASSIGN_OR_RETURN(onnx_import::ImportedModel imported, onnx_import::ImportOnnx(request));
  return simplify::Simplify(imported.graph);
}

nlohmann::ordered_json CountsJson(const graph_turbo::ScopeCounts& counts) {
  return {{"ddr", counts.ddr.count},       {"llb", counts.global.count},       {"l1", counts.local.count},
          {"ddr_bytes", counts.ddr.bytes}, {"llb_bytes", counts.global.bytes}, {"l1_bytes", counts.local.bytes}};
}

absl::StatusOr<std::string> Run(const Options& options) {
  ASSIGN_OR_RETURN(const dsa::Machine machine, dsa::StoredMachine(options.machine));
  ASSIGN_OR_RETURN(const ecg::Graph graph, ReadGraph(options));
  ASSIGN_OR_RETURN(const auto layers, graph_turbo::LayersOf(graph));
  ASSIGN_OR_RETURN(const graph_turbo::OpGraph op_graph, graph_turbo::MakeOpGraph(graph, layers, {options.float_bytes}));
  graph_turbo::Cluster cluster;
  cluster.cores = machine.cores();
  cluster.local_bytes = options.local_bytes > 0 ? options.local_bytes : machine.GroupOf(0).local_bytes.value;
  cluster.literal = options.literal;
  cluster.global_bytes = machine.global_bytes.value;
  const graph_turbo::DepthFirstPlan plan = graph_turbo::MakeDepthFirstPlan(op_graph, cluster);
  if (options.text) return graph_turbo::Describe(op_graph, plan);
  int64_t made = 0, unsplit = 0;
  for (const graph_turbo::Op& op : op_graph.ops) made += static_cast<int64_t>(op.outputs.size());
  for (const auto& grouped : plan.grouping.sub_graphs) unsplit += !grouped.best;
  const nlohmann::ordered_json report = {{"model", options.model},
                                         {"machine", machine.name},
                                         {"nodes", graph.nodes().size()},
                                         {"tvm_ddr", made},
                                         {"sub_graphs", plan.grouping.sub_graphs.size()},
                                         {"sub_graphs_that_do_not_fit", unsplit},
                                         {"instances", plan.instances.instances.size()},
                                         {"edges_inherited", plan.instances.inherited_edges},
                                         {"edges", plan.instances.edges},
                                         {"order", plan.order_name},
                                         {"recomputation", plan.recomputation},
                                         {"returned", plan.returned},
                                         {"outputs", CountsJson(plan.outputs)},
                                         {"movements", CountsJson(plan.movement_outputs)}};
  return report.dump(2) + "\n";
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Plans a model depth first for one cluster of an accelerator, and prints as JSON at which level the outputs of "
      "its operators stay");
  Options options;
  app.add_option("MODEL", options.model, "an .onnx file, or a graph's text in a .txt file")->required();
  app.add_option("--machine", options.machine, absl::StrJoin(dsa::StoredMachineNames(), ", "));
  app.add_option("--shape", options.shapes, "INPUT=N,N,…: another shape of an input: the batch of a cluster")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--dim", options.dims, "NAME=N: the extent of a symbolic dimension")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--float-bytes", options.float_bytes, "the width of f32 on the accelerator")->check(CLI::Range(1, 8));
  app.add_option("--local-bytes", options.local_bytes, "of a core's LB, instead of the machine's")
      ->check(CLI::PositiveNumber);
  app.add_flag("--literal", options.literal, "without the departures from the paper that can be left out");
  app.add_flag("--text", options.text, "print the sub-graphs instead");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<std::string> report = Run(options);
  if (!report.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(report.status().message()).c_str());
    return 1;
  }
  std::printf("%s", report->c_str());
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
