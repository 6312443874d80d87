#include "client/verbs/planner_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/words.h"

namespace fusion {
namespace {

void AddBytes(const std::string& level, double bytes, std::vector<std::pair<std::string, double>>* sums) {
  const auto found = std::find_if(sums->begin(), sums->end(), [&](const auto& sum) { return sum.first == level; });
  if (found == sums->end()) {
    sums->emplace_back(level, bytes);
  } else {
    found->second += bytes;
  }
}

double NumberOf(const nlohmann::json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

bool FlagOf(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// The plan's fusion blocks, those of the first specialisation; an empty list where the answer has none.
nlohmann::json FusionBlocksOf(const std::string& plan_json) {
  nlohmann::json json = nlohmann::json::parse(plan_json, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("specialisations")) {
    const nlohmann::json all = json["specialisations"];
    if (!all.is_array() || all.empty() || !all[0].is_object() || !all[0].contains("plan")) return {};
    json = all[0]["plan"];
  }
  if (!json.is_object() || !json.contains("fusion_blocks") || !json["fusion_blocks"].is_array()) return {};
  return json["fusion_blocks"];
}

}  // namespace

PlannerRow RowOf(const std::string& planner, const v1::PlanResponse& plan) {
  PlannerRow row;
  row.planner = planner;
  row.launches = plan.account().kernels();
  row.estimate_ns = plan.account().estimate_ns();
  for (const v1::StageTime& stage : plan.account().stages()) {
    if (stage.stage() == "plan") row.plan_seconds += stage.seconds();
  }
  for (const v1::PlanAlternative& one : plan.account().alternatives()) {
    if (one.chosen() && row.measured_ns == 0) row.measured_ns = one.median_ns();
  }
  const nlohmann::json blocks = FusionBlocksOf(plan.plan_json());
  row.detailed = !blocks.empty();
  for (const nlohmann::json& block : blocks) {
    if (!block.is_object() || !FlagOf(block, "kernel", true)) continue;  // its copies are elided
    row.memory_intensive += FlagOf(block, "memory_intensive", false) ? 1 : 0;
    row.barriers += static_cast<int64_t>(NumberOf(block, "phases", 1)) - 1;
    if (!block.contains("bytes") || !block["bytes"].is_object()) continue;
    for (const auto& [level, count] : block["bytes"].items()) {
      if (count.is_number()) AddBytes(level, count.get<double>(), &row.bytes);
    }
  }
  return row;
}

void TakeMeasurement(const v1::ModelMeasurement& measured, PlannerRow* row) {
  row->not_measured = measured.not_done();
  if (!measured.not_done().empty()) return;
  row->measured_ns = measured.bundle().median_ns();
  row->unfused_ratio = measured.ratio();
}

PlannerRow FailedRow(const std::string& planner, const std::string& why) {
  PlannerRow row;
  row.planner = planner;
  row.failed = why;
  return row;
}

std::string ComparisonTable(const std::vector<PlannerRow>& rows) {
  std::vector<std::string> header{"PLANNER", "LAUNCHES", "MEMORY-BOUND", "BARRIERS"};
  std::vector<std::pair<std::string, double>> levels;
  for (const PlannerRow& row : rows) {
    for (const auto& [level, bytes] : row.bytes) AddBytes(level, bytes, &levels);
  }
  for (const auto& level : levels) header.push_back(level.first);
  const bool beside_unfused =
      std::any_of(rows.begin(), rows.end(), [](const PlannerRow& row) { return row.unfused_ratio > 0; });
  for (const char* last : {"ESTIMATED", "MEASURED"}) header.emplace_back(last);
  if (beside_unfused) header.emplace_back("UNFUSED TAKES");
  header.emplace_back("PLANNED IN");
  std::vector<std::vector<std::string>> table;
  std::string failed;
  for (const PlannerRow& row : rows) {
    if (!row.failed.empty()) {
      absl::StrAppend(&failed, row.planner, " has no plan: ", Printable(row.failed), "\n");
      continue;
    }
    std::vector<std::string>& line = table.emplace_back();
    line = {row.planner, absl::StrCat(row.launches), row.detailed ? absl::StrCat(row.memory_intensive) : "-",
            row.detailed ? absl::StrCat(row.barriers) : "-"};
    for (const auto& level : levels) {
      const auto found =
          std::find_if(row.bytes.begin(), row.bytes.end(), [&](const auto& sum) { return sum.first == level.first; });
      line.push_back(!row.detailed              ? "-"
                     : found == row.bytes.end() ? "0 B"
                                                : BytesInWords(static_cast<int64_t>(found->second)));
    }
    line.push_back(row.estimate_ns > 0 ? LatencyInWords(row.estimate_ns) : "-");
    line.push_back(row.measured_ns > 0 ? LatencyInWords(row.measured_ns) : "-");
    if (beside_unfused) line.push_back(row.unfused_ratio > 0 ? absl::StrFormat("%.2f×", row.unfused_ratio) : "-");
    if (!row.not_measured.empty()) {
      absl::StrAppend(&failed, row.planner, " was not measured: ", Printable(row.not_measured), "\n");
    }
    line.push_back(absl::StrFormat("%.2fs", row.plan_seconds));
  }
  return absl::StrCat(Table(header, table), failed);
}

nlohmann::ordered_json ComparisonToJson(const std::vector<PlannerRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PlannerRow& row : rows) {
    nlohmann::ordered_json& one = list.emplace_back();
    one["planner"] = row.planner;
    if (!row.failed.empty()) {
      one["failed"] = row.failed;
      continue;
    }
    one["launches"] = row.launches;
    if (row.detailed) {
      one["memory_intensive"] = row.memory_intensive;
      one["barriers"] = row.barriers;
      one["bytes"] = nlohmann::ordered_json::object();
      for (const auto& [level, bytes] : row.bytes) one["bytes"][level] = bytes;
    }
    one["estimate_ms"] = row.estimate_ns * 1e-6;
    if (row.measured_ns > 0) one["measured_ms"] = row.measured_ns * 1e-6;
    if (row.unfused_ratio > 0) one["unfused_ratio"] = row.unfused_ratio;
    if (!row.not_measured.empty()) one["not_measured"] = row.not_measured;
    one["plan_seconds"] = row.plan_seconds;
  }
  return list;
}

}  // namespace fusion
