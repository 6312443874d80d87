// LocalWorker: the fusion-worker process that fusiond keeps beside itself, so that worker code (which runs native
// code from the compiler) stays out of the server's process. Restarted with growing pauses when it dies; told to stop
// with SIGTERM; it cannot outlive fusiond.
#ifndef FUSION_SERVER_LOCAL_WORKER_H_
#define FUSION_SERVER_LOCAL_WORKER_H_

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace fusion {

class LocalWorker {
 public:
  // The name is for people; argv[0] is the program.
  LocalWorker(std::string name, std::vector<std::string> argv);
  ~LocalWorker();
  // SIGTERM; does not wait.
  void BeginStop();
  // SIGTERM, then SIGKILL after `grace`. Idempotent.
  void Stop(absl::Duration grace);
  struct Endings {
    int count = 0;      // how often the process ended by itself
    std::string last;   // how it did last: "signal 11"
    bool away = false;  // it has not been started again yet
  };
  Endings endings() const;

 private:
  void Supervise();
  bool SleepUnlessStopped(absl::Duration duration);

  const std::string name_;
  const std::vector<std::string> argv_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = 0;
  Endings endings_ ABSL_GUARDED_BY(mutex_);
  bool joined_ = false;
  std::thread thread_;
};

// "fusion-worker" in the folder of the running program; "" when it is not there.
std::string WorkerBesideThisProgram();

}  // namespace fusion

#endif  // FUSION_SERVER_LOCAL_WORKER_H_
