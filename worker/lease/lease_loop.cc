#include "worker/lease/lease_loop.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/sha256.h"
#include "worker/executor/task_line.h"

namespace fusion {
namespace {

constexpr size_t kInlineBytes = 1 << 20;   // proto/worker.proto
constexpr size_t kMessageBytes = 4 << 10;  // proto/worker.proto

v1::TaskResult ToResult(absl::StatusOr<std::string> bytes, Transport* transport) {
  v1::TaskResult result;
  absl::Status status = bytes.status();
  if (status.ok() && bytes->size() <= kInlineBytes) {
    result.set_inline_(*std::move(bytes));
    return result;
  }
  if (status.ok()) {
    const std::string digest = Sha256Hex(*bytes);
    status = transport->WriteBlob(digest, *bytes);
    if (status.ok()) {
      result.set_digest(digest);
      return result;
    }
    status = absl::UnavailableError(absl::StrCat("cannot store the result: ", status.ToString()));
  }
  // The code tells the server whether the task or this worker is at fault.
  result.mutable_error()->set_code(static_cast<int>(status.code()));
  result.mutable_error()->set_message(std::string(status.message()).substr(0, kMessageBytes));
  return result;
}

// Describes a failed call for people. It distinguishes a server that refuses the worker from one that cannot be
// reached.
std::string Trouble(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return absl::StrCat("server unreachable, trying on: ", std::string(status.message()));
    default:
      return absl::StrCat("the server refuses this worker, trying on: ", std::string(status.message()));
  }
}

}  // namespace

struct LeaseLoop::Running {
  v1::Task task;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> waiting{false};  // for its turn
  std::atomic<bool> done{false};
  v1::TaskResult result;  // valid once `done`
  std::thread thread;
};

LeaseLoop::LeaseLoop(LeaseOptions options, Transport* transport, TaskExecutor* executor)
    : options_(std::move(options)), transport_(transport), executor_(executor) {}

LeaseLoop::~LeaseLoop() { Stop(); }

void LeaseLoop::Drain() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    draining_ = true;
  }
  changed_.notify_all();
  transport_->Interrupt();
}

void LeaseLoop::Abort() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
  }
  changed_.notify_all();
  transport_->Interrupt();
}

bool LeaseLoop::Aborted() {
  std::lock_guard<std::mutex> lock(mutex_);
  return aborted_;
}

bool LeaseLoop::Draining() {
  std::lock_guard<std::mutex> lock(mutex_);
  return draining_;
}

void LeaseLoop::Start(const v1::Task& task) {
  running_ = std::make_unique<Running>();
  Running* running = running_.get();
  running->task = task;
  running->thread = std::thread([this, running] {
    const TaskContext context{[running] { return running->cancelled.load(); },
                              [running](bool waits) { running->waiting = waits; }};
    running->result = ToResult(executor_->Execute(running->task, "", context), transport_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      running->done = true;
    }
    changed_.notify_all();
  });
}

void LeaseLoop::Stop() {
  if (running_ == nullptr) return;
  running_->cancelled = true;
  running_->thread.join();
  running_.reset();
}

void LeaseLoop::WaitFor(absl::Duration duration) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool was_draining = draining_;
  const bool was_done = running_ != nullptr && running_->done;
  changed_.wait_for(lock, absl::ToChronoMicroseconds(duration), [&] {
    return aborted_ || draining_ != was_draining || (running_ != nullptr && running_->done && !was_done);
  });
}

void LeaseLoop::AddLines(v1::SynchronizeRequest* request) {
  if (options_.lines == nullptr) return;
  for (v1::LogRecord& record : options_.lines->Take()) *request->add_lines() = std::move(record);
}

void LeaseLoop::PutBackLines(v1::SynchronizeRequest* request) {
  if (options_.lines == nullptr || request->lines().empty()) return;
  options_.lines->PutBack({request->lines().begin(), request->lines().end()});
}

void LeaseLoop::Run() {
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  absl::Duration pause = options_.first_pause;
  std::string trouble;  // the message logged last; empty: none
  while (!Aborted()) {
    const bool draining = Draining();
    if (draining) transport_->Resume();
    const bool finished = running_ != nullptr && running_->done;
    v1::SynchronizeRequest request;
    request.set_worker_id(options_.worker_id);
    *request.mutable_info() = options_.info;
    request.set_draining(draining);
    if (running_ != nullptr) {
      request.mutable_current()->set_task_id(running_->task.task_id());
      request.mutable_current()->set_fence(running_->task.fence());
      if (!finished) request.mutable_current()->set_stage(running_->waiting ? v1::WAITING : v1::RUNNING_TASK);
      if (finished) *request.mutable_current()->mutable_result() = running_->result;
      AddLines(&request);
    }
    const absl::Duration wait =
        draining || (running_ != nullptr && !finished) ? absl::ZeroDuration() : options_.max_wait;
    request.set_max_wait_ms(absl::ToInt64Milliseconds(wait));

    absl::StatusOr<v1::SynchronizeResponse> response = transport_->Synchronize(request, wait + absl::Seconds(10));
    if (!response.ok()) {
      PutBackLines(&request);
      if (Aborted() || Draining() != draining) continue;
      // There is nothing to deliver, or nobody who takes it: the server knows this worker's token no longer.
      const bool sent_away = absl::IsUnauthenticated(response.status()) || absl::IsPermissionDenied(response.status());
      if (draining && (running_ == nullptr || sent_away)) break;
      if (std::string now = Trouble(response.status()); now != trouble)
        options_.log({LogLevel::kWarning, trouble = std::move(now), {}});
      WaitFor(pause * jitter(random));
      pause = std::min(pause * 2, options_.longest_pause);
      continue;
    }
    if (!trouble.empty()) options_.log({LogLevel::kInfo, "server reached again", {}});
    trouble.clear();
    pause = options_.first_pause;

    if (finished) Stop();  // the result is durable
    if (draining && running_ == nullptr) return;
    if (response->has_task()) {
      const bool same = running_ != nullptr && running_->task.task_id() == response->task().task_id() &&
                        running_->task.fence() == response->task().fence();
      if (!same) {
        if (running_ != nullptr) {
          options_.log(TaskLine(LogLevel::kWarning, "stopping: the server wants another task", running_->task));
        }
        Stop();
        if (!draining) Start(response->task());
      }
    } else if (running_ != nullptr) {
      options_.log(TaskLine(LogLevel::kInfo, "stopping: the server has given the task up", running_->task));
      Stop();
    }
    const int64_t next_ms = std::clamp<int64_t>(response->next_sync_ms(), running_ != nullptr ? 50 : 0, 60000);
    if (next_ms > 0) WaitFor(absl::Milliseconds(next_ms));
  }
  Stop();
}

}  // namespace fusion
