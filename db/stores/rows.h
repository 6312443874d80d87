// The rows that a Store keeps (store.h), and the filters of its questions.
//
// Opaque `std::string` fields (request, account, checks, event) are serialised messages that the store does not read.
#ifndef FUSION_DB_STORES_ROWS_H_
#define FUSION_DB_STORES_ROWS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fusion {

enum class JobPhase { kQueued = 1, kRunning = 2, kSucceeded = 3, kFailed = 4, kCancelled = 5 };
inline bool IsFinal(JobPhase phase) { return phase > JobPhase::kRunning; }

// The right to compile a job (job_claims.h).
struct JobClaim {
  std::string job = {};
  std::string claimant = {};  // drawn at random by each process; "": nobody
  int64_t fence = 0;          // rises with each claim of the job
};

// The longest lease that a claim may have. One that ends later is from before the machine was started anew.
constexpr absl::Duration kLongestLease = absl::Minutes(5);

struct JobRow {
  std::string id, key, model_name, target, client_id;
  std::string owner = {};       // name of the caller who submitted it
  std::string request_id = {};  // by which the owner names this submission; "": by none
  int priority = 0;             // in a row that was read, that of the job's best submission that has not left
  // The owners of the job's submissions that have not left, each once, sorted. The store fills it on reading.
  std::vector<std::string> owners = {};
  std::string request;
  JobPhase state = JobPhase::kQueued;
  int64_t created_ms = 0, started_ms = 0, finished_ms = 0;
  std::string account;
  std::string bundle_digest;
  int64_t bundle_bytes = 0;
  int error_code = 0;
  std::string error_message;
  std::string checks;         // what workers found in the finished bundle
  int64_t last_seq = 0;       // of the latest event; the store fills it on reading
  int attempts = 0;           // compilations of it that died; the store fills it on reading
  std::string claimant = {};  // the store fills both on reading
  int64_t fence = 0;
  // For a submission (FindSubmission): the job that does its work, and where its own events end (0: with the job's).
  std::string runs_as = {};
  int64_t left_seq = 0;
  // Offered before the job ended ("": none), and the key of its row in the results table. The store fills them on
  // reading.
  std::string early_digest = {}, early_key = {};
  int64_t early_bytes = 0;
  int64_t number = 0;  // of the job; the store fills it on reading
  // A name for the model's blobs ("": they stand in the request alone), and those blobs. Not filled on reading.
  std::string model = {};
  std::vector<std::string> model_blobs = {};
  bool pinned = false;  // the job is kept until it is unpinned; the store fills it on reading

  JobClaim claim() const { return {id, claimant, fence}; }
};

// Where a page of submissions goes on: behind the last one of each kind that was returned.
struct JobCursor {
  int64_t before_number = std::numeric_limits<int64_t>::max();  // of submissions that made jobs
  int64_t joined_ms = std::numeric_limits<int64_t>::max();      // of those that joined one
  std::string joined_id = {};
};

struct JobPage {
  std::vector<JobRow> jobs;
  std::optional<JobCursor> next;  // none: there are no more
};

struct JobEventRow {
  int64_t seq = 0;
  std::string event;
};

struct ResultRow {
  std::string key, bundle_digest;
  int64_t bundle_bytes = 0;
  std::string account;
  int64_t created_ms = 0;
  std::string checks = {};
};

enum class TaskPhase { kQueued = 1, kLeased = 2, kDone = 3, kPoisoned = 4, kCancelled = 5 };
enum class TaskType { kBuild = 1, kMeasure = 2 };

struct TaskRow {
  std::string id, key;
  TaskType kind = TaskType::kBuild;
  std::string device_kind;  // "cpu", "opencl", "cuda"
  std::string requirement;  // the requirement that a worker must offer: "build:cpu", "measure:cpu:<fingerprint>"
  std::string description;
  std::string job;         // the job that asked first, for logs. Not stored: a job that starts again says it again
  std::string trace = {};  // of that job; not stored either
  std::string payload_digest;
  int64_t payload_bytes = 0;
  int64_t timeout_ms = 0;
  int threads = 0;
  TaskPhase state = TaskPhase::kQueued;
  int attempts = 0;
  int64_t fence = 0;
  std::string worker;    // that holds the lease
  std::string evidence;  // one line per failed attempt
  int64_t created_ms = 0, updated_ms = 0;
};

// A binary of a unit, as one builder made it.
struct BuildRow {
  std::string key, binary_digest;
  int64_t created_ms = 0;
  std::string toolchain = {};  // its digest; "": unknown
  std::string builder = {};    // the id of the token by which it came; "": it came through the socket
  bool trusted = true;         // the builder alone suffices
  bool reproduces = false;     // the toolchain makes the same bytes of the same text, so that builders can be compared
};

struct WorkerRow {
  std::string id, name, device_kind, fingerprint, device_model_json;
  int64_t seen_ms = 0;
  std::string source = {};  // whose word its device's rates are; "": it is believed
};

// Why the row of a source counts (docs/decisions/0060).
enum class Standing {
  kBelieved = 0,      // its worker is believed; also rows from before sources were kept
  kConfirmed = 1,     // a worker of another source measured the same
  kChecked = 2,       // the sentinel and the canaries of its batch were right
  kSingleSource = 3,  // there was no other worker to ask
  kImported = 4,
};

// May what is so sure contradict another source?
constexpr bool IsFirm(Standing standing) {
  return standing == Standing::kBelieved || standing == Standing::kConfirmed;
}

// Names of sources of imported rows begin so.
inline constexpr char kImportedSource[] = "imported/";

// A source of measurements, and what is known of it (server/scheduler/judge.h).
struct SourceRow {
  std::string source;
  int64_t strikes = 0;   // since its last confirmed batch
  int64_t in_a_row = 0;  // confirmed batches since its last strike
  int64_t batches = 0, confirmed = 0, caught = 0;
  std::string last = {};                   // why it was caught
  std::vector<std::string> awaiting = {};  // ids of undecided tasks on which it was heard
};

struct MeasurementRow {
  std::string question_key, measurement_key, device_fingerprint, description;
  int64_t samples = 0;
  double min_ns = 0, median_ns = 0, p90_ns = 0;
  std::vector<double> samples_ns;  // a summary: at most 64
  std::string worker, toolchain;
  int64_t time_ms = 0;
  double model_ns = 0;                       // 0: unknown
  std::string workload, structure, choices;  // of a tuning trial (compiler/cost/latency_oracle.h)
  // The attempt that measured it: the database it was accepted by ("": this one), the task, its fence, the item in it.
  // At most one row has the same four, unless `task` is "" (unknown).
  std::string origin = {}, task = {};
  int64_t fence = 0, item = 0;
  int64_t id = 0;  // rises with time; ScanMeasurements fills it
  // The one whose word it is ("": a worker that is believed), and why it counts. Rows of `imported/S` are quarantined
  // with the source S, too.
  std::string source = {};
  Standing standing = Standing::kBelieved;
  bool quarantined = false;  // the row answers no question; ScanMeasurements fills it
};

struct TrialRow {
  std::string choices;
  double latency_ns = 0;
  std::string imported_from = {};  // a source, where every row of the trial was imported; else ""
};

// The latencies of a question some of whose rows were imported.
struct ImportedLatency {
  std::string source;      // of the latest imported row
  double imported_ns = 0;  // the median of the imported rows' medians; 0: none was imported
  double own_ns = 0;       // the same of all others; 0: there is none
  bool is_firm = false;    // one of the others is of a worker that is believed, or was confirmed
};

// A whole plan, measured as it runs in its bundle.
struct PlanRow {
  std::string bundle_digest, device_fingerprint, model_name, planner;
  int threads = 1;
  double model_ns = 0;  // 0: unknown
  double median_ns = 0, p25_ns = 0, p75_ns = 0;
  std::string worker;
  int64_t time_ms = 0;
  std::string source = {};   // whose word it is; "": a worker that is believed
  bool quarantined = false;  // the row does not count; ScanPlans fills it
};

// A whole plan beside the reference with which it ran in turns.
struct PlanComparisonRow {
  std::string plan_key, reference_key, device_fingerprint, description;
  int threads = 1;
  int64_t rounds = 0;
  // Latency over the reference's: the median of the rounds, and that median's 95% confidence interval.
  double ratio = 0, ratio_low = 0, ratio_high = 0;
  double median_ns = 0, reference_ns = 0;
  double model_ns = 0, reference_model_ns = 0;  // the cost model's estimates; 0: unknown
  std::string worker;
  int64_t time_ms = 0;
  std::string origin = {}, task = {};  // as in MeasurementRow
  int64_t fence = 0, item = 0;
  std::string source = {};
  Standing standing = Standing::kBelieved;
  bool quarantined = false;  // the row answers no question; ScanPlans fills it
};

// Rows that the results of tasks add.
struct AcceptedRows {
  std::vector<MeasurementRow> measurements = {};
  std::vector<PlanComparisonRow> comparisons = {};
  // Each replaces the row with its key, toolchain and builder. Those of a builder whose token is revoked are left out.
  std::vector<BuildRow> builds = {};
};

// The latency that the cost model expected for a question or a plan, and the measured one.
struct ModelErrorRow {
  double model_ns = 0, latency_ns = 0;
};

// The model that planning uses for every device with this fingerprint, so that all of them need the same kernels.
struct DeviceRow {
  std::string fingerprint, model_json;
  int64_t time_ms = 0;
  int64_t measurements = 0;  // measurements of that device in the database that the row comes from
};

struct MeasurementFilter {
  std::string key_prefix, contains, device_fingerprint;  // "" = any
  int limit = 100;                                       // newest first
  int64_t before_id = std::numeric_limits<int64_t>::max();
};

struct ProfileCounts {
  int64_t measurements = 0, questions = 0, devices = 0, oldest_ms = 0, newest_ms = 0;
};

struct BlobRow {
  std::string digest;
  int64_t size_bytes = 0;
  int64_t created_ms = 0;
};

// A token of a caller, or the certificate of a worker. `hash` is the SHA-256 of the whole token, or of the public key.
struct TokenRow {
  std::string id, name, hash, roles;  // roles: "client,admin"
  bool joins = false;                 // a worker may exchange it for a token of its own, and nothing else
  int64_t created_ms = 0;
  int64_t expires_ms = 0;  // 0: never
  int64_t revoked_ms = 0;  // 0: it was not revoked
  std::string created_by;
  std::string tenant = {};  // "": the default one
  std::string parent = {};  // the id of the join token that it was made for ("": none)
  int64_t most_joins = 0;   // of a join token: valid tokens and certificates that are made for it; 0: without a limit
  bool certificate = false;
};

// A worker that an operator keeps from new tasks, by its name; or a source in quarantine, by that.
struct DrainedWorkerRow {
  std::string name, reason, by;
  int64_t since_ms = 0;
  int64_t from_ms = 0, until_ms = 0;  // the window in which it is; 0: at once, and until it is released
  bool quarantined = false;

  bool HoldsAt(int64_t now_ms) const { return from_ms <= now_ms && !IsOverAt(now_ms); }
  bool IsOverAt(int64_t now_ms) const { return until_ms > 0 && until_ms <= now_ms; }
};

// Rows that are older than these times (Unix milliseconds) are not kept.
struct Cutoffs {
  int64_t jobs_ms = 0;  // final jobs, by their end, and results, by their making
  int64_t tasks_ms = 0;
  int64_t builds_ms = 0;
};

struct ExpiredRows {
  int64_t jobs = 0, results = 0, tasks = 0, builds = 0;
};

enum class ReferenceKind { kBundle, kResult, kBinary, kModel };

// A blob that a row needs.
struct Reference {
  ReferenceKind kind;
  std::string digest, owner;  // owner: the id or the key of the row
};

struct PruneFilter {
  int64_t before_ms = 0;           // rows that are older
  std::string device_fingerprint;  // "" = any
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_ROWS_H_
