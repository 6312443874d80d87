#include "compiler/plan/planners/none/none.h"

namespace fusion {
namespace {

class None : public Planner {
 public:
  const char* name() const override { return kUnfusedPlanner; }
  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel&, FusionOracle&,
                                  const PlanOptions&) const override {
    FusionPlan plan;
    for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
      plan.fusion_blocks.push_back({{id}});
    }
    return plan;
  }
};

}  // namespace

const Planner* NonePlanner() {
  static const None* const kPlanner = new None;
  return kPlanner;
}

}  // namespace fusion
