#include "server/simulation/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/worker.pb.h"
#include "runtime/base/sha256.h"

namespace fusion::simulation {
namespace {

constexpr absl::Duration kMaxWait = absl::Seconds(4), kPatience = absl::Seconds(2);
constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kLongestPause = absl::Milliseconds(800);

}  // namespace

struct SimulatedWorker::Call {
  std::shared_ptr<std::atomic<bool>> gone = std::make_shared<std::atomic<bool>>(false);
  bool ended = false;
  FarmAnswer answer;
};

SimulatedWorker::SimulatedWorker(ServerWorld* world, int number, bool measures,
                                 std::function<std::shared_ptr<ServerProcess>()> server, const WorkerFaults* faults)
    : world_(world),
      number_(number),
      measures_(measures),
      server_(std::move(server)),
      faults_(faults),
      id_(absl::StrCat("w", number, "-0")),
      pause_(kFirstPause) {}

AttachedWorker SimulatedWorker::Describe(const std::string& id) const {
  AttachedWorker worker;
  worker.id = id, worker.name = absl::StrCat("worker ", number_), worker.toolchain = "simulated";
  worker.toolchain_kinds = {"cpu"};
  worker.info = id;
  if (measures_) {
    worker.measure_kinds = {"cpu"};
    worker.device.name = "a simulated device";
    worker.fingerprint = worker.device.Fingerprint();
  } else {
    worker.device.kind.clear();
  }
  return worker;
}

void SimulatedWorker::Restart(absl::Duration pause) {
  running_.reset();
  world_->fibers->Sleep(pause);
  id_ = absl::StrCat("w", number_, "-", ++life_);
}

void SimulatedWorker::Deliver(const std::shared_ptr<ServerProcess>& process, FarmPoll poll,
                              const std::shared_ptr<Call>& call) {
  ++process->calls;
  poll.gone = call->gone;
  poll.reply = [call, process = process.get()](const FarmAnswer& answer) {
    if (process->dead()) return;  // the connection broke with it
    call->answer = answer;
    call->ended = true;
  };
  absl::Status registered;
  const std::string id = poll.worker_id;  // a late call may be of an earlier life
  if (!process->farm().IsRegistered(id, id, "")) registered = process->farm().Register(Describe(id));
  if (registered.ok()) {
    process->farm().Poll(std::move(poll));
  } else {
    call->answer.status = registered;
    call->ended = true;
  }
  --process->calls;
}

SimulatedWorker::Reply SimulatedWorker::Synchronize(FarmPoll poll, absl::Duration patience) {
  SeededRandom& random = *world_->random;
  Fibers& fibers = *world_->fibers;
  fibers.Sleep(absl::Milliseconds(random.Below(4)));
  const std::shared_ptr<ServerProcess> process = server_();
  if (process == nullptr || random.Chance(faults_->request_lost)) {
    fibers.Sleep(random.Chance(0.7) ? absl::Milliseconds(1) : patience);
    return {absl::UnavailableError("no answer"), std::nullopt, {}};
  }
  auto call = std::make_shared<Call>();
  if (random.Chance(faults_->request_late)) {
    // The worker gives up, and the server hears of it later all the same.
    fibers.Add([this, poll = std::move(poll), call, late = random.Between(absl::ZeroDuration(), absl::Seconds(8))] {
      world_->fibers->Sleep(late);
      if (const std::shared_ptr<ServerProcess> later = server_(); later != nullptr) Deliver(later, poll, call);
    });
    fibers.Sleep(random.Between(absl::ZeroDuration(), patience));
    return {absl::UnavailableError("no answer in time"), std::nullopt, {}};
  }
  Deliver(process, std::move(poll), call);
  fibers.Block([&] { return call->ended || process->dead(); }, fibers.now() + patience);
  if (!call->ended || random.Chance(faults_->reply_lost)) {
    call->gone->store(true);
    if (!process->dead() && random.Chance(0.8)) {  // else the server does not notice
      ++process->calls;
      process->farm().HungUp(id_, call->gone);
      --process->calls;
    }
    return {absl::UnavailableError("the connection broke"), std::nullopt, {}};
  }
  fibers.Sleep(absl::Milliseconds(random.Below(4)));
  if (!call->answer.status.ok()) return {call->answer.status, std::nullopt, {}};
  if (call->answer.task.has_value()) world_->history->TaskReceived(id_, *call->answer.task);
  return {absl::OkStatus(), call->answer.task, call->answer.next_sync};
}

absl::StatusOr<std::string> SimulatedWorker::ResultOf(const TaskRow& task, const std::string& payload) {
  if (task.kind == TaskType::kBuild) {
    v1::BuildPayload units;
    if (!units.ParseFromString(payload)) return absl::UnavailableError("the payload does not parse");
    v1::BuildResult built;
    for (const v1::BuildUnitProto& unit : units.units()) built.add_binaries(absl::StrCat("binary of ", unit.source()));
    return built.SerializeAsString();
  }
  v1::MeasurePayload items;
  if (!items.ParseFromString(payload)) return absl::UnavailableError("the payload does not parse");
  v1::MeasureResults measured;
  for (int i = 0; i < items.items_size(); ++i) {
    v1::MeasureResult* result = measured.add_results();
    result->add_samples_ns(SampleOf(task.fence));
    result->set_median_ns(SampleOf(task.fence));
  }
  return measured.SerializeAsString();
}

void SimulatedWorker::Begin(const TaskRow& task) {
  SeededRandom& random = *world_->random;
  Running running{task, world_->fibers->now() + random.Between(absl::Milliseconds(20), absl::Milliseconds(1500)),
                  false};
  running.hangs = random.Chance(faults_->hangs);
  const std::shared_ptr<ServerProcess> process = server_();
  absl::StatusOr<std::string> payload = absl::UnavailableError("the server is not there");
  if (process != nullptr) {
    ++process->calls;
    payload = process->artifacts().Get(task.payload_digest);
    --process->calls;
  }
  if (!payload.ok()) {
    running.result = absl::UnavailableError("the payload cannot be read");
  } else if (random.Chance(faults_->fails)) {
    running.result = random.Chance(0.5) ? absl::InternalError("the task is at fault")
                                        : absl::UnavailableError("the worker is at fault");
  } else if (random.Chance(faults_->damaged)) {
    running.result = "damaged";
  } else {
    running.result = ResultOf(task, *payload);
  }
  running_ = std::move(running);
}

void SimulatedWorker::Run(const std::function<bool()>& stopped) {
  SeededRandom& random = *world_->random;
  Fibers& fibers = *world_->fibers;
  const auto wait = [&](absl::Time until) { fibers.Block([&] { return stopped(); }, until); };
  while (!stopped()) {
    if (running_.has_value()) {
      if (random.Chance(faults_->crashes)) Restart(random.Between(absl::Milliseconds(10), absl::Seconds(6)));
      if (random.Chance(faults_->stands_still)) wait(fibers.now() + random.Between(absl::Seconds(1), absl::Seconds(9)));
    }
    const bool finished = running_.has_value() && !running_->hangs && running_->ends <= fibers.now();
    FarmPoll poll;
    poll.worker_id = id_;
    if (running_.has_value()) {
      poll.task_id = running_->task.id, poll.fence = running_->task.fence, poll.finished = finished;
      poll.stage = random.Chance(0.8) ? TaskStage::kRunning : TaskStage::kUnknown;
      if (finished) poll.result = running_->result;
    }
    poll.max_wait = running_.has_value() && !finished ? absl::ZeroDuration() : kMaxWait;
    const absl::Duration patience = poll.max_wait + kPatience;
    const Reply reply = Synchronize(std::move(poll), patience);
    if (!reply.status.ok()) {
      wait(fibers.now() + random.Between(pause_ * 0.5, pause_ * 1.5));
      pause_ = std::min(pause_ * 2, kLongestPause);
      continue;
    }
    pause_ = kFirstPause;
    if (finished) {
      running_.reset();
      ++tasks_done_;
    }
    if (!reply.task.has_value()) {
      running_.reset();  // idle, or the server has given the task up
    } else if (!running_.has_value() || running_->task.id != reply.task->id ||
               running_->task.fence != reply.task->fence) {
      Begin(*reply.task);
    }
    absl::Time next = fibers.now() + reply.next_sync;
    if (running_.has_value() && !running_->hangs) next = std::min(next, running_->ends);
    wait(next);
  }
}

}  // namespace fusion::simulation
