// LocalWorker: the fusion-worker process that fusiond runs on its machine, so that worker code (which runs native code
// from the compiler) stays out of the server's process. The process is restarted with growing pauses when it dies, is
// stopped with SIGTERM, and ends with fusiond, because `--parent` names it.
#ifndef FUSION_SERVER_LOCAL_WORKER_H_
#define FUSION_SERVER_LOCAL_WORKER_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/log/log.h"
#include "server/scheduler/steady_cond_var.h"

namespace fusion {

class LocalWorker {
 public:
  // The name is for people; argv[0] is the program, and `--parent` is added to its arguments.
  LocalWorker(std::string name, std::vector<std::string> argv, Log log);
  ~LocalWorker();
  // Sends SIGTERM and does not wait.
  void BeginStop();
  // Sends SIGTERM, then SIGKILL after `grace`. Idempotent.
  void Stop(absl::Duration grace);
  struct Endings {
    int count = 0;      // how often the process ended by itself
    std::string last;   // the latest ending: "signal 11"; or why it could not be started
    bool away = false;  // it has ended and has not been started again yet
  };
  Endings endings() const;

 private:
  void Supervise();
  // Starts the process and waits for its end. Returns how it ended, or nothing if Stop was called.
  std::optional<std::string> RunOnce();
  bool SleepUnlessStopped(absl::Duration duration);

  const std::string name_;
  const std::vector<std::string> argv_;
  const Log log_;
  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;  // stopping_ and pid_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = 0;
  Endings endings_ ABSL_GUARDED_BY(mutex_);
  bool joined_ = false;
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_LOCAL_WORKER_H_
