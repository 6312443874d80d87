// fusion-worker: takes build and measurement tasks from a fusiond.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/worker.h"

ABSL_FLAG(std::string, server, "",
          "address of fusiond: unix:/path or host:port; default: FUSION_SERVER, else the local socket");
ABSL_FLAG(std::string, name, "", "name shown to people; default: the host's name");
ABSL_FLAG(int, threads, 0, "threads of builds and of measurements that name no number; 0: all cores");
ABSL_FLAG(
    std::vector<std::string>, kinds, {"cpu"},
    "device kind to measure: cpu, opencl, cuda, or sim, a simulated accelerator; --kinds= takes build tasks only");
ABSL_FLAG(bool, build, true, "take build tasks");
ABSL_FLAG(std::vector<std::string>, build_kinds, {},
          "kinds of device to build for; default: all that there is a toolchain for");
ABSL_FLAG(std::string, measure_program, "", "program that times bundles; default: fusion-measure beside this one");
ABSL_FLAG(bool, describe, false,
          "print the model of the device of --kinds as JSON and end; exit code 3, and the reason, where there is none");
ABSL_FLAG(std::string, device_model, "", "file with the device model (of --describe) to use instead of measuring it");
ABSL_FLAG(std::string, turn_file, "",
          "lock file: workers with the same one measure one after another; default: each whenever it is asked");
ABSL_FLAG(int64_t, simulated_seed, 1, "of the kind sim: decides what it answers; another seed is another device");
ABSL_FLAG(absl::Duration, simulated_measurement, absl::Milliseconds(100), "of the kind sim: what a measurement takes");
ABSL_FLAG(std::string, state, "", "folder for the measured device model; default: $XDG_STATE_HOME/fusion");

namespace {

std::string StateFolder() {
  if (!absl::GetFlag(FLAGS_state).empty()) return absl::GetFlag(FLAGS_state);
  if (const char* state = getenv("XDG_STATE_HOME"); state != nullptr && *state != 0)
    return absl::StrCat(state, "/fusion");
  const char* home = getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "/tmp", "/.local/state/fusion");
}

std::string Server() {
  if (!absl::GetFlag(FLAGS_server).empty()) return absl::GetFlag(FLAGS_server);
  if (const char* server = getenv("FUSION_SERVER"); server != nullptr && *server != 0) return server;
  return absl::StrCat("unix:", StateFolder(), "/fusion.sock");
}

void Log(const std::string& line) {
  std::fprintf(stderr, "%s fusion-worker: %s\n",
               absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()).c_str(), line.c_str());
}

// A driver may hang or crash this process, so the caller sets a time limit. The process ends with its caller.
int Describe(const fusion::WorkerOptions& options) {
  constexpr int kExitNoDevice = 3;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const absl::StatusOr<fusion::DeviceModel> model = fusion::DescribeDevice(options);
  if (model.ok()) {
    std::printf("%s\n", fusion::DeviceModelToJson(*model).c_str());
    return 0;
  }
  std::fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
  switch (model.status().code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return kExitNoDevice;
    case absl::StatusCode::kInvalidArgument:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "takes build and measurement tasks from a fusiond; SIGTERM finishes the task, SIGINT drops it");
  absl::FlagsUsageConfig help;  // without this, --help finds no flag, because this file is not named after the program
  help.contains_help_flags = [](absl::string_view file) { return absl::EndsWith(file, "worker/main.cc"); };
  absl::SetFlagsUsageConfig(help);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    std::fprintf(stderr, "fusion-worker: unexpected argument '%s'\n", rest[1]);
    return 2;
  }
  fusion::WorkerOptions options;
  options.server = Server();
  options.name = absl::GetFlag(FLAGS_name);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.kinds = absl::GetFlag(FLAGS_kinds);
  options.build = absl::GetFlag(FLAGS_build);
  options.build_kinds = absl::GetFlag(FLAGS_build_kinds);
  options.state_folder = StateFolder();
  options.measure_program = absl::GetFlag(FLAGS_measure_program);
  options.device_model = absl::GetFlag(FLAGS_device_model);
  options.turn_file = absl::GetFlag(FLAGS_turn_file);
  options.simulated_seed = absl::GetFlag(FLAGS_simulated_seed);
  options.simulated_measurement = absl::GetFlag(FLAGS_simulated_measurement);
  options.log = Log;
  if (absl::GetFlag(FLAGS_describe)) return Describe(options);

  sigset_t signals;
  sigemptyset(&signals);
  for (int s : {SIGTERM, SIGINT, SIGQUIT}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts

  auto worker = fusion::Worker::Create(options);
  if (!worker.ok()) {
    std::fprintf(stderr, "fusion-worker: %s\n", std::string(worker.status().message()).c_str());
    return 1;
  }
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    Log(absl::StrCat(signal == SIGTERM ? "draining" : "stopping", " on signal ", signal));
    if (signal == SIGTERM) {
      (*worker)->Drain();
      sigwait(&signals, &signal);  // a second signal stops the worker at once
    }
    (*worker)->Abort();
  });
  waiter.detach();
  Log(absl::StrCat("serving ", options.server));
  (*worker)->Run();
  Log("stopped");
  std::fflush(nullptr);
  _Exit(0);  // skips destructors: the waiter may still use the worker
}
