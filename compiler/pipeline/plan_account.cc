#include "compiler/pipeline/plan_account.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/realised_plan.h"
#include "compiler/plan/operator_kind.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

int64_t IntermediateBytes(const ecg::Graph& graph, const std::function<bool(ecg::ValueId)>& stored) {
  int64_t bytes = 0;
  for (ecg::ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    if (value.producer == ecg::kNone || graph.IsOutput(v) || !stored(v)) continue;
    bytes += NumElements(value.type.shape) * DTypeBytes(value.type.dtype);
  }
  return bytes;
}

std::string NodeName(const ecg::Graph& graph, ecg::NodeId id) {
  return id == ecg::kNone ? std::string() : graph.node(id).op + " '" + graph.node(id).name + "'";
}

// Describes the fusion block's kernel: its account, and its hand-overs as planned and as realised.
void AddRealised(const ecg::Graph& graph, const RealisedFusionBlock& realised, nlohmann::json* fusion_block) {
  const FusionBlockAccount& account = realised.account;
  (*fusion_block)["phases"] = account.phases;
  (*fusion_block)["tasks"] = account.tasks;
  (*fusion_block)["scratch_bytes"] = account.scratch_bytes;
  (*fusion_block)["device_scope_bytes"] = account.device_scope_bytes;
  (*fusion_block)["registers"] = account.registers;
  (*fusion_block)["code_bytes"] = account.code_bytes;
  if (account.occupancy) {
    const Occupancy& occupancy = *account.occupancy;
    (*fusion_block)["occupancy"] = {{"work_groups", occupancy.groups},
                                    {"share", occupancy.share},
                                    {"limit", occupancy.limit},
                                    {"work_items", occupancy.demand.work_items},
                                    {"registers", occupancy.demand.registers},
                                    {"shared_bytes", occupancy.demand.shared_bytes}};
  }
  nlohmann::json bytes = nlohmann::json::object();
  for (const LevelBytes& level : account.bytes) bytes[level.level] = level.bytes;
  (*fusion_block)["bytes"] = std::move(bytes);
  (*fusion_block)["estimate_ns"] = account.estimate_ns;
  if (!realised.reason.empty()) (*fusion_block)["reason"] = realised.reason;
  if (realised.hand_overs.empty()) return;
  nlohmann::json hand_overs = nlohmann::json::array();
  for (const PlannedHandOver& edge : realised.hand_overs) {
    hand_overs.push_back({{"value", graph.value(edge.planned.value).name},
                          {"producer", NodeName(graph, edge.planned.producer)},
                          {"consumer", NodeName(graph, edge.planned.consumer)},
                          {"planned", ScopesInWords(edge.planned)},
                          {"realised", ScopeName(edge.realised)}});
  }
  (*fusion_block)["hand_overs"] = std::move(hand_overs);
}

std::string PlanJson(const ecg::Graph& graph, const Planned& planned, const std::vector<RewriteAccount>& rewrites) {
  using nlohmann::json;
  json fusion_blocks = json::array(), decisions = json::array(), rules = json::array();
  for (size_t b = 0; b < planned.plan.fusion_blocks.size(); ++b) {
    json nodes = json::array();
    for (ecg::NodeId id : planned.plan.fusion_blocks[b].nodes) {
      nodes.push_back({{"op", graph.node(id).op}, {"name", graph.node(id).name}});
    }
    fusion_blocks.push_back({{"nodes", nodes}});
    std::vector<OperatorTraits> traits;
    for (ecg::NodeId id : planned.plan.fusion_blocks[b].nodes) traits.push_back(TraitsOf(graph, id));
    fusion_blocks.back()["memory_intensive"] = IsMemoryIntensive(traits);
    for (const Directive& directive : planned.plan.fusion_blocks[b].directives) {
      fusion_blocks.back()["directives"].push_back({{"node", NodeName(graph, directive.node)},
                                                    {"choice", directive.choice},
                                                    {"alternative", directive.alternative}});
    }
    AddRealised(graph, planned.realised[b], &fusion_blocks.back());
    if (planned.elided.fusion_blocks.count(b)) fusion_blocks.back()["kernel"] = false;  // its copies are elided
  }
  for (const Decision& d : planned.plan.decisions) {
    json item{{"producer", NodeName(graph, d.producer)},
              {"consumer", NodeName(graph, d.consumer)},
              {"basis", BasisName(d.basis)},
              {"fused", d.fused},
              {"reason", d.reason}};
    if (d.basis == Basis::kLatency && d.fused_ns > 0) {
      item["fused_ns"] = d.fused_ns;
      item["separate_ns"] = d.separate_ns;
      item["source"] = LatencySourceName(d.source);
    }
    decisions.push_back(item);
  }
  for (const RewriteAccount& one : rewrites) {
    rules.push_back({{"rule", one.rule},
                     {"where", one.where},
                     {"flops_saved", one.flops_saved},
                     {"bytes_saved", one.bytes_saved},
                     {"nodes_saved", one.nodes_saved}});
  }
  json loops = json::array();
  for (const LaunchLoop& loop : planned.loops.launches) {
    json repeated = json::array();
    for (size_t l = loop.first; l < loop.end; ++l) {
      for (const size_t b : planned.launches[l]) repeated.push_back(b);
    }
    loops.push_back({{"iterations", loop.trips}, {"fusion_blocks", std::move(repeated)}});
  }
  int64_t laid_out = 0;
  for (const auto& [v, layout] : planned.layouts) {
    (void)v;
    laid_out += layout.plain() ? 0 : 1;
  }
  json plan{{"fusion_blocks", fusion_blocks},
            {"decisions", decisions},
            {"rewrites", rules},
            {"values_not_row_major", laid_out}};
  if (!loops.empty()) plan["loops"] = std::move(loops);
  return plan.dump(1, ' ', false, json::error_handler_t::replace);
}

void AccountForDecisions(const GraphFusionOracle& oracle, const FusionPlan& plan, CompileAccount* account) {
  for (const Decision& d : plan.decisions) {
    const bool by_rule = d.basis == Basis::kRule;
    ++(d.fused   ? by_rule ? account->fused_by_rule : account->fused_by_latency
       : by_rule ? account->kept_by_rule
                 : account->kept_by_latency);
  }
  account->questions = oracle.questions();
  account->from_database = oracle.answered(LatencySource::kDatabase);
  account->measured = oracle.answered(LatencySource::kMeasured);
  account->from_model = oracle.estimated();
}

void AccountForLaunches(const Planned& planned, CompileAccount* account) {
  account->kernels = static_cast<int64_t>(planned.launches.size());
  const ecg::Loops loops = ecg::LoopsOf(planned.graph);
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(planned.graph.nodes().size()); ++id) {
    account->flops += static_cast<double>(loops.Trips(id)) * ops::NodeFlops(planned.graph, planned.graph.node(id));
  }
  std::set<ecg::ValueId> stored;
  for (const FusionBlock& fusion_block : planned.plan.fusion_blocks) {
    for (ecg::ValueId v : LiveOut(planned.graph, fusion_block)) stored.insert(v);
  }
  for (const auto& [value, inside] : planned.elided.values) stored.erase(value);
  account->intermediate_bytes_before = IntermediateBytes(planned.graph, [](ecg::ValueId) { return true; });
  account->intermediate_bytes_after =
      IntermediateBytes(planned.graph, [&](ecg::ValueId v) { return stored.count(v) > 0; });
}

}  // namespace

void AccountForPlan(Compilation* compilation) {
  const Planned& planned = *compilation->planned;
  CompileAccount* account = compilation->account;
  account->nodes_rewritten = static_cast<int64_t>(planned.graph.nodes().size());
  AccountForDecisions(*compilation->oracle, planned.plan, account);
  AccountForLaunches(planned, account);
  for (const OfferedPlan& offer : planned.plan.offers) {
    PlanAlternative& one = account->alternatives.emplace_back();
    one.plan = NameOf(offer);
    one.kernels = offer.estimate.launches;
    one.estimate_ns = offer.estimate.ns;
    one.chosen = account->alternatives.size() == 1;
    one.reason = offer.reason;
  }
}

std::string NameOf(const OfferedPlan& offer) {
  return absl::StrCat(offer.name, offer.measured ? " by measurements" : "");
}

absl::Status AccountForKernels(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(planned.realised, RealisePlan(planned.graph, planned.plan, compilation->oracle));
  compilation->account->plan_json = PlanJson(planned.graph, planned, compilation->account->rewrites);
  AccountForAlternatives(compilation->account);
  return absl::OkStatus();
}

void AccountForAlternatives(CompileAccount* account) {
  if (account->alternatives.empty() && account->not_compared.empty()) return;
  using nlohmann::json;
  json plan = json::parse(account->plan_json, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return;
  json alternatives = json::array();
  for (const PlanAlternative& one : account->alternatives) {
    alternatives.push_back(
        {{"plan", one.plan}, {"kernels", one.kernels}, {"estimate_ns", one.estimate_ns}, {"chosen", one.chosen}});
    if (!one.reason.empty()) alternatives.back()["reason"] = one.reason;
    if (one.rounds == 0) continue;
    alternatives.back()["median_ns"] = one.median_ns;
    alternatives.back()["ratio"] = one.ratio;
    alternatives.back()["ratio_interval"] = {one.ratio_low, one.ratio_high};
    alternatives.back()["rounds"] = one.rounds;
  }
  if (!alternatives.empty()) plan["alternatives"] = std::move(alternatives);
  if (!account->not_compared.empty()) plan["not_compared"] = account->not_compared;
  account->plan_json = plan.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fusion
