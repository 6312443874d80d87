// fusion-worker: takes build and measurement tasks from a fusiond.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/core_dumps.h"
#include "runtime/base/user_folders.h"
#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/log/log.h"
#include "worker/lease/join.h"
#include "worker/worker.h"

namespace {

constexpr int kExitUsage = 2;

// The command line.
struct Flags {
  fusion::WorkerOptions options;
  fusion::ConnectFlags connect;
  std::string join_token_file;
  std::vector<std::string> labels;
  std::string kinds = "cpu", build_kinds, simulated_measurement = "100ms";
  bool no_build = false, describe = false;
  int64_t parent = 0;
  fusion::LogOptions log{"fusion-worker", "text", "info"};
};

std::vector<std::string> Listed(const std::string& list) { return absl::StrSplit(list, ',', absl::SkipEmpty()); }

void AddFlags(CLI::App* app, Flags* flags) {
  fusion::WorkerOptions& options = flags->options;
  app->add_option("--server", flags->connect.server,
                  "address of fusiond: unix:/path or host:port (default: $FUSION_SERVER, else that of the "
                  "configuration, else the local socket)");
  app->add_option("--tls-ca", flags->connect.tls_ca,
                  "PEM file with the authorities that the server's certificate may come from [$FUSION_TLS_CA]");
  app->add_option("--tls-cert", flags->connect.tls_cert, "PEM file with this worker's certificate [$FUSION_TLS_CERT]");
  app->add_option("--tls-key", flags->connect.tls_key, "PEM file with its key, mode 0600 [$FUSION_TLS_KEY]");
  app->add_option("--token-file", flags->connect.token_file,
                  "file with this worker's token, mode 0600 [$FUSION_TOKEN_FILE; $FUSION_TOKEN is the token itself]");
  app->add_option(
      "--join-token-file", flags->join_token_file,
      "file with a join token, mode 0600: this worker gets a certificate of its own with it, which it keeps in --state "
      "and renews");
  app->add_flag("--insecure", flags->connect.insecure,
                "speak to HOST:PORT without TLS, and send no token [FUSION_INSECURE=1]");
  app->add_option("--name", options.name, "name shown to people (default: the host's name)");
  app->add_option(
      "--label", flags->labels,
      "KEY=VALUE, which submissions may ask for (fusionctl submit --require KEY=VALUE); repeat for several");
  app->add_option("--kinds", flags->kinds,
                  absl::StrCat("kind of device to measure: ", absl::StrJoin(fusion::MeasuredKinds(), ", "),
                               " (answers are made up), or none, which takes build tasks only"))
      ->capture_default_str();
  app->add_option("--threads", options.threads,
                  "threads of builds, and of measurements that name no number (0: all cores)")
      ->check(CLI::NonNegativeNumber);
  app->add_flag("--no-build", flags->no_build, "take no build tasks");
  app->add_option("--build-kinds", flags->build_kinds,
                  "kinds of device to build for, separated by commas (default: all that there is a toolchain for)");
  app->add_option("--state", options.state_folder,
                  "folder for the measured device model (default: $XDG_STATE_HOME/fusion)");
  app->add_flag(
      "--describe", flags->describe,
      "print the model of the device of --kinds as JSON and end; exit code 3, and the reason, where there is none");
  app->add_option("--device-model", options.device_model,
                  "file with the device model (of --describe) to use instead of measuring it");
  app->add_option("--measure-program", options.measure_program,
                  "program that times bundles (default: fusion-measure beside this one)");
  app->add_option(
      "--turn-file", options.turn_file,
      "lock file: workers with the same one measure one after another (default: each whenever it is asked)");
  app->add_flag("--unconfined", options.unconfined,
                "let kernels, compilers and drivers do what this user may; without it, a worker on a machine without "
                "seccomp takes no task");
  app->add_flag("!--no-namespaces", options.namespaces,
                "confine kernels and compilers without namespaces, also where the machine allows them");
  app->add_option("--machine", options.machine,
                  absl::StrCat("which accelerator the kind dsa simulates: ",
                               absl::StrJoin(fusion::dsa::StoredMachineNames(), ", ")))
      ->check(CLI::IsMember(fusion::dsa::StoredMachineNames()))
      ->capture_default_str();
  app->add_option("--simulated-measurement", flags->simulated_measurement, "time that a measurement of kind sim takes")
      ->capture_default_str();
  app->add_option("--simulated-pace", options.simulated_pace,
                  "what the device sim says that kernels take, over what it should say: 0.5 lies")
      ->check(CLI::PositiveNumber);
  app->add_option("--simulated-seed", options.simulated_seed,
                  "decides what the kind sim answers; another seed is another device")
      ->capture_default_str();
  app->add_option("--parent", flags->parent,
                  "process id of the program that started this one; the worker drains when it ends");
  app->add_option("--log-format", flags->log.format, "how lines of the log are written to stderr")
      ->check(CLI::IsMember(fusion::LogFormats()))
      ->capture_default_str();
  app->add_option("--log-level", flags->log.level, "lines of lower levels are dropped; debug names each task")
      ->check(CLI::IsMember(fusion::LogLevels()))
      ->capture_default_str();
}

// Flags were spelled with underscores before, `--no-build` was --nobuild, and `--kinds none` was --kinds=.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them last to first
    std::string argument = argv[i];
    if (argument == "--nobuild") argument = "--no-build";
    if (argument == "--kinds=") argument = "--kinds=none";
    if (argument.rfind("--", 0) == 0) {
      std::replace(argument.begin(), argument.begin() + std::min(argument.find('='), argument.size()), '_', '-');
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
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
  // Not a line of the log: who asks for a description passes these words on to people.
  std::fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
  switch (model.status().code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return kExitNoDevice;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    default:
      return 1;
  }
}

int Serve(const fusion::WorkerOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int s : {SIGTERM, SIGINT, SIGQUIT}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts

  auto worker = fusion::Worker::Create(options);
  if (!worker.ok()) {
    options.log({fusion::LogLevel::kError, std::string(worker.status().message()), {}});
    return 1;
  }
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    options.log(
        {fusion::LogLevel::kInfo, signal == SIGTERM ? "draining" : "stopping", {{"signal", absl::StrCat(signal)}}});
    if (signal == SIGTERM) {
      (*worker)->Drain();
      sigwait(&signals, &signal);  // a second signal stops the worker at once
    }
    (*worker)->Abort();
  });
  waiter.detach();
  options.log({fusion::LogLevel::kInfo, "serving", {{"server", options.server.address}}});
  (*worker)->Run();
  options.log({fusion::LogLevel::kInfo, "stopped", {}});
  std::fflush(nullptr);
  _Exit(0);  // skips destructors: the waiter may still use the worker
}

// Ends this process with SIGTERM when the process `parent` ends. Returns false if that has ended already.
bool EndWith(pid_t parent) { return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent; }

int RunAs(Flags flags, const fusion::Log& log) {
  fusion::WorkerOptions& options = flags.options;
  options.kinds = Listed(flags.kinds == "none" ? "" : flags.kinds);
  options.build = !flags.no_build;
  options.build_kinds = Listed(flags.build_kinds);
  options.log = log;
  for (const std::string& label : flags.labels) {
    const size_t equals = label.find('=');
    const std::string key = label.substr(0, equals);
    if (equals == std::string::npos || equals == 0 || equals + 1 == label.size() || key == "name" || key == "device" ||
        key == "fingerprint" || key == "confinement") {
      log({fusion::LogLevel::kError,
           absl::StrCat("--label is '", label,
                        "'; say KEY=VALUE such as rack=7 (name, device, fingerprint and confinement are taken)"),
           {}});
      return kExitUsage;
    }
    options.labels[key] = label.substr(equals + 1);
  }
  if (!absl::ParseDuration(flags.simulated_measurement, &options.simulated_measurement)) {
    log({fusion::LogLevel::kError,
         absl::StrCat("--simulated-measurement is '", flags.simulated_measurement, "'; say a time such as 50ms or 2s"),
         {}});
    return kExitUsage;
  }
  if (options.state_folder.empty()) options.state_folder = fusion::UserStateFolder();
  if (flags.describe) return Describe(options);
  // Before any child starts: no child of a worker may see its token.
  absl::StatusOr<fusion::Endpoint> server = fusion::ResolveEndpoint(flags.connect, options.state_folder);
  if (!server.ok()) {
    log({fusion::LogLevel::kError, std::string(server.status().message()), {}});
    return kExitUsage;
  }
  if (!flags.join_token_file.empty()) {
    absl::StatusOr<fusion::Joined> joined =
        fusion::Join(*server, flags.join_token_file, options.state_folder,
                     options.name.empty() ? fusion::HostName() : options.name, absl::Now(), log);
    if (!joined.ok()) {
      log({fusion::LogLevel::kError, std::string(joined.status().message()), {}});
      return 1;
    }
    options.renew_certificate = joined->certificate;
    server = std::move(joined->server);
  }
  options.server = *std::move(server);
  return Serve(options);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "fusion-worker: takes build and measurement tasks from a fusiond. SIGTERM finishes the task, SIGINT drops it.",
      "fusion-worker");
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(Arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (flags.parent != 0 && !EndWith(static_cast<pid_t>(flags.parent))) return 1;
  const absl::StatusOr<fusion::Log> log = fusion::MakeLog(flags.log);
  if (!log.ok()) return kExitUsage;  // cannot be: AddFlags lets known names pass only
  if (const absl::Status refused = fusion::RefuseCoreDumps(); !refused.ok()) {
    (*log)({fusion::LogLevel::kError, std::string(refused.message()), {}});
    return 1;
  }
  try {
    return RunAs(std::move(flags), *log);
  } catch (const std::exception& error) {  // the standard library throws
    (*log)({fusion::LogLevel::kError, error.what(), {}});
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
