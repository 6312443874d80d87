// Server: all parts of fusiond together. It starts, serves until Shutdown, and can be restarted on the same folder.
#ifndef FUSION_SERVER_SERVER_H_
#define FUSION_SERVER_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/log/log.h"
#include "server/auth/guard.h"
#include "server/auth/tls.h"
#include "server/jobs/job_runner.h"
#include "server/retention/retention.h"
#include "server/scheduler/scheduler.h"

namespace fusion {

class LocalDevices;

struct ServerOptions {
  std::string state_folder;         // created if needed
  bool allow_network_fs = false;    // it may lie on a network file system
  std::vector<std::string> listen;  // "unix:PATH", or "HOST:PORT" (port 0: any free port) with `tls` or `insecure`
  std::string metrics_address;      // "": metrics are not served
  int compile_threads = 2;
  int jobs_per_caller = 1000;                          // that wait or run
  int streams_per_caller = 96;                         // of blobs and profiles
  int64_t upload_bytes_per_caller = int64_t{1} << 60;  // in an hour
  absl::Duration first_worker_grace = absl::Seconds(5);
  SchedulerConfig scheduler;
  Log log = NoLog();
  bool insecure = false;  // whoever reaches an address may do everything
  TlsFiles tls;           // of all addresses that are no sockets; none: they are not encrypted
  // Who calls. Empty: on a socket its owner, by TLS who the token says, else (insecure) anybody.
  Identify identify;
  // Below that much free space on the state folder's disk the server takes no submissions and uploads and reports
  // NOT_SERVING, so that the jobs that it has taken can still be stored. 0: no limit.
  int64_t least_free_bytes = int64_t{256} << 20;
  std::function<int64_t()> free_bytes = nullptr;  // a test's; else what the file system says
  // Called when a sync of the state folder has failed, before anybody is answered: what was written may be lost
  // although later syncs succeed, so that the process should end. Empty: the calls that needed the sync fail.
  std::function<void(const absl::Status&)> on_failed_sync = nullptr;
  RetentionOptions retention;
  std::vector<std::string> sign_with = {};  // files with private keys (bundle_signer.h)
  std::string compilation_limits = {};      // what limits the memory of compilations, in words
  absl::Duration worker_certificate_lifetime = absl::Hours(24 * 30);
  std::function<absl::Time()> wall_clock = nullptr;  // a test's, by which tokens and certificates end; else absl::Now
  const LocalDevices* local_devices = nullptr;  // the devices of workers beside the server; must outlive the server
};

class Server {
 public:
  // Fails with FAILED_PRECONDITION if a running fusiond owns the state folder, UNAVAILABLE if an address is in use.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, const CompilerFunctions& compiler);
  ~Server();

  // Reports NOT_SERVING, ends watches with a point to resume from, stops compilations (their jobs continue at the next
  // start), and finishes calls within `grace`. Idempotent.
  void Shutdown(absl::Duration grace);

  const std::vector<std::string>& addresses() const;  // as bound, with actual ports
  int metrics_port() const;                           // 0: not served
  Metrics& metrics();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SERVER_H_
