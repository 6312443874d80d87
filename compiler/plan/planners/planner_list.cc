#include "compiler/plan/plan.h"
#include "compiler/plan/planners/auto/auto.h"
#include "compiler/plan/planners/dnnfusion/dnnfusion.h"
#include "compiler/plan/planners/fusion_stitching/fusion_stitching.h"
#include "compiler/plan/planners/graph_turbo/graph_turbo.h"
#include "compiler/plan/planners/none/none.h"
#include "compiler/plan/planners/power_fusion/power_fusion.h"
#include "compiler/plan/planners/souffle/souffle.h"
#include "compiler/plan/planners/tvm_like/tvm_like.h"
#include "compiler/plan/planners/xla_like/xla_like.h"

namespace fusion {
namespace {

const std::vector<const Planner*>& Planners() {
  static const auto* const kList = new std::vector<const Planner*>{
      AutoPlanner(),
      NonePlanner(),
      DnnFusionPlanner(),
      DnnFusionListingPlanner(),
      XlaLikePlanner(),
      TvmLikePlanner(),
      FusionStitchingPlanner(),
      PowerFusionPlanner(),
      SoufflePlanner(),
      SoufflePaperPlanner(),
      GraphTurboPlanner(),
  };
  return *kList;
}

}  // namespace

const Planner* FindPlanner(const std::string& name) {
  for (const Planner* planner : Planners()) {
    if (planner->name() == name) return planner;
  }
  return nullptr;
}

std::vector<std::string> PlannerNames() {
  std::vector<std::string> names;
  for (const Planner* planner : Planners()) names.push_back(planner->name());
  return names;
}

}  // namespace fusion
