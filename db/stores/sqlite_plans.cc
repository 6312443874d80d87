#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr char kComparisonColumns[] =
    "plan_key, reference_key, device_fingerprint, description, threads, rounds, ratio, ratio_low, ratio_high, "
    "median_ns, reference_ns, model_ns, reference_model_ns, worker, time_ms, task, fence, item, source, standing, "
    "quarantined, origin";

PlanComparisonRow ComparisonOf(const SqlRow& row) {
  PlanComparisonRow comparison{
      row.Text(0),    row.Text(1),    row.Text(2),    row.Text(3),   static_cast<int>(row.Int(4)),
      row.Int(5),     row.Double(6),  row.Double(7),  row.Double(8), row.Double(9),
      row.Double(10), row.Double(11), row.Double(12), row.Text(13),  row.Int(14)};
  comparison.task = row.Text(15), comparison.fence = row.Int(16), comparison.item = row.Int(17);
  comparison.source = row.Text(18), comparison.standing = static_cast<Standing>(row.Int(19));
  comparison.quarantined = row.Int(20) != 0, comparison.origin = row.Text(21);
  return comparison;
}

absl::Status InsertPlan(Connection& db, const PlanRow& row) {
  ASSIGN_OR_RETURN(const bool quarantined, IsQuarantined(db, row.source));
  return db.Run(
      "INSERT INTO plan_measurements (bundle_digest, device_fingerprint, model_name, planner, threads, model_ns, "
      "median_ns, p25_ns, p75_ns, worker, time_ms, source, quarantined) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
      {row.bundle_digest, row.device_fingerprint, row.model_name, row.planner, int64_t{row.threads}, row.model_ns,
       row.median_ns, row.p25_ns, row.p75_ns, row.worker, row.time_ms, row.source, int64_t{quarantined}});
}

// Does the table have such a row?
absl::StatusOr<bool> Has(Connection& db, const std::string& rows, const std::vector<SqlValue>& values) {
  bool found = false;
  RETURN_IF_ERROR(db.Query("SELECT 1 FROM " + rows + " LIMIT 1", values, [&](const SqlRow&) { found = true; }));
  return found;
}

}  // namespace

absl::Status InsertComparison(Connection& db, const PlanComparisonRow& row) {
  ASSIGN_OR_RETURN(const bool quarantined, IsQuarantined(db, row.source));
  return db.Run(
      absl::StrCat("INSERT INTO plan_comparisons (", kComparisonColumns,
                   ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,CASE WHEN ?16 "
                   "<> '' AND ?22 = '' THEN (SELECT origin FROM identity) ELSE ?22 END) ON CONFLICT DO NOTHING"),
      {row.plan_key,
       row.reference_key,
       row.device_fingerprint,
       row.description,
       int64_t{row.threads},
       row.rounds,
       row.ratio,
       row.ratio_low,
       row.ratio_high,
       row.median_ns,
       row.reference_ns,
       row.model_ns,
       row.reference_model_ns,
       row.worker,
       row.time_ms,
       row.task,
       row.fence,
       row.item,
       row.source,
       static_cast<int64_t>(row.standing),
       int64_t{quarantined},
       row.origin});
}

absl::Status SqliteStore::AppendPlans(absl::Span<const PlanRow> rows) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    for (const PlanRow& row : rows) RETURN_IF_ERROR(InsertPlan(db, row));
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> SqliteStore::MergePlans(absl::Span<const PlanComparisonRow> comparisons,
                                                absl::Span<const PlanRow> plans) {
  int64_t added = 0;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    added = 0;
    std::set<std::string> imported;  // sources
    for (const PlanComparisonRow& row : comparisons) {
      ASSIGN_OR_RETURN(const bool known, Has(db,
                                             "plan_comparisons WHERE plan_key = ? AND reference_key = ? AND worker = ? "
                                             "AND time_ms = ? AND ratio = ?",
                                             {row.plan_key, row.reference_key, row.worker, row.time_ms, row.ratio}));
      if (known) continue;
      RETURN_IF_ERROR(InsertComparison(db, row));
      added += db.changed_rows();
      if (row.standing == Standing::kImported) imported.insert(row.source);
    }
    RETURN_IF_ERROR(KnowImportedSources(db, imported));
    for (const PlanRow& row : plans) {
      ASSIGN_OR_RETURN(const bool known, Has(db,
                                             "plan_measurements WHERE bundle_digest = ? AND time_ms = ? AND threads = "
                                             "? AND device_fingerprint = ? AND worker = ? AND median_ns = ?",
                                             {row.bundle_digest, row.time_ms, int64_t{row.threads},
                                              row.device_fingerprint, row.worker, row.median_ns}));
      if (known) continue;
      RETURN_IF_ERROR(InsertPlan(db, row));
      added += db.changed_rows();
    }
    return absl::OkStatus();
  }));
  return added;
}

absl::Status SqliteStore::ScanPlans(const std::string& device_fingerprint,
                                    const std::function<void(const PlanComparisonRow&)>& on_comparison,
                                    const std::function<void(const PlanRow&)>& on_plan) {
  return Read([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Query(absl::StrCat("SELECT ", kComparisonColumns,
                                          " FROM plan_comparisons WHERE ?1 = '' OR device_fingerprint = ?1 ORDER BY id "
                                          "DESC"),
                             {device_fingerprint}, [&](const SqlRow& row) { on_comparison(ComparisonOf(row)); }));
    return db.Query(
        "SELECT bundle_digest, device_fingerprint, model_name, planner, threads, model_ns, median_ns, p25_ns, p75_ns, "
        "worker, time_ms, source, quarantined FROM plan_measurements WHERE ?1 = '' OR device_fingerprint = ?1 ORDER BY "
        "id DESC",
        {device_fingerprint}, [&](const SqlRow& row) {
          on_plan({row.Text(0), row.Text(1), row.Text(2), row.Text(3), static_cast<int>(row.Int(4)), row.Double(5),
                   row.Double(6), row.Double(7), row.Double(8), row.Text(9), row.Int(10), row.Text(11),
                   row.Int(12) != 0});
        });
  });
}

absl::StatusOr<std::vector<std::optional<PlanComparisonRow>>> SqliteStore::PlanComparisons(
    const std::string& reference_key, absl::Span<const std::string> plan_keys, bool also_imported) {
  std::vector<std::optional<PlanComparisonRow>> comparisons(plan_keys.size());
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t p = 0; p < plan_keys.size(); ++p) {
      std::vector<PlanComparisonRow> rows;
      RETURN_IF_ERROR(
          db.Query(absl::StrCat("SELECT ", kComparisonColumns,
                                " FROM plan_comparisons WHERE plan_key = ? AND reference_key = ? AND "
                                "quarantined = 0 AND (? OR standing <> ?) ORDER BY ratio, id"),
                   {plan_keys[p], reference_key, int64_t{also_imported}, static_cast<int64_t>(Standing::kImported)},
                   [&](const SqlRow& row) { rows.push_back(ComparisonOf(row)); }));
      if (!rows.empty()) comparisons[p] = std::move(rows[rows.size() / 2]);
    }
    return absl::OkStatus();
  }));
  return comparisons;
}

}  // namespace fusion
