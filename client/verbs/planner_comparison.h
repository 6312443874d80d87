// Planners side by side, for `plan --compare`.
#ifndef FUSION_CLIENT_VERBS_PLANNER_COMPARISON_H_
#define FUSION_CLIENT_VERBS_PLANNER_COMPARISON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proto/compile.pb.h"

namespace fusion {

// The plan that one planner made of a model: of its first specialisation, where there are several.
struct PlannerRow {
  std::string planner;
  std::string failed;  // why there is no plan; empty if there is one
  int64_t launches = 0;
  bool detailed = false;                              // the answer had the plan, from which the next three follow
  int64_t memory_intensive = 0;                       // kernels without a product or a routine
  int64_t barriers = 0;                               // of the device, inside kernels
  std::vector<std::pair<std::string, double>> bytes;  // by level of memory, in the order in which levels came up
  double estimate_ns = 0;
  double measured_ns = 0;  // of the plan that the latest equal submission returned; 0: unknown
  // How many times as long the unfused form took, in turns with it; 0: unknown. Measurements of several planners were
  // made at different times, so that this ratio says more than their difference.
  double unfused_ratio = 0;
  std::string not_measured;  // why it was not, although it was asked for
  double plan_seconds = 0;
};

PlannerRow RowOf(const std::string& planner, const v1::PlanResponse& plan);
// Takes what a worker found when it ran the planner's bundle as a whole.
void TakeMeasurement(const v1::ModelMeasurement& measured, PlannerRow* row);
PlannerRow FailedRow(const std::string& planner, const std::string& why);

// A table in the order of the rows, with a line for each planner that made no plan or was not measured.
std::string ComparisonTable(const std::vector<PlannerRow>& rows);
// For scripts.
nlohmann::ordered_json ComparisonToJson(const std::vector<PlannerRow>& rows);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_PLANNER_COMPARISON_H_
