// fusiond: parses flags, connects the objects and handles signals.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/plan/plan.h"
#include "compiler/rewrite/rewrite.h"
#include "runtime/base/core_dumps.h"
#include "runtime/base/user_folders.h"
#include "runtime/log/log.h"
#include "server/compile_process/compile_process.h"
#include "server/compile_process/control_group.h"
#include "server/compile_process/process_limits.h"
#include "server/local_devices.h"
#include "server/server.h"
#include "server/services.h"
#include "server/state_folder.h"

namespace {

constexpr int kExitUsage = 2, kExitUnavailable = 5, kExitFailedSync = 74;  // the last one is EX_IOERR of <sysexits.h>

fusion::CompilerFunctions CompilerOf(const fusion::CompileProcessOptions& process) {
  return {[process](const fusion::ModelFiles& files, const fusion::CompileOptions& options,
                    const fusion::CompileContext& context, const std::string& bundle_path) {
            return fusion::CompileInProcess(process, files, options, context, bundle_path);
          },
          [process](const fusion::ModelFiles& files, const fusion::CompileOptions& options,
                    const fusion::CompileContext& context) {
            return fusion::PlanInProcess(process, files, options, context);
          },
          fusion::PlannerNames(), fusion::rewrite::CheckRuleId};
}

// A simulated device is offered where it is asked for.
std::vector<std::string> KindsToOffer() {
  std::vector<std::string> kinds = fusion::DeviceKinds();
  for (const std::string& kind : fusion::SimulatedKinds()) kinds.push_back(kind);
  return kinds;
}

// The command line.
struct Flags {
  fusion::ServerOptions options;
  fusion::LogOptions log{"fusiond", "text", "info"};
  std::string metrics = "none";
  bool no_local_worker = false;
  std::vector<std::string> device_kinds = fusion::DeviceKinds();
  double device_limit_s = 120;
  fusion::CompileProcessOptions compile;
  double compile_time_s = 3600;
  bool unconfined = false;
  bool namespaces = true;
  int keep_days = 30;

  Flags() {
    options.streams_per_caller = 64;
    options.upload_bytes_per_caller = int64_t{64} << 30;
  }
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--state", flags->options.state_folder,
                  "folder for database, blobs and socket [$XDG_STATE_HOME/fusion]");
  app->add_flag("--allow-network-fs", flags->options.allow_network_fs,
                "let the state folder lie on a network file system, whose locks and syncs may promise too much");
  app->add_option("--listen", flags->options.listen,
                  "unix:PATH, or HOST:PORT with --tls-cert or --insecure; repeatable; a socket is always among them "
                  "[unix:STATE/fusion.sock]");
  app->add_flag("--insecure", flags->options.insecure,
                "let whoever reaches an address do everything, unencrypted; the log says so at every start");
  app->add_option("--metrics", flags->metrics,
                  "HOST:PORT of the Prometheus endpoint, which has no TLS and asks nobody for a token, or none")
      ->capture_default_str();
  app->add_option("--tls-cert", flags->options.tls.certificate,
                  "PEM file with the certificate, and its chain, of TLS on HOST:PORT; read again when it changes");
  app->add_option("--tls-key", flags->options.tls.key, "PEM file with its key, mode 0600");
  app->add_option("--tls-client-ca", flags->options.tls.client_ca,
                  "PEM file with the authorities of callers' certificates; callers need one then");
  app->add_option("--sign-with", flags->options.sign_with,
                  "PEM file with an Ed25519 key, mode 0600, with which fusionctl gets bundles signed; repeatable");
  app->add_flag("--no-local-worker", flags->no_local_worker, "start no fusion-worker beside this server");
  app->add_option(
         "--local-devices", flags->device_kinds,
         "kinds of device to look for here; a worker offers each that is found, and dsa, a simulated accelerator, "
         "if it is named")
      ->delimiter(',')
      ->check(CLI::IsMember(KindsToOffer()))
      ->capture_default_str();
  app->add_option("--device-limit", flags->device_limit_s, "seconds that a driver may take to describe its device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--threads", flags->options.compile_threads, "compilations at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app->add_option("--jobs-per-caller", flags->options.jobs_per_caller,
                  "jobs of one caller that may wait or run; more submissions are refused")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--streams-per-caller", flags->options.streams_per_caller,
                  "uploads and downloads of one caller at once; more are told to try again a second later")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--upload-per-caller", flags->options.upload_bytes_per_caller,
                  "what one caller may upload in an hour, as 64GiB; more is told when to try again [64GiB]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app->add_option("--compile-memory", flags->compile.memory_bytes,
                  "what a compilation may allocate, as 8GiB [three quarters of the memory, shared by --threads]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app->add_option("--compile-time", flags->compile_time_s,
                  "seconds that a compilation may take for itself; waiting for workers does not count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--compile-program", flags->compile.program,
                  "program that compiles one model [fusion-compile-job beside this one]");
  app->add_flag("--unconfined", flags->unconfined,
                "let compilations and the tasks of workers beside this server do what this user may; without it "
                "fusiond needs seccomp");
  app->add_flag("!--no-namespaces", flags->namespaces,
                "confine compilations and tasks without namespaces, also where the machine allows them");
  app->add_option("--least-free", flags->options.least_free_bytes,
                  "free space of the state folder's disk below which submissions and uploads are refused and health is "
                  "NOT_SERVING, as 10GiB; 0: no limit [256MiB]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app->add_option("--keep-days", flags->keep_days,
                  "days after which finished jobs are removed, with the models and bundles that no other job names; 0: "
                  "never")
      ->check(CLI::Range(0, 36500))
      ->capture_default_str();
  app->add_option(
         "--keep-bytes", flags->options.retention.keep_bytes,
         "how much models and bundles of finished jobs may take, as 200GiB: the oldest go first, unless they are "
         "pinned; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app->add_option("--log-format", flags->log.format, "how lines of the log are written to stderr")
      ->check(CLI::IsMember(fusion::LogFormats()))
      ->capture_default_str();
  app->add_option("--log-level", flags->log.level,
                  "lines of lower levels are dropped, but for those of the audit; debug names each stage and task")
      ->check(CLI::IsMember(fusion::LogLevels()))
      ->capture_default_str();
  app->set_version_flag("--version", fusion::kServerVersion);
}

int Fail(const absl::Status& status, const fusion::Log& log) {
  log({fusion::LogLevel::kError, std::string(status.message()), {}});
  return status.code() == absl::StatusCode::kUnavailable ? kExitUnavailable
         : status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kFailedPrecondition
             ? kExitUsage
             : 1;
}

// Lines of the audit are written whatever --log-level says.
absl::StatusOr<fusion::Log> OpenLog(const fusion::LogOptions& options) {
  fusion::LogOptions all = options;
  all.level = "debug";
  const absl::StatusOr<fusion::Log> log = fusion::MakeLog(options), audit = fusion::MakeLog(all);
  if (!log.ok()) return log.status();
  if (!audit.ok()) return audit.status();
  return fusion::Log([log = *log, audit = *audit](const fusion::LogLine& line) {
    return line.message == "audit" ? audit(line) : log(line);
  });
}

absl::StatusOr<std::unique_ptr<fusion::ControlGroups>> OpenControlGroups() {
  std::stringstream groups, mounts;
  groups << std::ifstream("/proc/self/cgroup").rdbuf();
  mounts << std::ifstream("/proc/self/mounts").rdbuf();
  return fusion::ControlGroups::Open(fusion::OwnControlGroup(groups.str(), mounts.str()));
}

int Serve(const Flags& flags, const fusion::Log& log) {
  if (const absl::Status refused = fusion::RefuseCoreDumps(); !refused.ok()) return Fail(refused, log);
  if (const absl::Status rules = fusion::rewrite::CheckRules(); !rules.ok()) return Fail(rules, log);
  fusion::ServerOptions options = flags.options;
  options.log = log;
  options.retention.keep = flags.keep_days == 0 ? absl::InfiniteDuration() : absl::Hours(24) * flags.keep_days;
  options.on_failed_sync = [log](const absl::Status& failed) {
    log({fusion::LogLevel::kError,
         "the disk failed a sync, so that what was written last may be lost; fusiond ends and continues its jobs from "
         "what is on disk when it is started again",
         {{"error", failed.ToString()}}});
    _exit(kExitFailedSync);
  };
  if (options.state_folder.empty()) options.state_folder = fusion::UserStateFolder();
  const std::string local_socket = absl::StrCat("unix:", options.state_folder, "/fusion.sock");
  // The workers beside this server, and an administrator who has lost every token, come by a socket.
  if (std::none_of(options.listen.begin(), options.listen.end(), fusion::IsUnixAddress)) {
    options.listen.push_back(local_socket);
  }
  if (flags.metrics != "none") options.metrics_address = flags.metrics;
  const std::string worker_program = flags.no_local_worker ? "" : fusion::FindBesideThisProgram("fusion-worker");
  // A worker measures its device before it attaches.
  options.first_worker_grace = worker_program.empty() ? absl::Seconds(3) : absl::Seconds(20);

  std::unique_ptr<fusion::LocalDevices> devices;
  if (!worker_program.empty()) {
    std::vector<std::string> worker_flags = {"--log-format", flags.log.format, "--log-level", flags.log.level};
    if (flags.unconfined) worker_flags.emplace_back("--unconfined");
    if (!flags.namespaces) worker_flags.emplace_back("--no-namespaces");
    devices = std::make_unique<fusion::LocalDevices>(
        fusion::LocalDevicesOptions{worker_program, flags.device_kinds, absl::StrCat(options.state_folder, "/worker"),
                                    absl::Seconds(flags.device_limit_s), std::move(worker_flags), log});
    options.local_devices = devices.get();
  }

  // All threads block these signals; sigwait below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGQUIT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  fusion::CompileProcessOptions compile = flags.compile;
  compile.time = absl::Seconds(flags.compile_time_s);
  compile.unconfined = flags.unconfined;
  if (!flags.unconfined) {
    if (const absl::Status can = fusion::CheckConfinement(); !can.ok()) return Fail(can, log);
    fusion::ConfinementLevel level = fusion::LevelOfThisMachine();
    compile.namespaces = level.namespaces = level.namespaces && flags.namespaces;
    log({fusion::LogLevel::kInfo, "confinement of compilations", {{"level", level.InWords()}}});
  }
  if (compile.program.empty()) compile.program = fusion::FindBesideThisProgram("fusion-compile-job");
  if (compile.program.empty() || access(compile.program.c_str(), X_OK) != 0) {
    return Fail(absl::FailedPreconditionError(absl::StrCat("there is no program that compiles",
                                                           compile.program.empty() ? "" : ": ", compile.program,
                                                           "; install fusion-compile-job beside fusiond, or say with "
                                                           "--compile-program where it is")),
                log);
  }
  // Before any other process starts.
  const auto groups = OpenControlGroups();
  if (groups.ok()) compile.groups = groups->get();
  options.compilation_limits = groups.ok()
                                   ? "control groups"
                                   : absl::StrCat("RLIMIT_DATA, of each process for itself (no control groups: ",
                                                  std::string(groups.status().message()), ")");
  log({fusion::LogLevel::kInfo, "memory of compilations", {{"limited_by", options.compilation_limits}}});
  if (compile.memory_bytes == 0) compile.memory_bytes = fusion::DefaultMemoryLimit(options.compile_threads);

  auto server = fusion::Server::Start(options, CompilerOf(compile));
  if (!server.ok()) return Fail(server.status(), log);
  log({fusion::LogLevel::kInfo,
       "listening",
       {{"version", fusion::kServerVersion},
        {"addresses", absl::StrJoin((*server)->addresses(), ",")},
        {"metrics", options.metrics_address.empty()
                        ? "off"
                        : absl::StrCat("http://", fusion::WithPort(options.metrics_address, (*server)->metrics_port()),
                                       "/metrics")},
        {"state", options.state_folder}}});
  if (devices != nullptr) {
    const std::vector<std::string>& addresses = (*server)->addresses();
    devices->Start(*std::find_if(addresses.begin(), addresses.end(), fusion::IsUnixAddress));
  } else if (!flags.no_local_worker) {
    log({fusion::LogLevel::kWarning, "no fusion-worker beside this program; builds wait for a worker to attach", {}});
  }

  int signal = 0;
  sigwait(&signals, &signal);
  const bool abort = signal == SIGQUIT;
  log({fusion::LogLevel::kInfo, "shutting down", {{"signal", absl::StrCat(signal)}}});
  (*server)->Shutdown(abort ? absl::ZeroDuration() : absl::Seconds(10));
  if (devices != nullptr) devices->Stop(abort ? absl::ZeroDuration() : absl::Seconds(5));
  log({fusion::LogLevel::kInfo, "stopped", {}});
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("fusiond: compiles ONNX models into bundles of fused kernels");
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const absl::StatusOr<fusion::Log> log = OpenLog(flags.log);
  if (!log.ok()) return kExitUsage;  // cannot be: AddFlags lets known names pass only
  try {
    return Serve(flags, *log);
  } catch (const std::exception& error) {  // out of memory
    (*log)({fusion::LogLevel::kError, error.what(), {}});
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
