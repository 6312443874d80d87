// A farm with a thousand workers and ten thousand tasks, in one process and on a real database. The figures are
// printed; asserted is only that everything is done once, because a verdict must not depend on the machine's load.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduler/farm.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

constexpr int kWorkers = 1000, kBatches = 10, kTasksPerBatch = 1000;

double ProcessorSeconds() { return static_cast<double>(clock()) / CLOCKS_PER_SEC; }

// A thousand workers that take no time: what a worker was given is handed back done with its next call.
class Workers {
 public:
  explicit Workers(Farm* farm) : farm_(farm) {}

  void Attach() {
    for (int i = 0; i < kWorkers; ++i) {
      AttachedWorker worker;
      worker.id = absl::StrCat("w", i), worker.name = worker.id, worker.toolchain_kinds = {"cpu"};
      ASSERT_TRUE(farm_->Register(worker).ok());
      Call(i, std::nullopt);
    }
  }
  // Until `count` results are delivered. Returns the fences under which they were.
  std::set<int64_t> Work(int count) {
    std::set<int64_t> fences;
    while (static_cast<int>(fences.size()) < count) {
      std::pair<int, std::optional<TaskRow>> next;
      {
        absl::MutexLock lock(&mutex_);
        const auto answered = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !answers_.empty(); };
        mutex_.Await(absl::Condition(&answered));
        next = std::move(answers_.front());
        answers_.pop_front();
      }
      if (next.second.has_value()) EXPECT_TRUE(fences.insert(next.second->fence).second);
      Call(next.first, next.second);
    }
    return fences;
  }

 private:
  void Call(int worker, const std::optional<TaskRow>& done) {
    FarmPoll poll;
    poll.worker_id = absl::StrCat("w", worker);
    poll.max_wait = absl::Seconds(40);
    poll.gone = std::make_shared<std::atomic<bool>>(false);
    if (done.has_value()) {
      poll.task_id = done->id, poll.fence = done->fence, poll.finished = true;
      poll.result = "result";
    }
    poll.reply = [this, worker](const FarmAnswer& answer) {
      absl::MutexLock lock(&mutex_);
      answers_.emplace_back(worker, answer.task);
    };
    farm_->Poll(std::move(poll));
  }

  Farm* const farm_;
  absl::Mutex mutex_;
  std::deque<std::pair<int, std::optional<TaskRow>>> answers_ ABSL_GUARDED_BY(mutex_);
};

TEST(FarmScale, AThousandWorkersDoTenThousandTasksOnce) {
  testing::TemporaryState state;
  Metrics metrics;
  Farm farm(
      &state.store(), &state.artifacts(), &metrics,
      [](const TaskRow&, const std::string&, const std::string&, const AttachedWorker&) { return AcceptedRows(); });
  ASSERT_TRUE(farm.Restore().ok());
  farm.Start();
  // Everything is queued before the first worker comes.
  std::vector<std::thread> compilations;
  std::atomic<int> succeeded{0};
  for (int batch = 0; batch < kBatches; ++batch) {
    compilations.emplace_back([&, batch] {
      std::vector<FarmTask> tasks(kTasksPerBatch);
      for (int i = 0; i < kTasksPerBatch; ++i) {
        tasks[i].key = absl::StrCat("key ", batch, " ", i), tasks[i].description = "a task";
        tasks[i].payload = absl::StrCat("payload ", batch, " ", i);
        tasks[i].device_kind = "cpu", tasks[i].requirement = BuildRequirement("cpu");
      }
      const auto outcomes = farm.RunAll(tasks, {});
      ASSERT_TRUE(outcomes.ok()) << outcomes.status();
      for (const FarmOutcome& outcome : *outcomes) succeeded += outcome.status.ok() && outcome.result == "result";
    });
  }
  const auto queued = [&] { return metrics.Value(Metric::kQueueDepth, {{"device_class", "cpu"}}); };
  while (queued() < kBatches * kTasksPerBatch) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Workers workers(&farm);
  workers.Attach();
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = ProcessorSeconds();
  const std::set<int64_t> fences = workers.Work(kBatches * kTasksPerBatch);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (std::thread& compilation : compilations) compilation.join();
  std::cout << fences.size() << " tasks on " << kWorkers << " workers: " << fences.size() / seconds
            << " dispatches a second, " << 1e3 * (ProcessorSeconds() - cpu_begin) / static_cast<double>(fences.size())
            << " ms of processor time each, clients included\n";
  EXPECT_EQ(succeeded, kBatches * kTasksPerBatch);
  farm.Stop();
}

}  // namespace
}  // namespace fusion
