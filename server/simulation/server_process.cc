#include "server/simulation/server_process.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/compile_process/compile_process.h"
#include "server/scheduler/accept_result.h"

namespace fusion::simulation {
namespace {

constexpr int kPlaces = 2, kAway = 2, kJobsInFlight = 3, kAttempts = 2;

SchedulerConfig Scheduling() {
  SchedulerConfig config;
  config.lease = absl::Seconds(3), config.heartbeat = absl::Seconds(1);
  config.close_slack = absl::Seconds(2), config.longest_turn = absl::Seconds(5), config.orphan = absl::Seconds(8);
  config.failures_of_a_suspect = 1 << 30;  // nobody is here to release a worker that has drained itself
  return config;
}

class Bundler : public MeasurementBundler {
 public:
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    std::vector<std::string> bundles;
    for (const std::string& key : keys) bundles.push_back(absl::StrCat("kernel of ", key));
    return bundles;
  }
};

}  // namespace

History::Limits ServiceLimits() { return {kJobsInFlight, kPlaces, kAttempts}; }

std::string BundleOf(const std::string& model) { return absl::StrCat("bundle of ", model); }

ServerProcess::ServerProcess(ServerWorld* world)
    : world_(world),
      threads_(world->fibers),
      store_(world->store, &threads_, world->random, world->history, &world->store_faults) {}

absl::Status ServerProcess::Start() {
  const SteadyClock clock = [fibers = world_->fibers] { return fibers->now(); };
  ASSIGN_OR_RETURN(artifacts_, ArtifactStore::Open(absl::StrCat(world_->folder, "/blobs"), &store_, clock));
  farm_ = std::make_unique<Farm>(
      &store_, artifacts_.get(), world_->metrics,
      [this](const TaskRow& task, const std::string& payload, const std::string& result, const AttachedWorker& worker) {
        // The disk takes its time for what a result brings, and meanwhile the lease may end.
        if (world_->random->Chance(world_->store_faults.slow * 0.2)) {
          threads_.Sleep(world_->random->Between(absl::ZeroDuration(), absl::Seconds(4)));
        }
        return AcceptTaskResult(*artifacts_, task, payload, result, worker);
      },
      Scheduling(), world_->log, clock, &threads_);
  RETURN_IF_ERROR(farm_->Restore());
  JobRunnerOptions options;
  options.work_folder = absl::StrCat(world_->folder, "/work");
  options.compile_threads = kPlaces;
  options.max_away = kAway;
  options.max_in_flight = kJobsInFlight;
  options.max_attempts = kAttempts;
  options.first_worker_grace = absl::Seconds(2);
  options.log = world_->log;
  options.clock = clock;
  options.threads = &threads_;
  CompilerFunctions compiler;
  compiler.compile = [this](const ModelFiles& files, const CompileOptions& compile_options,
                            const CompileContext& context,
                            const std::string& path) { return Compile(files, compile_options, context, path); };
  compiler.planners = {"dnnfusion", "none"};
  compiler.check_rule = [](const std::string&) { return absl::OkStatus(); };
  jobs_ = std::make_unique<JobRunner>(options, std::move(compiler), &store_, artifacts_.get(), farm_.get(),
                                      world_->metrics);
  RETURN_IF_ERROR(jobs_->Restore());
  farm_->Start();
  jobs_->Start();
  return absl::OkStatus();
}

void ServerProcess::Stop() {
  if (jobs_ != nullptr) jobs_->BeginStop();
  if (farm_ != nullptr) farm_->Stop();
  if (jobs_ != nullptr) jobs_->Stop();
  threads_.Kill();
  world_->fibers->Block([this] { return calls == 0; }, absl::InfiniteFuture());
}

absl::Status ServerProcess::Compute(const CompileContext& context) {
  if (context.cancelled()) return absl::CancelledError("cancelled");  // a stop gives no place back
  world_->history->ComputeBegan();
  const absl::Time until =
      world_->fibers->now() + world_->random->Between(absl::ZeroDuration(), absl::Milliseconds(900));
  while (world_->fibers->now() < until && !context.cancelled()) threads_.Sleep(absl::Milliseconds(300));
  world_->history->ComputeEnded();
  return context.cancelled() ? absl::CancelledError("cancelled") : absl::OkStatus();
}

absl::Status ServerProcess::Ask(const std::string& model, int count, const CompileContext& context,
                                CompileAccount* account) {
  std::vector<LatencyQuestion> questions;
  for (int i = 0; i < count; ++i) {
    // Every second question is one that all models have.
    const std::string name =
        i % 2 == 0 ? absl::StrCat("block ", i, " of all") : absl::StrCat("block ", i, " of ", model);
    questions.push_back({Sha256Hex(name), name, 1e6, 1e6, i >= 2 ? "group" : ""});
  }
  Bundler bundler;
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, context.oracle->Latency(questions, bundler));
  for (const LatencyAnswer& answer : answers) {
    ++account->questions;
    ++(answer.source == LatencySource::kDatabase   ? account->from_database
       : answer.source == LatencySource::kMeasured ? account->measured
                                                   : account->from_model);
  }
  return absl::OkStatus();
}

absl::StatusOr<CompileAccount> ServerProcess::Compile(const ModelFiles& files, const CompileOptions& options,
                                                      const CompileContext& context, const std::string& bundle_path) {
  // The folder has the name of the job.
  const std::string job = std::filesystem::path(bundle_path).parent_path().filename();
  const absl::StatusOr<JobRow> row = world_->store->GetJob(job);
  const std::string key = absl::StrCat(row.ok() ? row->key : job, " ", options.planner);
  world_->history->CompileBegan(key, job, row.ok() ? row->attempts : 0);
  const auto ended = absl::MakeCleanup([&] { world_->history->CompileEnded(key, job); });
  std::istringstream words(files.model_name);
  std::string model, word;
  int count = 0;
  words >> model;
  CompileAccount account;
  context.progress({"import", 1, 1, ""});
  RETURN_IF_ERROR(Compute(context));
  while (words >> word >> count) {
    if (word == "die" || world_->random->Chance(world_->compile_dies)) {
      return ProcessEndedError("signal", "the simulated compilation died");
    }
    if (word == "ask") RETURN_IF_ERROR(Ask(model, count, context, &account));
    if (word == "build") {
      std::vector<BuildUnit> units;
      for (int i = 0; i < count; ++i) {
        units.push_back(
            {options.target, context.device->march, absl::StrCat("int ", i % 2 == 0 ? "k" : model, i, ";")});
      }
      RETURN_IF_ERROR(context.toolchain->Build(units).status());
    }
    RETURN_IF_ERROR(Compute(context));
  }
  std::ofstream(bundle_path) << BundleOf(files.model_name);
  return account;
}

}  // namespace fusion::simulation
