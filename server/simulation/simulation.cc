#include "server/simulation/simulation.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/simulation/fibers.h"
#include "server/simulation/memory_store.h"
#include "server/simulation/server_process.h"
#include "server/simulation/simulated_worker.h"

namespace fusion::simulation {
namespace {

constexpr absl::Duration kFaulty = absl::Seconds(25);    // faults happen until then
constexpr absl::Duration kLongest = absl::Seconds(300);  // everything has ended by then
constexpr int64_t kMostSteps = 200000;

class Simulation {
 public:
  Simulation(uint64_t seed, const Environment& environment);
  Outcome Run();

 private:
  struct Submission {
    std::string id, model;
    bool cancelled = false;
  };
  void DrawFaults();
  void Heal();
  // Starts and ends processes of the server, one after another.
  void Operate();
  void EndProcess(bool orderly);
  // Submits one model until it is acknowledged, and sometimes cancels it later.
  void Submit(const std::string& model, const std::string& owner);
  v1::SubmitRequest RequestFor(const std::string& model);
  absl::StatusOr<std::string> TrySubmit(const v1::SubmitRequest& request, const std::string& owner);
  bool AllEnded();
  void Judge();
  // After a power cut, files that were not synced are not what they were.
  void LosePayloads();

  SeededRandom random_;
  Fibers fibers_{&random_};
  History history_{ServiceLimits()};
  std::optional<MemoryStore> memory_;
  ServerWorld world_;
  WorkerFaults worker_faults_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::shared_ptr<ServerProcess> server_;
  std::vector<Submission> acknowledged_;
  absl::Time begin_;
  bool healed_ = false, over_ = false;
  int submitting_ = 0;
  double server_dies_ = 0, acknowledgement_lost_ = 0;
  Outcome outcome_;
};

Simulation::Simulation(uint64_t seed, const Environment& environment) : random_(seed), begin_(fibers_.now()) {
  if (environment.store == nullptr) memory_.emplace(environment.rest, [this] { return fibers_.now(); });
  std::error_code ignored;
  std::filesystem::remove_all(environment.folder, ignored);
  std::filesystem::create_directories(environment.folder, ignored);
  world_.fibers = &fibers_, world_.random = &random_, world_.history = &history_;
  world_.store = environment.store != nullptr ? environment.store : &*memory_;
  world_.metrics = environment.metrics, world_.folder = environment.folder;
  world_.log = [this, log = environment.log](LogLine line) {
    line.fields.push_back({"at", absl::FormatDuration(fibers_.now() - begin_)});
    log(line);
  };
  DrawFaults();
}

// Each kind of fault is there in about half of the simulations, so that some see few kinds and go far, and others see
// all at once.
void Simulation::DrawFaults() {
  const auto some = [&](double most) { return random_.Chance(0.5) ? most * (1 + random_.Below(4)) / 4 : 0.0; };
  world_.store_faults.slow = 0.3 + some(0.5);
  world_.store_faults.stall = some(0.06);
  world_.store_faults.full = some(0.1);
  world_.compile_dies = some(0.15);
  worker_faults_.request_lost = some(0.2), worker_faults_.reply_lost = some(0.2);
  worker_faults_.request_late = some(0.15);
  worker_faults_.crashes = some(0.15), worker_faults_.hangs = some(0.04), worker_faults_.stands_still = some(0.15);
  worker_faults_.fails = some(0.2), worker_faults_.damaged = some(0.1);
  server_dies_ = some(1);
  acknowledgement_lost_ = some(0.3);
}

void Simulation::Heal() {
  healed_ = true;
  world_.store_faults = {0.3, 0, 0, -1};
  world_.compile_dies = 0;
  worker_faults_ = {};
  server_dies_ = acknowledgement_lost_ = 0;
}

void Simulation::LosePayloads() {
  std::error_code error;
  for (std::filesystem::directory_iterator file(world_.folder + "/blobs/payloads", error), end; !error && file != end;
       file.increment(error)) {
    if (random_.Chance(0.5)) std::filesystem::resize_file(file->path(), 0, error);
  }
}

void Simulation::EndProcess(bool orderly) {
  const std::shared_ptr<ServerProcess> process = server_;
  if (!orderly) process->Kill(), server_ = nullptr;
  world_.log({LogLevel::kInfo, process->dead() ? "the server dies" : "the server stops", {}});
  ++(process->dead() ? outcome_.deaths : outcome_.starts);
  const bool power_cut = process->dead() && random_.Chance(0.3);
  process->Stop();  // an orderly one answers until it has stopped
  server_ = nullptr;
  if (power_cut) LosePayloads();
}

void Simulation::Operate() {
  while (!over_) {
    world_.store_faults.dies_at_commit = !healed_ && random_.Chance(server_dies_ * 0.5) ? 1 + random_.Below(40) : -1;
    auto process = std::make_shared<ServerProcess>(&world_);
    const absl::Status started = process->Start();
    server_ = process;
    if (!started.ok() && !process->dead() && !absl::IsResourceExhausted(started)) {
      history_.Violate(absl::StrCat("the server does not start: ", started.ToString()));
    }
    if (started.ok()) {
      const absl::Time until = !healed_ && random_.Chance(server_dies_)
                                   ? fibers_.now() + random_.Between(absl::Milliseconds(10), absl::Seconds(15))
                                   : absl::InfiniteFuture();
      fibers_.Block([&] { return over_ || process->dead(); }, until);
    }
    EndProcess(over_ || (started.ok() && !process->dead() && random_.Chance(0.3)));
    if (!over_) fibers_.Sleep(random_.Between(absl::Milliseconds(50), absl::Seconds(6)));
  }
}

v1::SubmitRequest Simulation::RequestFor(const std::string& model) {
  v1::SubmitRequest request;
  request.set_model_name(model);
  request.mutable_options()->set_target("cpu");
  request.set_queue_timeout_ms(10000);
  request.set_early_bundle(random_.Chance(0.15));
  v1::ModelFile* file = request.add_files();
  file->set_path("model.onnx");
  file->set_size_bytes(static_cast<int64_t>(model.size()));
  file->add_chunk_digests(Sha256Hex(model));
  return request;
}

absl::StatusOr<std::string> Simulation::TrySubmit(const v1::SubmitRequest& request, const std::string& owner) {
  const std::shared_ptr<ServerProcess> process = server_;
  if (process == nullptr) return absl::UnavailableError("no server");
  ++process->calls;
  absl::Status done = process->artifacts().Put(request.model_name()).status();
  std::string id;
  if (done.ok()) {
    const auto response = process->jobs().Submit(request, owner, [&] { return process->dead(); });
    done = response.status();
    if (response.ok()) id = response->job_id();
  }
  --process->calls;
  if (process->dead()) return absl::UnavailableError("the connection broke");
  if (!done.ok()) return done;
  return id;
}

void Simulation::Submit(const std::string& model, const std::string& owner) {
  const v1::SubmitRequest request = RequestFor(model);
  absl::StatusOr<std::string> id = absl::UnavailableError("not asked yet");
  while (!id.ok()) {
    id = TrySubmit(request, owner);
    if (!id.ok() && !absl::IsUnavailable(id.status()) && !absl::IsResourceExhausted(id.status())) {
      history_.Violate(absl::StrCat("a submission is refused: ", id.status().ToString()));
      break;
    }
    if (id.ok() && random_.Chance(acknowledgement_lost_)) id = absl::UnavailableError("the answer is lost");
    if (!id.ok()) fibers_.Sleep(random_.Between(absl::Milliseconds(200), absl::Seconds(2)));
  }
  ++outcome_.submissions;
  if (id.ok()) {
    acknowledged_.push_back({*id, model});
    const size_t own = acknowledged_.size() - 1;
    if (random_.Chance(0.2)) {
      fibers_.Sleep(random_.Between(absl::ZeroDuration(), absl::Seconds(6)));
      if (const std::shared_ptr<ServerProcess> process = server_; process != nullptr) {
        ++process->calls;
        acknowledged_[own].cancelled = true;  // it may take effect although the answer is an error
        (void)process->jobs().Cancel(*id);
        --process->calls;
      }
    }
  }
  --submitting_;
}

bool Simulation::AllEnded() {
  if (submitting_ > 0) return false;
  const auto unfinished = world_.store->UnfinishedJobs();
  return unfinished.ok() && unfinished->empty();
}

void Simulation::Judge() {
  for (const Submission& submission : acknowledged_) {
    const absl::StatusOr<JobRow> job = world_.store->FindSubmission(submission.id);
    if (!job.ok()) {
      history_.Violate(absl::StrCat("the acknowledged job of '", submission.model, "' is lost"));
      continue;
    }
    if (!IsFinal(job->state)) {
      history_.Violate(
          absl::StrCat("the job of '", submission.model, "' has not ended in ", absl::FormatDuration(kLongest)));
    }
    history_.Note(static_cast<uint64_t>(job->state));
    ++(job->state == JobPhase::kSucceeded ? outcome_.succeeded
       : job->state == JobPhase::kFailed  ? outcome_.failed
                                          : outcome_.cancelled);
    if (job->state == JobPhase::kCancelled && !submission.cancelled) {
      history_.Violate(absl::StrCat("the job of '", submission.model, "' is cancelled, and nobody asked for that"));
    }
    if (job->state != JobPhase::kSucceeded) continue;
    if (server_ == nullptr || server_->artifacts().Get(job->bundle_digest).value_or("") != BundleOf(submission.model)) {
      history_.Violate(absl::StrCat("the bundle of '", submission.model, "' is not what was compiled"));
    }
  }
}

Outcome Simulation::Run() {
  const auto server = [this] { return server_; };
  const int workers = 1 + random_.Below(4);
  for (int i = 0; i < workers; ++i) {
    workers_.push_back(
        std::make_unique<SimulatedWorker>(&world_, i, i == 0 || random_.Chance(0.7), server, &worker_faults_));
    fibers_.Add([this, worker = workers_.back().get(), joins = random_.Between({}, absl::Seconds(6))] {
      fibers_.Block([this] { return over_; }, fibers_.now() + joins);
      worker->Run([this] { return over_; });
    });
  }
  const int models = 1 + random_.Below(3);
  std::vector<std::string> lines;
  for (int i = 0; i < models; ++i) {
    lines.push_back(absl::StrCat("model-", i, " ask ", 1 + random_.Below(5), " build ", 1 + random_.Below(3)));
    if (random_.Chance(0.1)) absl::StrAppend(&lines.back(), " die 1");
  }
  submitting_ = 2 + random_.Below(7);
  for (int i = submitting_; i > 0; --i) {
    const std::string model = lines[static_cast<size_t>(random_.Below(models))];
    const std::string owner = random_.Chance(0.6) ? "a" : "b";
    fibers_.Add([this, model, owner, comes = random_.Between({}, absl::Seconds(18))] {
      fibers_.Sleep(comes);
      Submit(model, owner);
    });
  }
  fibers_.Add([this] { Operate(); });
  fibers_.Add([this] {
    fibers_.Sleep(kFaulty);
    Heal();
    fibers_.Block([this] { return AllEnded() && server_ != nullptr && !server_->dead(); }, begin_ + kLongest);
    Judge();
    over_ = true;
  });
  while (history_.violations().empty() || !over_) {
    if (!fibers_.Step()) break;
    if (++outcome_.steps > kMostSteps) {
      history_.Violate("the simulation does not end");
      break;
    }
  }
  while (fibers_.Step() && ++outcome_.steps < 2 * kMostSteps) over_ = true;
  outcome_.violations = history_.violations();
  outcome_.simulated_s = absl::ToDoubleSeconds(fibers_.now() - begin_);
  history_.Note(static_cast<uint64_t>(absl::ToUnixMicros(fibers_.now())));
  outcome_.digest = history_.digest();
  outcome_.leases = history_.leases(), outcome_.measurements = history_.measured();
  return outcome_;
}

}  // namespace

Outcome Simulate(uint64_t seed, const Environment& environment) { return Simulation(seed, environment).Run(); }

}  // namespace fusion::simulation
