// graph-turbo plans a model depth first for one cluster of an accelerator (compiler/plan/planners/graph_turbo) and
// prints at which level each output of an operator stays, beside the operators of TVM's fixed patterns, whose outputs
// all go to DDR: GraphTurbo's Table 3. With --simulate it also makes programs of the plan and of baselines, and counts
// their cycles on the simulator (runtime/devices/dsa_sim); --numbers computes a program's numbers there and compares
// them with the reference interpreter. tests/bench/graphturbo.py makes tables from it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/import.h"
#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"
#include "compiler/plan/planners/graph_turbo/lowering/run_program.h"
#include "compiler/plan/planners/graph_turbo/lowering/variants.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/verdict/compare.h"

namespace fusion {
namespace {

struct Options {
  std::string model, machine = "stcp920";
  std::vector<std::string> shapes, dims;
  int64_t float_bytes = 2;
  double local_bytes = 0;  // 0: the machine's
  bool literal = false, text = false, without_weights = false;
  std::vector<std::string> simulate;
  std::vector<double> rates = {1};
  std::vector<double> weights_shares = {0.125};
  std::string numbers, program;
  int jobs = 1;
  bool check = false;
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

nlohmann::ordered_json TimingJson(const dsa::Timing& timing) {
  nlohmann::ordered_json units = nlohmann::ordered_json::object();
  for (const auto& [name, use] : timing.units) {
    units[name] = use.work_cycles / (timing.cycles * static_cast<double>(use.units));
  }
  return {{"cycles", timing.cycles},
          {"seconds", timing.seconds},
          {"ddr_read_bytes", timing.ddr_read_bytes},
          {"ddr_written_bytes", timing.ddr_written_bytes},
          {"moved_bytes", timing.moved_bytes},
          {"redistributed_bytes", timing.redistributed_bytes},
          {"utilisation", std::move(units)}};
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DType FloatType(int64_t bytes) { return bytes == 2 ? DType::kF16 : DType::kF32; }

// A program to be timed, which several variants and shares may have in common.
struct Simulation {
  std::string variant;
  const std::vector<graph_turbo::Step>* steps = nullptr;
  std::string program_file;  // empty: nobody wants to read the program
  absl::StatusOr<nlohmann::ordered_json> report = nlohmann::ordered_json();
};

// Lowers the steps and counts the program's cycles, with all assumed rates multiplied by each of the factors.
absl::StatusOr<nlohmann::ordered_json> SimulateSteps(const graph_turbo::OpGraph& op_graph, const Simulation& wanted,
                                                     const dsa::Machine& machine, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool instructions = options.check || !wanted.program_file.empty();
  ASSIGN_OR_RETURN(
      const graph_turbo::LoweredProgram lowered,
      graph_turbo::LowerSteps(op_graph, *wanted.steps, wanted.variant, machine, FloatType(options.float_bytes),
                              instructions));
  nlohmann::ordered_json report = {{"lowering_s", SecondsSince(start)}, {"instructions", lowered.workload.size()}};
  if (options.check) {
    RETURN_IF_ERROR(dsa::CheckOperands(machine, lowered.program));
    RETURN_IF_ERROR(dsa::CheckAccesses(machine, lowered.program));
  }
  for (const double rate : options.rates) {
    const auto timing_start = std::chrono::steady_clock::now();
    nlohmann::ordered_json timing = TimingJson(
        dsa::TimeProgram(machine.WithAssumedRates(rate), lowered.workload, /*spans=*/false));
    timing["assumed_rates"] = rate;
    timing["timing_s"] = SecondsSince(timing_start);
    report["timings"].push_back(std::move(timing));
  }
  if (!wanted.program_file.empty()) std::ofstream(wanted.program_file) << dsa::Print(lowered.program);
  return report;
}

// Simulations are independent of each other. The last ones are the longest, and begin first.
void RunAll(const graph_turbo::OpGraph& op_graph, const dsa::Machine& machine, const Options& options,
            std::vector<Simulation>* all) {
  std::atomic<size_t> begun = 0;
  const auto run = [&] {
    for (size_t k = begun++; k < all->size(); k = begun++) {
      Simulation& one = (*all)[all->size() - 1 - k];
      one.report = SimulateSteps(op_graph, one, machine, options);
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(static_cast<size_t>(options.jobs), all->size()); ++t) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

// By variant: a simulation, or, of those with instances, one for each of the shares of the LBs that plans keep for
// weights. Programs that are alike are counted once.
absl::StatusOr<nlohmann::ordered_json> Simulate(const graph_turbo::OpGraph& op_graph,
                                                const graph_turbo::Cluster& cluster, const dsa::Machine& machine,
                                                const Options& options) {
  // The report of a variant with a share, and the simulation that completes it.
  struct Entry {
    std::string variant;
    nlohmann::ordered_json report;
    size_t simulation = 0;
  };
  std::vector<Entry> entries;
  std::vector<Simulation> all;
  // By share; -1: without instances.
  std::map<double, std::vector<graph_turbo::Step>> steps_of;
  for (const std::string& variant : options.simulate) {
    ASSIGN_OR_RETURN(const bool instances, graph_turbo::HasInstances(variant));
    for (const double share : instances ? options.weights_shares : std::vector<double>{-1}) {
      const auto start = std::chrono::steady_clock::now();
      const auto [steps, added] = steps_of.try_emplace(share);
      if (added) {
        graph_turbo::Cluster with_share = cluster;
        with_share.weights_share = share;
        ASSIGN_OR_RETURN(steps->second, graph_turbo::StepsOfVariant(op_graph, variant, with_share));
      }
      Entry& entry = entries.emplace_back(variant);
      entry.report = {{"planning_s", SecondsSince(start)}};
      if (instances) entry.report["weights_share"] = share;
      entry.simulation = all.size();
      for (size_t known = 0; known < all.size(); ++known) {
        ASSIGN_OR_RETURN(const bool alike, graph_turbo::EqualButForSteps(all[known].variant, variant));
        if (alike && (all[known].steps == &steps->second || *all[known].steps == steps->second)) {
          entry.simulation = known;
        }
      }
      if (entry.simulation == all.size()) all.push_back({variant, &steps->second});
    }
  }
  if (!entries.empty()) all[entries.back().simulation].program_file = options.program;
  RunAll(op_graph, machine, options, &all);
  nlohmann::ordered_json simulations = nlohmann::ordered_json::object();
  for (Entry& entry : entries) {
    const auto& made = all[entry.simulation].report;
    RETURN_IF_ERROR(Annotate(made.status(), entry.variant));
    entry.report.update(*made);
    simulations[entry.variant].push_back(std::move(entry.report));
  }
  return simulations;
}

// Computes a variant's numbers in f32 on the simulator, which checks the program, and compares them with the reference.
absl::StatusOr<nlohmann::ordered_json> Numbers(const ecg::Graph& graph, const graph_turbo::OpGraph& op_graph,
                                               const graph_turbo::Cluster& cluster, const dsa::Machine& machine,
                                               const std::string& variant) {
  std::vector<Tensor> inputs;
  for (const ecg::ValueId id : graph.inputs()) {
    const ecg::ValueType& type = graph.value(id).type;
    inputs.push_back(RandomTensor(type.dtype, type.shape, DeriveSeed(1, inputs.size())));
  }
  ASSIGN_OR_RETURN(const graph_turbo::LoweredProgram lowered,
                   graph_turbo::LowerVariant(op_graph, variant, cluster, machine, DType::kF32));
  auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const graph_turbo::ProgramRun run,
                   graph_turbo::RunProgram(graph, op_graph, lowered, machine, inputs));
  const double simulation_s = SecondsSince(start);
  start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::vector<Tensor> expected, ecg::Interpret(graph, inputs));
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (size_t o = 0; o < expected.size(); ++o) {
    ASSIGN_OR_RETURN(const Comparison comparison, CompareTensors(run.outputs[o], expected[o]));
    outputs.push_back({{"name", graph.value(graph.outputs()[o]).name},
                       {"ok", comparison.ok()},
                       {"elements", expected[o].num_elements()},
                       {"max_rel_err", comparison.max_rel_err},
                       {"tolerance", comparison.tolerance}});
  }
  return nlohmann::ordered_json{{"variant", variant},
                                {"instructions", lowered.program.instructions.size()},
                                {"simulation_s", simulation_s},
                                {"interpreter_s", SecondsSince(start)},
                                {"outputs", std::move(outputs)}};
}

absl::StatusOr<std::string> Run(const Options& options) {
  ASSIGN_OR_RETURN(dsa::Machine machine, dsa::StoredMachine(options.machine));
  if (options.local_bytes > 0) {
    for (dsa::CoreGroup& group : machine.groups) {
      if (group.local_bytes.value > 0)
        group.local_bytes = {options.local_bytes, options.local_bytes, options.local_bytes, "given"};
    }
  }
  ASSIGN_OR_RETURN(const ecg::Graph graph, ReadGraph(options));
  ASSIGN_OR_RETURN(const auto layers, graph_turbo::LayersOf(graph));
  ASSIGN_OR_RETURN(const graph_turbo::OpGraph op_graph, graph_turbo::MakeOpGraph(graph, layers, {options.float_bytes}));
  graph_turbo::Cluster cluster;
  cluster.cores = machine.cores();
  cluster.local_bytes = machine.GroupOf(0).local_bytes.value;
  cluster.weights_share = options.weights_shares[0];
  cluster.literal = options.literal;
  cluster.weights = !options.without_weights;
  cluster.global_bytes = machine.global_bytes.value;
  const dsa::Machine one = graph_turbo::OneCluster(machine);
  if (!options.numbers.empty()) {
    ASSIGN_OR_RETURN(const nlohmann::ordered_json numbers, Numbers(graph, op_graph, cluster, one, options.numbers));
    return numbers.dump(2) + "\n";
  }
  if (!options.simulate.empty()) {
    ASSIGN_OR_RETURN(const nlohmann::ordered_json simulations, Simulate(op_graph, cluster, one, options));
    return simulations.dump(2) + "\n";
  }
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
                                         {"weight_bytes", plan.weight_bytes},
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
  app.add_flag("--without-weights", options.without_weights, "plan as if weights caused no traffic");
  app.add_flag("--text", options.text, "print the sub-graphs instead");
  app.add_option("--weights-share", options.weights_shares,
                 "the part of each LB that plans keep for weights; with --simulate any number of them")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 0.9));
  app.add_option("--simulate", options.simulate,
                 absl::StrCat("count the cycles of programs of one cluster instead: any of ",
                              absl::StrJoin(graph_turbo::VariantNames(), ",")))
      ->delimiter(',');
  app.add_option("--assumed-rates", options.rates, "with --simulate: factors of all rates that no source states")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", options.jobs, "with --simulate: programs that are made at once")
      ->check(CLI::PositiveNumber);
  app.add_flag("--check", options.check, "with --simulate: check the programs for overflow, unwritten reads and races");
  app.add_option("--program", options.program, "with --simulate: write the last program to this file");
  app.add_option("--numbers", options.numbers,
                 "compute the numbers of a variant in f32 on the simulator, and compare them with the interpreter");
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
