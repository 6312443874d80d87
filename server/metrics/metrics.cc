#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

enum class Kind { kCounter, kGauge, kHistogram };
using Buckets = prometheus::Histogram::BucketBoundaries;

struct FamilyRow {
  Metric metric;
  Kind kind;
  const char* name;
  const char* help;
  Buckets buckets = {};
};

const Buckets kRpcBuckets = {.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
const Buckets kJobBuckets = {.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10800};
const Buckets kByteBuckets = {1024.,    4096.,     16384.,    65536.,     262144.,     1048576.,
                              4194304., 16777216., 67108864., 268435456., 1073741824., 4294967296.};

const std::array<FamilyRow, static_cast<size_t>(Metric::kCount)> kFamilies = {{
    {Metric::kRpcRequests, Kind::kCounter, "fusion_rpc_requests_total", "Finished calls by method and code."},
    {Metric::kRpcDuration, Kind::kHistogram, "fusion_rpc_duration_seconds", "Duration of calls.", kRpcBuckets},
    {Metric::kRpcInFlight, Kind::kGauge, "fusion_rpc_in_flight", "Calls in progress, held polls included."},
    {Metric::kWorkers, Kind::kGauge, "fusion_workers", "Attached workers by device class and state."},
    {Metric::kQueueDepth, Kind::kGauge, "fusion_queue_depth", "Tasks that wait for a worker."},
    {Metric::kQueueOldestAge, Kind::kGauge, "fusion_queue_oldest_age_seconds", "Age of the oldest waiting task."},
    {Metric::kJobs, Kind::kCounter, "fusion_jobs_total", "Finished jobs by outcome."},
    {Metric::kChecks, Kind::kCounter, "fusion_checks_total",
     "Runs of finished bundles as a whole, by check and outcome."},
    {Metric::kJobsRunning, Kind::kGauge, "fusion_jobs_running", "Jobs being compiled."},
    {Metric::kJobWait, Kind::kHistogram, "fusion_job_wait_seconds", "Submission to start.", kJobBuckets},
    {Metric::kJobDuration, Kind::kHistogram, "fusion_job_duration_seconds", "Duration of job stages.", kJobBuckets},
    {Metric::kCompileDeaths, Kind::kCounter, "fusion_compile_deaths_total",
     "Compilations whose process died or exceeded a limit, by how it ended."},
    {Metric::kProfileRequests, Kind::kCounter, "fusion_profile_requests_total",
     "Latency questions by the source of the answer."},
    {Metric::kPlanComparisons, Kind::kCounter, "fusion_plan_comparisons_total",
     "Comparisons of whole plans by the source of the answer."},
    {Metric::kCacheRequests, Kind::kCounter, "fusion_cache_requests_total", "Cache look-ups by tier and result."},
    {Metric::kLeaseExpiries, Kind::kCounter, "fusion_lease_expiries_total", "Leases that ran out."},
    {Metric::kTaskRetries, Kind::kCounter, "fusion_task_retries_total", "Attempts that were put back into the queue."},
    {Metric::kPoisonedTasks, Kind::kCounter, "fusion_poisoned_tasks_total", "Tasks given up."},
    {Metric::kTasks, Kind::kCounter, "fusion_tasks_total", "Task results that workers delivered."},
    {Metric::kQuarantines, Kind::kCounter, "fusion_quarantines_total",
     "Workers whose measurements were taken out of use."},
    {Metric::kDbCommitDuration, Kind::kHistogram, "fusion_db_commit_duration_seconds", "Duration of database commits.",
     kRpcBuckets},
    {Metric::kDbWriteQueueDepth, Kind::kGauge, "fusion_db_write_queue_depth", "Operations waiting for the writer."},
    {Metric::kBundleBytes, Kind::kHistogram, "fusion_bundle_bytes", "Size of finished bundles.", kByteBuckets},
    {Metric::kUploadBytes, Kind::kCounter, "fusion_upload_bytes_total", "Bytes written by clients and workers."},
    {Metric::kDiskFreeBytes, Kind::kGauge, "fusion_disk_free_bytes", "Free bytes of the state file system."},
    {Metric::kCertificateEnd, Kind::kGauge, "fusion_tls_certificate_expiry_timestamp_seconds",
     "When the certificate of --tls-cert ends, in Unix seconds."},
    {Metric::kWorkerCertificateEnd, Kind::kGauge, "fusion_worker_certificate_expiry_timestamp_seconds",
     "When the first of the certificates ends with which workers came in the last ten minutes, in Unix seconds."},
    {Metric::kBuildInfo, Kind::kGauge, "fusion_build_info", "1, labelled with the program's version."},
}};

const FamilyRow& RowOf(Metric metric) { return kFamilies[static_cast<size_t>(metric)]; }

}  // namespace

struct Metrics::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::map<Metric, prometheus::Family<prometheus::Counter>*> counters;
  std::map<Metric, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<Metric, prometheus::Family<prometheus::Histogram>*> histograms;
  std::unique_ptr<prometheus::Exposer> exposer;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  for (const FamilyRow& row : kFamilies) {
    if (row.kind == Kind::kCounter) {
      state_->counters[row.metric] =
          &prometheus::BuildCounter().Name(row.name).Help(row.help).Register(*state_->registry);
    } else if (row.kind == Kind::kGauge) {
      state_->gauges[row.metric] = &prometheus::BuildGauge().Name(row.name).Help(row.help).Register(*state_->registry);
    } else {
      state_->histograms[row.metric] =
          &prometheus::BuildHistogram().Name(row.name).Help(row.help).Register(*state_->registry);
    }
  }
  for (Metric metric : {Metric::kLeaseExpiries, Metric::kTaskRetries, Metric::kPoisonedTasks, Metric::kUploadBytes}) {
    Count(metric, {}, 0);
  }
}

Metrics::~Metrics() = default;

void Metrics::Count(Metric metric, const Labels& labels, double by) {
  state_->counters.at(metric)->Add(labels).Increment(by);
}

void Metrics::Set(Metric metric, double value, const Labels& labels) {
  state_->gauges.at(metric)->Add(labels).Set(value);
}

void Metrics::Observe(Metric metric, double value, const Labels& labels) {
  state_->histograms.at(metric)->Add(labels, RowOf(metric).buckets).Observe(value);
}

double Metrics::Value(Metric metric, const Labels& labels) {
  return RowOf(metric).kind == Kind::kCounter ? state_->counters.at(metric)->Add(labels).Value()
                                              : state_->gauges.at(metric)->Add(labels).Value();
}

absl::StatusOr<int> Metrics::Serve(const std::string& address) {
  try {
    state_->exposer = std::make_unique<prometheus::Exposer>(address, 1);
    state_->exposer->RegisterCollectable(state_->registry);
    return state_->exposer->GetListeningPorts().at(0);
  } catch (const std::exception&) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", address,
                                               ": the address is in use or not ours; choose another with --metrics"));
  }
}

std::string Metrics::Text() const { return prometheus::TextSerializer().Serialize(state_->registry->Collect()); }

}  // namespace fusion
