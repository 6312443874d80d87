// fusiond: parses flags, connects the objects and handles signals.
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/plan.h"
#include "compiler/rewrite/rewrite.h"
#include "runtime/base/user_folders.h"
#include "server/local_devices.h"
#include "server/server.h"
#include "server/services.h"
#include "server/state_folder.h"

namespace {

constexpr int kExitUsage = 2, kExitUnavailable = 5;

fusion::CompilerFunctions RealCompiler() {
  return {fusion::Compile, fusion::PlanOnly, fusion::PlannerNames(), fusion::rewrite::CheckRuleId};
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "fusiond: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kUnavailable ? kExitUnavailable
         : status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kFailedPrecondition
             ? kExitUsage
             : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("fusiond: compiles ONNX models into bundles of fused kernels");
  fusion::ServerOptions options;
  std::string metrics = "127.0.0.1:9464";
  bool no_local_worker = false;
  std::vector<std::string> device_kinds = {"cpu", "opencl", "cuda"};
  double device_limit_s = 120;
  app.add_option("--state", options.state_folder, "folder for database, blobs and socket [$XDG_STATE_HOME/fusion]");
  app.add_option("--listen", options.listen,
                 "HOST:PORT or unix:PATH, repeatable [unix:STATE/fusion.sock and 127.0.0.1:7070]");
  app.add_option("--metrics", metrics, "HOST:PORT of the Prometheus endpoint, or none")->capture_default_str();
  app.add_flag("--no-local-worker", no_local_worker, "start no fusion-worker beside this server");
  app.add_option("--local-devices", device_kinds,
                 "kinds of device to look for here; a worker offers each that is found")
      ->delimiter(',')
      ->check(CLI::IsMember(device_kinds))
      ->capture_default_str();
  app.add_option("--device-limit", device_limit_s, "seconds that a driver may take to describe its device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", options.compile_threads, "compilations at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.set_version_flag("--version", fusion::kServerVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (const absl::Status rules = fusion::rewrite::CheckRules(); !rules.ok()) return Fail(rules);
  if (options.state_folder.empty()) options.state_folder = fusion::UserStateFolder();
  const std::string local_socket = absl::StrCat("unix:", options.state_folder, "/fusion.sock");
  if (options.listen.empty()) options.listen = {local_socket, "127.0.0.1:7070"};
  if (metrics != "none") options.metrics_address = metrics;
  const std::string worker_program = no_local_worker ? "" : fusion::WorkerBesideThisProgram();
  // A worker measures its device before it attaches.
  options.first_worker_grace = worker_program.empty() ? absl::Seconds(3) : absl::Seconds(20);

  std::unique_ptr<fusion::LocalDevices> devices;
  if (!worker_program.empty()) {
    devices = std::make_unique<fusion::LocalDevices>(fusion::LocalDevicesOptions{
        worker_program, device_kinds, absl::StrCat(options.state_folder, "/worker"), absl::Seconds(device_limit_s)});
    options.local_devices = devices.get();
  }

  // All threads block these signals; sigwait below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGQUIT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto server = fusion::Server::Start(options, RealCompiler());
  if (!server.ok()) return Fail(server.status());
  std::fprintf(
      stderr, "fusiond %s: listening on %s; metrics %s; state %s\n", fusion::kServerVersion,
      absl::StrJoin((*server)->addresses(), ", ").c_str(),
      options.metrics_address.empty()
          ? "off"
          : absl::StrCat("http://", fusion::WithPort(options.metrics_address, (*server)->metrics_port()), "/metrics")
                .c_str(),
      options.state_folder.c_str());
  if (devices != nullptr) {
    devices->Start((*server)->addresses().front());
  } else if (!no_local_worker) {
    std::fprintf(stderr, "fusiond: no fusion-worker beside this program; builds wait for a worker to attach\n");
  }

  int signal = 0;
  sigwait(&signals, &signal);
  const bool abort = signal == SIGQUIT;
  std::fprintf(stderr, "fusiond: signal %d, shutting down\n", signal);
  (*server)->Shutdown(abort ? absl::ZeroDuration() : absl::Seconds(10));
  if (devices != nullptr) devices->Stop(abort ? absl::ZeroDuration() : absl::Seconds(5));
  std::fprintf(stderr, "fusiond: stopped\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // from the argument parser, or out of memory
    std::fprintf(stderr, "fusiond: %s\n", error.what());
    return 1;
  }
}
