#include "compiler/accelerator/program_account.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fusion::accelerator {
namespace {

using nlohmann::json;

std::string LayerInWords(const ModelOnMachine& model, const graph_turbo::Op& op) {
  const graph_turbo::Tensor& made = model.layers.tensors[op.outputs[0]];
  return absl::StrCat(op.name, " '", made.name, "' ", ShapeToString(made.shape));
}

}  // namespace

std::map<std::string, std::string> FactsOf(const ModelOnMachine& model, const WholeProgram& program) {
  return {{"planner", program.variant},
          {"machine", absl::StrCat(model.machine.name, ": one cluster of ", MachineInWords(model.machine))},
          {"program", ProgramInWords(model, program)},
          {"simulated", absl::StrFormat("%.0f cycles, %.3f ms at %g GHz", program.timing.cycles,
                                        1e3 * program.timing.seconds, 1e-9 * model.machine.clock_hz.value)}};
}

void AccountForProgram(const ModelOnMachine& model, const WholeProgram& program, CompileAccount* account) {
  account->kernels = account->kernels_distinct = 1;
  account->flops = model.flops();
  account->estimate_ns = 1e9 * program.timing.seconds;
  double returned_bytes = 0;
  for (const graph_turbo::Tensor& tensor : model.layers.tensors) {
    if (tensor.producer == graph_turbo::kNone) continue;
    const int64_t bytes = NumElements(tensor.shape) * DTypeBytes(model.dtype);
    if (tensor.model_output) {
      returned_bytes += static_cast<double>(bytes);
    } else {
      account->intermediate_bytes_before += bytes;
    }
  }
  // Other bytes that go to DDR are intermediate results.
  account->intermediate_bytes_after =
      static_cast<int64_t>(std::max(0.0, program.timing.ddr_written_bytes - returned_bytes));
  json layers = json::array(), units = json::object();
  for (const graph_turbo::Op& op : model.layers.ops) {
    layers.push_back({{"what", LayerInWords(model, op)}, {"flops", op.work}});
  }
  for (const auto& [name, use] : program.timing.units) {
    const double cycles = std::max(1.0, program.timing.cycles);
    units[name] = use.work_cycles / (cycles * static_cast<double>(use.units));
  }
  json plans = json::array();
  for (const PlanAlternative& one : account->alternatives) {
    plans.push_back(
        {{"plan", one.plan}, {"estimate_ns", one.estimate_ns}, {"chosen", one.chosen}, {"reason", one.reason}});
  }
  json rewrites = json::array();
  for (const RewriteAccount& one : account->rewrites) {
    rewrites.push_back({{"rule", one.rule},
                        {"where", one.where},
                        {"flops_saved", one.flops_saved},
                        {"bytes_saved", one.bytes_saved},
                        {"nodes_saved", one.nodes_saved}});
  }
  const json plan = {{"planner", program.variant},
                     {"machine", json::parse(dsa::MachineToJson(model.machine))},
                     {"program",
                      {{"instructions", program.instructions},
                       {"unit_codes", program.unit_codes},
                       {"cycles", program.timing.cycles},
                       {"seconds", program.timing.seconds},
                       {"results_ddr", program.results.ddr},
                       {"results_gb", program.results.global},
                       {"results_lb", program.results.local},
                       {"ddr_read_bytes", program.timing.ddr_read_bytes},
                       {"ddr_written_bytes", program.timing.ddr_written_bytes},
                       {"moved_bytes", program.timing.moved_bytes},
                       {"redistributed_bytes", program.timing.redistributed_bytes},
                       {"utilisation", units}}},
                     {"layers", layers},
                     {"plans", plans},
                     {"rewrites", rewrites}};
  account->plan_json = plan.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string PlanInWords(const ModelOnMachine& model, const WholeProgram& program) {
  std::string text;
  for (size_t l = 0; l < model.layers.ops.size(); ++l) {
    absl::StrAppend(&text, "layer ", l, ": ", LayerInWords(model, model.layers.ops[l]), "\n");
  }
  for (const auto& [name, words] : FactsOf(model, program)) absl::StrAppend(&text, name, ": ", words, "\n");
  return text;
}

}  // namespace fusion::accelerator
