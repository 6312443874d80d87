#include "compiler/plan/planners/power_fusion/search_templates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/analysis/derived.h"

namespace fusion::power_fusion {
namespace {

using ecg::NodeId;
using ecg::ValueId;

// Numbers of parallel units that are tried for one set of operators.
constexpr size_t kMostUnits = 4;
// Operators of all graphs that are made for one set, roughly: large sets take the numbers of their parts.
constexpr size_t kMostWork = 40;

}  // namespace

const std::vector<Template>& TemplateSearch::TemplatesOfNode(NodeId node) {
  const auto known = templates_.find(node);
  if (known != templates_.end()) return known->second;
  return templates_.emplace(node, TemplatesOf(operators_[node], device_)).first->second;
}

// The numbers of units that most operators have templates for come first; among equals, those that keep all units of the
// device busy, then larger ones: the smaller a unit's part, the nearer the memory that holds it.
std::vector<int64_t> TemplateSearch::UnitsToTry(const std::vector<NodeId>& nodes) {
  std::map<int64_t, int> fitting;
  for (const NodeId node : nodes) {
    std::set<int64_t> units;
    for (const Template& one : TemplatesOfNode(node)) units.insert(one.units);
    for (const int64_t number : units) ++fitting[number];
  }
  std::vector<std::pair<int64_t, int>> ranked(fitting.begin(), fitting.end());
  const auto key = [&](const std::pair<int64_t, int>& one) {
    const bool idle = one.first < device_.parallel_units;
    return std::tuple(-one.second, idle, -one.first);
  };
  std::sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<int64_t> units;
  for (size_t i = 0; i < ranked.size() && i < kMostUnits; ++i) units.push_back(ranked[i].first);
  return units;
}

const Patterns& TemplateSearch::KnownPatterns(const BasicOperator& op, const Template& one, int64_t units) {
  const std::tuple key(op.node, one.first, one.last, one.chunks, units);
  const auto known = patterns_.find(key);
  if (known != patterns_.end()) return known->second;
  return patterns_.emplace(key, PatternsOf(op, one, units)).first->second;
}

double TemplateSearch::Price(const BasicOperator& op, const Template& one, const Patterns& patterns, int64_t units,
                             const Readers& read, const std::set<NodeId>& inside) const {
  const double dram = device_.memory.empty() ? 1e10 : device_.memory.back().bandwidth_bytes_per_s;
  const double near = device_.memory.empty() ? 1e11 : device_.memory.front().bandwidth_bytes_per_s;
  double seconds = 0;
  // Slices that are shorter than a line of the memory bring lines that nobody needs.
  const auto lines = [&](const Pattern& pattern, double bytes, int64_t element) {
    const double width = static_cast<double>(std::max<int64_t>(1, pattern.width * element));
    return bytes * std::max(1.0, std::min<double>(device_.line_bytes / width, 16));
  };
  if (one.units != units) {  // every unit makes everything
    double bytes = 0;
    for (const ValueId result : op.results) bytes += static_cast<double>(ecg::ValueBytes(graph_.value(result)));
    seconds += static_cast<double>(units - 1) * (op.operations / device_.fma_f32_flops_per_s + bytes / near);
  }
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ecg::Value& value = graph_.value(op.operands[i].value);
    if (value.producer != ecg::kNone && inside.count(value.producer) > 0) continue;
    seconds +=
        lines(patterns.operands[i], static_cast<double>(ecg::ValueBytes(value)), DTypeBytes(value.type.dtype)) / dram;
  }
  for (const ValueId result : op.results) {
    const ecg::Value& value = graph_.value(result);
    const auto bytes = static_cast<double>(ecg::ValueBytes(value));
    const Pattern& written = patterns.results;
    const auto readers = read.find(result);
    if (readers == read.end()) seconds += lines(written, bytes, DTypeBytes(value.type.dtype)) / dram;
    if (readers == read.end()) continue;
    for (const Pattern* pattern : readers->second) {
      switch (SyncScope(written, *pattern, value.type.shape, units, units_.per_block)) {
        case Scope::kLane:
          break;
        case Scope::kWarp:
          seconds += bytes / near / 2;
          break;
        case Scope::kBlock:
          seconds += 2 * bytes / near;
          break;
        default:
          // Elementwise operators and movements can be swapped and merged behind the synchronisation.
          seconds += 2 * bytes / dram + (op.kind == BasicKind::kReduce ? device_.barrier_s : 0);
      }
    }
  }
  return seconds + (one.chunks > 1 ? device_.barrier_s : 0);
}

// From the last operator to the first, each takes the template that costs least with what its readers have taken.
std::vector<ChosenTemplate> TemplateSearch::Choose(const std::vector<NodeId>& nodes, int64_t units) {
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  Readers read;
  std::vector<ChosenTemplate> chosen;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const BasicOperator& op = operators_[*node];
    const Template* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Template& one : TemplatesOfNode(*node)) {
      if (one.units != units && one.units != 1) continue;
      const double price = Price(op, one, KnownPatterns(op, one, units), units, read, inside);
      if (price < least) best = &one, least = price;
    }
    const Patterns& patterns = KnownPatterns(op, *best, units);
    chosen.push_back({&op, *best, &patterns});
    for (size_t i = 0; i < op.operands.size(); ++i) read[op.operands[i].value].push_back(&patterns.operands[i]);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

MergePlan TemplateSearch::Fastest(const std::vector<NodeId>& nodes, const std::set<ValueId>& results,
                                  std::vector<int64_t> units) {
  for (const int64_t number : UnitsToTry(nodes)) {
    if (!units.empty() && units.size() * nodes.size() > kMostWork) break;
    if (std::find(units.begin(), units.end(), number) == units.end()) units.push_back(number);
  }
  std::optional<MergePlan> best;
  for (const int64_t number : units) {
    MergePlan plan;
    plan.chosen = Choose(nodes, number);
    plan.gir = MergeGirs(graph_, plan.chosen, number, results);
    plan.rewrites = RewriteGir(operators_, units_, &plan.gir);
    plan.ns = EstimateNs(plan.gir, device_);
    if (!best || plan.ns < best->ns) best = std::move(plan);
  }
  return *std::move(best);
}

}  // namespace fusion::power_fusion
