#include "worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/backends/confinement/confinement.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/dsa/dsa_device_model.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/cost/device_model.h"
#include "proto/worker_protocol.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "worker/build/child_toolchain.h"
#include "worker/executor/build_executor.h"
#include "worker/executor/decorators.h"
#include "worker/executor/measure_executor.h"
#include "worker/lease/job_lines.h"
#include "worker/lease/lease_loop.h"
#include "worker/lease/transport.h"
#include "worker/measure/cuda_probe.h"
#include "worker/measure/device_probe.h"
#include "worker/measure/opencl_probe.h"
#include "worker/measure/turn.h"
#include "worker/simulated/simulated_device.h"

namespace fusion {
namespace {

constexpr absl::Duration kLongestTurnOfProbe = absl::Seconds(5);

std::string RandomId() {
  std::random_device random;
  return absl::StrFormat("w-%08x%08x", random(), random());
}

std::string MeasureProgramBesideThis() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "fusion-measure" : (self.parent_path() / "fusion-measure").string();
}

class LeasingWorker : public Worker {
 public:
  LeasingWorker(LeaseOptions lease, std::vector<std::unique_ptr<LocalToolchain>> toolchains,
                std::unique_ptr<Transport> transport, std::unique_ptr<TaskExecutor> executor)
      : toolchains_(std::move(toolchains)),
        transport_(std::move(transport)),
        executor_(std::move(executor)),
        loop_(std::move(lease), transport_.get(), executor_.get()) {}
  void Run() override { loop_.Run(); }
  void Drain() override { loop_.Drain(); }
  void Abort() override { loop_.Abort(); }

 private:
  std::vector<std::unique_ptr<LocalToolchain>> toolchains_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TaskExecutor> executor_;
  LeaseLoop loop_;
};

// A kind of device that workers measure.
struct Measured {
  const char* kind;
  absl::StatusOr<DeviceModel> (*probe)(const WorkerOptions& options, const std::string& toolchain);
};
constexpr Measured kMeasured[] = {
    {"cpu",
     [](const WorkerOptions& options, const std::string& toolchain) {
       const std::string cache = options.state_folder.empty() ? "" : options.state_folder + "/device-cpu.json";
       return ProbeCpuCached(options.threads, toolchain, cache);
     }},
    {"opencl", [](const WorkerOptions&, const std::string&) { return ProbeOpenCl(); }},
    {"cuda", [](const WorkerOptions&, const std::string&) { return ProbeCuda(); }},
    {"dsa", [](const WorkerOptions& options, const std::string&) { return DsaDeviceOf("dsa:" + options.machine); }},
};

absl::StatusOr<DeviceModel> Probe(const std::string& kind, const WorkerOptions& options, const std::string& toolchain) {
  for (const Measured& measured : kMeasured) {
    if (kind == measured.kind) return measured.probe(options, toolchain);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no worker measures '", kind, "': use one of ", absl::StrJoin(MeasuredKinds(), ", ")));
}

absl::StatusOr<DeviceModel> ReadDeviceModel(const std::string& file, const std::string& kind) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read the device model '", file, "'"));
  absl::StatusOr<DeviceModel> model = DeviceModelFromJson(text.str());
  if (!model.ok()) return Annotate(model.status(), file);
  if (model->kind == kind) return model;
  return absl::InvalidArgumentError(
      absl::StrCat(file, " describes a device of kind '", model->kind, "'; this worker measures '", kind, "'"));
}

std::string MeasureProgram(const WorkerOptions& options) {
  return options.measure_program.empty() ? MeasureProgramBesideThis() : options.measure_program;
}

absl::Status CheckMeasureProgram(const std::string& program, const std::string& kind) {
  if (access(program.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no program '", program, "' to time kernels of '", kind,
                   "' with: install fusion-measure beside fusion-worker, say with --measure-program where it is, or "
                   "start a worker that only builds (--kinds=none)"));
}

// A driver that does not start where measurements are confined would fail each of them.
absl::Status CheckStartsConfined(const std::string& program, const std::string& kind, const ConfinementLevel& level) {
  if (kind != "cuda" || !level.seccomp) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ChildResult child, RunChild({program, "--start-driver", "--confine", kind}, {}));
  if (child.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the driver does not start where measurements are confined (",
                   LastWords(absl::StripAsciiWhitespace(child.stderr_text)), ", ", child.Describe(),
                   "); --unconfined does without, where all who submit may do what this user may"));
}

// `level`: what confines the compilers; with seccomp false, nothing does.
ClangToolchainOptions ClangOptions(const WorkerOptions& options, const ConfinementLevel& level) {
  ClangToolchainOptions clang;
  clang.jobs = options.threads > 0 ? options.threads : UsableCores();
  if (level.seccomp) clang.launcher = {FindBesideThisProgram("fusion-confine")};
  if (level.seccomp && level.namespaces) {
    clang.launcher.insert(clang.launcher.end(),
                          {"--namespaces", absl::StrCat("--cpu-seconds=", absl::ToInt64Seconds(clang.unit_cpu_limit))});
  }
  return clang;
}

// A compiler that is a library.
absl::StatusOr<std::unique_ptr<LocalToolchain>> CompilerOf(const std::string& kind, const WorkerOptions& options,
                                                           const ConfinementLevel& level) {
  ChildToolchainOptions child;
  child.program = FindBesideThisProgram("fusion-build");
  if (child.program.empty()) {
    return absl::FailedPreconditionError("no program fusion-build beside this one, in which such compilers run");
  }
  child.kind = kind;
  child.jobs = options.threads > 0 ? options.threads : UsableCores();
  child.confined = level.seccomp;
  child.namespaces = level.namespaces;
  return MakeChildToolchain(std::move(child));
}

// Whether this worker can confine what others give it.
absl::Status CheckConfinementOf(const WorkerOptions& options) {
  if (options.unconfined) return absl::OkStatus();
  RETURN_IF_ERROR(CheckConfinement());
  if (!options.build || !FindBesideThisProgram("fusion-confine").empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "no program fusion-confine beside this one, by which compilers are started: install it, start a worker that "
      "builds nothing (--no-build), or say --unconfined");
}

// How this worker confines what others give it.
ConfinementLevel LevelOf(const WorkerOptions& options) {
  if (options.unconfined) return {};
  ConfinementLevel level = LevelOfThisMachine();
  level.namespaces = level.namespaces && options.namespaces;
  return level;
}

// The offers of a worker, and the executors that serve them.
struct Offer {
  LeaseOptions lease;
  std::map<v1::TaskKind, std::unique_ptr<TaskExecutor>> by_kind;
  std::vector<std::unique_ptr<LocalToolchain>> toolchains;
};

void OfferSimulation(const WorkerOptions& options, Offer* offer) {
  offer->lease.info.set_device_model_json(DeviceModelToJson(SimulatedDeviceModel(options.simulated_seed)));
  offer->lease.info.add_measure_kinds(kSimulatedKind);
  offer->by_kind[v1::MEASURE] = std::make_unique<SimulatedMeasureExecutor>(
      options.simulated_seed, options.simulated_measurement, options.simulated_pace);
  if (!options.build) return;
  v1::ToolchainInfo* info = offer->lease.info.add_toolchains();
  info->set_kind(kSimulatedKind);
  info->set_version(kSimulatedToolchain);
  offer->by_kind[v1::BUILD] = std::make_unique<SimulatedBuildExecutor>();
}

void OfferBuilds(const WorkerOptions& options, const ConfinementLevel& level, Offer* offer) {
  std::vector<std::unique_ptr<LocalToolchain>>& toolchains = offer->toolchains;
  const auto wanted = [&](const char* kind) {
    return options.build_kinds.empty() || std::count(options.build_kinds.begin(), options.build_kinds.end(), kind) > 0;
  };
  const auto offer_builds = [&](const char* kind, LogLevel level, auto toolchain) {
    if (toolchain.ok()) {
      toolchains.push_back(*std::move(toolchain));
    } else {
      options.log(
          {level, absl::StrCat("no build tasks for ", kind), {{"reason", std::string(toolchain.status().message())}}});
    }
  };
  if (wanted("cpu")) offer_builds("cpu", LogLevel::kWarning, ClangToolchain::Create(ClangOptions(options, level)));
  // The device's driver builds for the device.
  if (wanted("opencl") && std::count(options.kinds.begin(), options.kinds.end(), "opencl") > 0) {
    offer_builds("opencl", LogLevel::kWarning, CompilerOf("opencl", options, level));
  }
  // A program is checked by whoever would run it.
  if (wanted("dsa") && std::count(options.kinds.begin(), options.kinds.end(), "dsa") > 0) {
    offer_builds("dsa", LogLevel::kWarning, CompilerOf("dsa", options, level));
  }
  // NVRTC builds for GPUs of other machines, too. Most machines have none.
  const LogLevel importance = FindBesideThisProgram("fusion-build").empty() ? LogLevel::kWarning : LogLevel::kDebug;
  if (wanted("cuda")) offer_builds("cuda", importance, CompilerOf("cuda", options, level));
  std::vector<const LocalToolchain*> builders;
  for (const auto& toolchain : toolchains) {
    v1::ToolchainInfo* info = offer->lease.info.add_toolchains();
    info->set_kind(toolchain->kind());
    info->set_version(toolchain->version());
    info->set_digest(toolchain->digest());
    info->set_reproduces(toolchain->reproduces());
    builders.push_back(toolchain.get());
  }
  if (!builders.empty()) offer->by_kind[v1::BUILD] = std::make_unique<BuildExecutor>(std::move(builders));
}

absl::Status OfferMeasurements(const WorkerOptions& options, const ConfinementLevel& level, const std::string& kind,
                               const BlobReader& read_blob, Offer* offer) {
  MeasureExecutorOptions measure;
  measure.program = MeasureProgram(options);
  measure.default_threads = std::max(1, options.threads);
  measure.read_blob = read_blob;
  measure.confine = level.seccomp ? kind : "none";
  measure.namespaces = level.namespaces;
  RETURN_IF_ERROR(CheckMeasureProgram(measure.program, kind));
  const auto own = std::find_if(offer->toolchains.begin(), offer->toolchains.end(),
                                [&](const auto& toolchain) { return toolchain->kind() == kind; });
  ASSIGN_OR_RETURN(DeviceModel model,
                   options.device_model.empty()
                       ? Probe(kind, options, own == offer->toolchains.end() ? "" : (*own)->version())
                       : ReadDeviceModel(options.device_model, kind));
  if (options.device_model.empty()) RETURN_IF_ERROR(CheckStartsConfined(measure.program, kind, level));
  offer->lease.info.set_device_model_json(DeviceModelToJson(model));
  offer->lease.info.add_measure_kinds(kind);
  options.log({LogLevel::kInfo,
               "device",
               {{"name", model.name},
                {"isa", model.isa},
                {"cores", absl::StrCat(model.parallel_units)},
                {"gflops_a_core", absl::StrFormat("%.0f", model.fma_f32_flops_per_s * 1e-9)},
                {"gb_per_s", absl::StrFormat("%.1f", model.memory.back().bandwidth_bytes_per_s * 1e-9)},
                {"from", model.memory.back().name}}});
  offer->by_kind[v1::MEASURE] = std::make_unique<MeasureExecutor>(measure);
  return absl::OkStatus();
}

}  // namespace

std::string HostName() {
  char name[256] = "worker";
  gethostname(name, sizeof name - 1);
  return name;
}

std::vector<std::string> MeasuredKinds() {
  std::vector<std::string> kinds;
  for (const Measured& measured : kMeasured) kinds.emplace_back(measured.kind);
  kinds.emplace_back(kSimulatedKind);
  return kinds;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(WorkerOptions options) {
  Offer offer;
  offer.lease.lines = std::make_shared<JobLines>();
  options.log = JobLines::Tee(offer.lease.lines, options.log);
  offer.lease.worker_id = RandomId();
  offer.lease.log = options.log;
  offer.lease.info.set_name(options.name.empty() ? HostName() : options.name);
  offer.lease.info.set_version(FUSION_VERSION);
  offer.lease.info.set_protocol(kWorkerProtocol);
  offer.lease.info.mutable_labels()->insert(options.labels.begin(), options.labels.end());

  if (options.kinds.size() > 1) {
    return absl::InvalidArgumentError("a worker measures one device: start one for each kind");
  }
  std::unique_ptr<CertificateRenewal> renewal;
  if (options.renew_certificate) {
    renewal = std::make_unique<CertificateRenewal>(options.server.certificate_file, options.server.key_file, absl::Now,
                                                   options.log);
  }
  std::unique_ptr<Transport> transport = MakeGrpcTransport(options.server, std::move(renewal));
  Transport* wire = transport.get();
  const BlobReader read_blob = [wire](const std::string& digest, int64_t size) { return wire->ReadBlob(digest, size); };
  if (options.kinds == std::vector<std::string>{kSimulatedKind}) {
    OfferSimulation(options, &offer);
  } else {
    RETURN_IF_ERROR(CheckConfinementOf(options));
    const ConfinementLevel level = LevelOf(options);
    (*offer.lease.info.mutable_labels())["confinement"] = level.InWords();
    options.log({level.seccomp ? LogLevel::kInfo : LogLevel::kWarning, "confinement", {{"level", level.InWords()}}});
    if (options.build) OfferBuilds(options, level, &offer);
    for (const std::string& kind : options.kinds) {
      RETURN_IF_ERROR(OfferMeasurements(options, level, kind, read_blob, &offer));
    }
  }
  if (offer.by_kind.empty()) {
    return absl::FailedPreconditionError("nothing to do: no toolchain to build with and no device to measure");
  }

  // The stack of executors, the innermost first: by kind of task, payload, deadline, the machine's turn, log.
  std::unique_ptr<TaskExecutor> executor = ByKind(std::move(offer.by_kind));
  executor = WithPayload(std::move(executor), read_blob);
  executor = WithDeadline(std::move(executor));
  executor = WithTurn(std::move(executor), options.turn_file);
  executor = WithLogging(std::move(executor), options.log);
  return std::unique_ptr<Worker>(new LeasingWorker(std::move(offer.lease), std::move(offer.toolchains),
                                                   std::move(transport), std::move(executor)));
}

absl::StatusOr<DeviceModel> DescribeDevice(const WorkerOptions& options) {
  if (options.kinds.size() != 1) return absl::InvalidArgumentError("name the one kind of device to describe: --kinds");
  const std::string& kind = options.kinds.front();
  if (kind == kSimulatedKind) return SimulatedDeviceModel(options.simulated_seed);
  RETURN_IF_ERROR(CheckMeasureProgram(MeasureProgram(options), kind));
  std::string toolchain;
  if (kind == "cpu" && options.build) {
    if (auto clang = ClangToolchain::Create(ClangOptions(options, LevelOf(options))); clang.ok())
      toolchain = (*clang)->version();
  }
  // A thread of its own holds the turn, so that a driver that hangs in the probe delays the other workers by seconds
  // only.
  absl::Notification taken, probed;
  std::thread holder([&] {
    const Turn turn = Turn::Take(options.turn_file, nullptr);
    taken.Notify();
    // In steps of the steady clock: a timed wait of absl's would follow the wall clock.
    for (const absl::Time end = SteadyNow() + kLongestTurnOfProbe; !probed.HasBeenNotified() && SteadyNow() < end;) {
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  taken.WaitForNotification();
  absl::StatusOr<DeviceModel> model = Probe(kind, options, toolchain);
  probed.Notify();
  holder.join();
  if (model.ok()) RETURN_IF_ERROR(CheckStartsConfined(MeasureProgram(options), kind, LevelOf(options)));
  return model;
}

}  // namespace fusion
