// The search for a GIR-Graph of several operators: which template does each take, and how many parallel units run them?
// (PowerFusion §6, "GIR-Graph merging".)
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SEARCH_TEMPLATES_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SEARCH_TEMPLATES_H_

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "compiler/plan/planners/power_fusion/performance_model.h"
#include "compiler/plan/planners/power_fusion/rewrite_gir.h"
#include "compiler/plan/planners/power_fusion/templates.h"

namespace fusion::power_fusion {

// A merged graph after rewriting, and what it was made of.
struct MergePlan {
  std::vector<ChosenTemplate> chosen;
  Gir gir;
  RewriteCounts rewrites;
  double ns = 0;  // EstimateNs
};

class TemplateSearch {
 public:
  // All must outlive the search. `operators`: by node.
  TemplateSearch(const ecg::Graph& graph, const std::vector<BasicOperator>& operators, const DeviceModel& device)
      : graph_(graph), operators_(operators), device_(device), units_(UnitsOf(device)) {}

  // The merge plan that the performance model finds fastest. `nodes` is ascending, and none of them is opaque.
  // `units`: numbers of parallel units to try first, those of the graphs that are merged. Those that fit most operators
  // follow.
  MergePlan Fastest(const std::vector<ecg::NodeId>& nodes, const std::set<ecg::ValueId>& results,
                    std::vector<int64_t> units = {});

 private:
  const std::vector<Template>& TemplatesOfNode(ecg::NodeId node);
  std::vector<int64_t> UnitsToTry(const std::vector<ecg::NodeId>& nodes);
  std::vector<ChosenTemplate> Choose(const std::vector<ecg::NodeId>& nodes, int64_t units);
  // The seconds that the template costs where it reads DRAM and meets what its readers have chosen.
  using Readers = std::map<ecg::ValueId, std::vector<const Pattern*>>;  // that have chosen
  double Price(const BasicOperator& op, const Template& one, const Patterns& patterns, int64_t units,
               const Readers& read, const std::set<ecg::NodeId>& inside) const;
  const Patterns& KnownPatterns(const BasicOperator& op, const Template& one, int64_t units);

  const ecg::Graph& graph_;
  const std::vector<BasicOperator>& operators_;
  const DeviceModel& device_;
  const Units units_;
  std::map<ecg::NodeId, std::vector<Template>> templates_;
  // By node, axes and chunks of the template, and units.
  std::map<std::tuple<ecg::NodeId, int, int, int64_t, int64_t>, Patterns> patterns_;
};

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SEARCH_TEMPLATES_H_
