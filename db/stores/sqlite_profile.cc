#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Samples are little-endian binary64 numbers one after another, because a database may move between machines.
static_assert(std::endian::native == std::endian::little, "samples are packed in the machine's order of bytes");

std::string PackDoubles(const std::vector<double>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

std::vector<double> UnpackDoubles(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

// The larger middle one of an even number.
double UpperMedian(std::vector<double> medians) { return Quantile(std::move(medians), 0.5); }

// Collects rows that arrive sorted by question, and passes the median latency of each question to `take`.
struct MedianOfEachQuestion {
  std::string question;
  std::vector<double> medians;

  template <typename Take>
  void Row(const std::string& key, double median_ns, const Take& take) {
    if (key != question) End(take);
    question = key;
    medians.push_back(median_ns);
  }
  template <typename Take>
  void End(const Take& take) {
    if (!medians.empty()) take(UpperMedian(std::move(medians)));
    medians.clear();
  }
};

absl::Status Insert(Connection& db, const MeasurementRow& row) {
  ASSIGN_OR_RETURN(const bool quarantined, IsQuarantined(db, row.source));
  return db.Run(
      "INSERT INTO measurements (question_key, measurement_key, device_fingerprint, description, samples, "
      "min_ns, median_ns, p90_ns, samples_ns, worker, toolchain, time_ms, model_ns, workload, structure, choices, "
      "origin, task, fence, item, source, standing, quarantined) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,"
      "?14,?15,?16,CASE WHEN ?18 <> '' AND ?17 = '' THEN (SELECT origin FROM identity) ELSE ?17 END,?18,?19,?20,?21,"
      "?22,?23) ON CONFLICT DO NOTHING",
      {row.question_key,
       row.measurement_key,
       row.device_fingerprint,
       row.description,
       row.samples,
       row.min_ns,
       row.median_ns,
       row.p90_ns,
       Bytes{PackDoubles(row.samples_ns)},
       row.worker,
       row.toolchain,
       row.time_ms,
       row.model_ns,
       row.workload,
       row.structure,
       row.choices,
       row.origin,
       row.task,
       row.fence,
       row.item,
       row.source,
       static_cast<int64_t>(row.standing),
       int64_t{quarantined}});
}

}  // namespace

absl::Status InsertAccepted(Connection& db, const AcceptedRows& accepted) {
  for (const MeasurementRow& row : accepted.measurements) RETURN_IF_ERROR(Insert(db, row));
  for (const PlanComparisonRow& row : accepted.comparisons) RETURN_IF_ERROR(InsertComparison(db, row));
  for (const BuildRow& row : accepted.builds) {
    RETURN_IF_ERROR(db.Run(
        "INSERT OR REPLACE INTO builds (key, binary_digest, created_ms, toolchain, builder, trusted, "
        "reproduces) SELECT ?,?,?,?,?,?,? WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE id = ? AND revoked_ms > 0)",
        {row.key, row.binary_digest, row.created_ms, row.toolchain, row.builder, int64_t{row.trusted},
         int64_t{row.reproduces}, row.builder}));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::MergeMeasurements(absl::Span<const MeasurementRow> rows) {
  int64_t added = 0;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    added = 0;
    std::set<std::string> imported;  // sources
    for (const MeasurementRow& row : rows) {
      bool known = false;
      RETURN_IF_ERROR(db.Query(
          "SELECT 1 FROM measurements WHERE question_key = ? AND worker = ? AND time_ms = ? AND samples_ns = ? LIMIT 1",
          {row.question_key, row.worker, row.time_ms, Bytes{PackDoubles(row.samples_ns)}},
          [&](const SqlRow&) { known = true; }));
      if (known) continue;
      RETURN_IF_ERROR(Insert(db, row));
      added += db.changed_rows();
      if (row.standing == Standing::kImported) imported.insert(row.source);
    }
    RETURN_IF_ERROR(KnowImportedSources(db, imported));
    return absl::OkStatus();
  }));
  return added;
}

absl::StatusOr<std::vector<std::optional<double>>> SqliteStore::MedianLatencies(absl::Span<const std::string> keys) {
  std::vector<std::optional<double>> latencies(keys.size());
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<double> medians;
      RETURN_IF_ERROR(db.Query("SELECT median_ns FROM measurements WHERE question_key = ? AND quarantined = 0",
                               {keys[i]}, [&](const SqlRow& row) { medians.push_back(row.Double(0)); }));
      if (!medians.empty()) latencies[i] = UpperMedian(std::move(medians));
    }
    return absl::OkStatus();
  }));
  return latencies;
}

absl::StatusOr<std::vector<ImportedLatency>> SqliteStore::ImportedLatencies(absl::Span<const std::string> keys) {
  std::vector<ImportedLatency> latencies(keys.size());
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<double> imported, own;
      RETURN_IF_ERROR(
          db.Query("SELECT median_ns, standing, source FROM measurements WHERE question_key = ? AND quarantined = 0 "
                   "ORDER BY id",
                   {keys[i]}, [&](const SqlRow& row) {
                     const bool is_imported = row.Int(1) == static_cast<int64_t>(Standing::kImported);
                     (is_imported ? imported : own).push_back(row.Double(0));
                     if (IsFirm(static_cast<Standing>(row.Int(1)))) latencies[i].is_firm = true;
                     if (is_imported) latencies[i].source = row.Text(2);
                   }));
      if (!imported.empty()) latencies[i].imported_ns = UpperMedian(std::move(imported));
      if (!own.empty()) latencies[i].own_ns = UpperMedian(std::move(own));
    }
    return absl::OkStatus();
  }));
  return latencies;
}

absl::Status SqliteStore::ScanMeasurements(const MeasurementFilter& filter,
                                           const std::function<void(const MeasurementRow&)>& on_row) {
  return Read([&](Connection& db) {
    return db.Query(
        "SELECT question_key, measurement_key, device_fingerprint, description, samples, min_ns, median_ns, p90_ns, "
        "samples_ns, worker, toolchain, time_ms, model_ns, workload, structure, choices, origin, task, fence, item, "
        "id, source, standing, quarantined FROM measurements WHERE id < ?5 AND (?1 = '' OR substr(question_key, 1, "
        "length(?1)) = ?1) AND (?2 = '' OR instr(lower(description), lower(?2)) > 0) AND (?3 = '' OR "
        "device_fingerprint = ?3) ORDER BY id DESC LIMIT ?4",
        {filter.key_prefix, filter.contains, filter.device_fingerprint, int64_t{filter.limit}, filter.before_id},
        [&](const SqlRow& row) {
          MeasurementRow measurement{row.Text(0),
                                     row.Text(1),
                                     row.Text(2),
                                     row.Text(3),
                                     row.Int(4),
                                     row.Double(5),
                                     row.Double(6),
                                     row.Double(7),
                                     UnpackDoubles(row.Text(8)),
                                     row.Text(9),
                                     row.Text(10),
                                     row.Int(11),
                                     row.Double(12),
                                     row.Text(13),
                                     row.Text(14),
                                     row.Text(15),
                                     row.Text(16),
                                     row.Text(17),
                                     row.Int(18),
                                     row.Int(19),
                                     row.Int(20),
                                     row.Text(21),
                                     static_cast<Standing>(row.Int(22)),
                                     row.Int(23) != 0};
          on_row(measurement);
        });
  });
}

absl::StatusOr<ProfileCounts> SqliteStore::CountMeasurements() {
  ProfileCounts counts;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        "SELECT COUNT(*), COUNT(DISTINCT question_key), COUNT(DISTINCT device_fingerprint), "
        "COALESCE(MIN(time_ms), 0), COALESCE(MAX(time_ms), 0) FROM measurements",
        {}, [&](const SqlRow& row) {
          counts = {row.Int(0), row.Int(1), row.Int(2), row.Int(3), row.Int(4)};
        });
  }));
  return counts;
}

absl::StatusOr<bool> SqliteStore::MergeDevice(const DeviceRow& device) {
  bool taken = false;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    int64_t known = 0, measurements = 0;
    RETURN_IF_ERROR(
        db.Query("SELECT (SELECT COUNT(*) FROM devices WHERE fingerprint = ?1), COALESCE((SELECT measurements FROM "
                 "device_counts "
                 "WHERE fingerprint = ?1), 0)",
                 {device.fingerprint}, [&](const SqlRow& row) { known = row.Int(0), measurements = row.Int(1); }));
    taken = known == 0 || device.measurements > measurements;
    if (!taken) return absl::OkStatus();
    return db.Run("INSERT OR REPLACE INTO devices (fingerprint, model_json, time_ms) VALUES (?,?,?)",
                  {device.fingerprint, device.model_json, device.time_ms});
  }));
  return taken;
}

absl::StatusOr<std::vector<DeviceRow>> SqliteStore::Devices(const std::string& fingerprint) {
  std::vector<DeviceRow> devices;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        "SELECT fingerprint, model_json, time_ms, COALESCE((SELECT measurements FROM device_counts WHERE "
        "device_counts.fingerprint = devices.fingerprint), 0) FROM devices WHERE ?1 = '' OR fingerprint = ?1 ORDER BY "
        "fingerprint",
        {fingerprint}, [&](const SqlRow& row) {
          devices.push_back({row.Text(0), row.Text(1), row.Int(2), row.Int(3)});
        });
  }));
  return devices;
}

absl::StatusOr<std::vector<TrialRow>> SqliteStore::Trials(const std::string& workload) {
  std::vector<TrialRow> trials;
  if (workload.empty()) return trials;
  MedianOfEachQuestion median;
  TrialRow trial;
  bool is_new = true;
  const auto take = [&](double latency_ns) {
    trial.latency_ns = latency_ns;
    trials.push_back(std::exchange(trial, {}));
    is_new = true;
  };
  RETURN_IF_ERROR(Read([&](Connection& db) {
    // The index holds rows with a workload only, and SQLite uses it where the statement says so.
    return db.Query(
        "SELECT question_key, median_ns, choices, standing, source FROM measurements JOIN (SELECT question_key AS "
        "question, MIN(id) AS "
        "first FROM measurements WHERE workload = ?1 AND workload <> '' AND quarantined = 0 GROUP BY question_key) ON "
        "question_key = question WHERE workload = ?1 AND workload <> '' AND quarantined = 0 ORDER BY first",
        {workload}, [&](const SqlRow& row) {
          median.Row(row.Text(0), row.Double(1), take);
          trial.choices = row.Text(2);
          const bool is_imported = row.Int(3) == static_cast<int64_t>(Standing::kImported);
          trial.imported_from = is_imported && (is_new || !trial.imported_from.empty()) ? row.Text(4) : "";
          is_new = false;
        });
  }));
  median.End(take);
  return trials;
}

absl::StatusOr<std::vector<std::string>> SqliteStore::NeighbourChoices(const std::string& structure,
                                                                       const std::string& workload, int limit) {
  std::vector<std::string> fastest;
  if (structure.empty()) return fastest;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    // In SQLite, a bare column beside MIN() has the value of the row with the minimum.
    return db.Query(
        "SELECT choices FROM (SELECT workload AS one, choices, MIN(median_ns) FROM measurements WHERE structure = ? "
        "AND structure <> '' AND workload <> ? AND quarantined = 0 GROUP BY workload) ORDER BY (SELECT MAX(id) FROM "
        "measurements WHERE "
        "workload = one AND workload <> '') DESC",
        {structure, workload}, [&](const SqlRow& row) {
          const std::string choices = row.Text(0);
          const bool known = std::find(fastest.begin(), fastest.end(), choices) != fastest.end();
          if (!known && static_cast<int>(fastest.size()) < limit) fastest.push_back(choices);
        });
  }));
  return fastest;
}

absl::StatusOr<std::vector<ModelErrorRow>> SqliteStore::Errors(const std::string& sql,
                                                               const std::string& device_fingerprint) {
  std::vector<ModelErrorRow> errors;
  MedianOfEachQuestion median;
  double model_ns = 0;
  const auto take = [&](double latency_ns) { errors.push_back({model_ns, latency_ns}); };
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(sql, {device_fingerprint}, [&](const SqlRow& row) {
      median.Row(row.Text(0), row.Double(1), take);
      model_ns = row.Double(2);
    });
  }));
  median.End(take);
  return errors;
}

absl::StatusOr<std::vector<ModelErrorRow>> SqliteStore::ModelErrors(const std::string& device_fingerprint) {
  // Covers all devices. Only `profile stats` asks, since this reads every measurement.
  return Errors(
      absl::StrCat(
          "SELECT question_key, median_ns, model_ns FROM measurements WHERE model_ns > 0 AND quarantined = 0 AND ",
          device_fingerprint.empty() ? "?1 = ''" : "device_fingerprint = ?1", " ORDER BY question_key"),
      device_fingerprint);
}

absl::StatusOr<std::vector<ModelErrorRow>> SqliteStore::PlanErrors(const std::string& device_fingerprint) {
  return Errors(
      "SELECT device_fingerprint || ' ' || bundle_digest || ' ' || threads AS plan, median_ns, model_ns FROM "
      "plan_measurements WHERE model_ns > 0 AND quarantined = 0 AND (?1 = '' OR device_fingerprint = ?1) ORDER BY "
      "plan, id",
      device_fingerprint);
}

}  // namespace fusion
