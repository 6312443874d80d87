#include "worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/cost/device_model.h"
#include "proto/worker_protocol.h"
#include "runtime/base/status_macros.h"
#include "worker/executor/build_executor.h"
#include "worker/executor/decorators.h"
#include "worker/executor/measure_executor.h"
#include "worker/lease/lease_loop.h"
#include "worker/lease/transport.h"
#include "worker/measure/device_probe.h"
#include "worker/simulated/simulated_device.h"

namespace fusion {
namespace {

std::string HostName() {
  char name[256] = "worker";
  gethostname(name, sizeof name - 1);
  return name;
}

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
  LeasingWorker(LeaseOptions lease, std::unique_ptr<ClangToolchain> toolchain, std::unique_ptr<Transport> transport,
                std::unique_ptr<Executor> executor)
      : toolchain_(std::move(toolchain)),
        transport_(std::move(transport)),
        executor_(std::move(executor)),
        loop_(std::move(lease), transport_.get(), executor_.get()) {}
  void Run() override { loop_.Run(); }
  void Drain() override { loop_.Drain(); }
  void Abort() override { loop_.Abort(); }

 private:
  std::unique_ptr<ClangToolchain> toolchain_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Executor> executor_;
  LeaseLoop loop_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(WorkerOptions options) {
  LeaseOptions lease;
  lease.worker_id = RandomId();
  lease.log = options.log;
  lease.info.set_name(options.name.empty() ? HostName() : options.name);
  lease.info.set_version(FUSION_VERSION);
  lease.info.set_protocol(kWorkerProtocol);

  std::map<v1::TaskKind, std::unique_ptr<Executor>> by_kind;
  std::unique_ptr<ClangToolchain> toolchain;
  const bool simulated = options.kinds == std::vector<std::string>{kSimulatedKind};
  if (simulated) {
    lease.info.set_device_model_json(DeviceModelToJson(SimulatedDeviceModel(options.simulated_seed)));
    lease.info.add_measure_kinds(kSimulatedKind);
    by_kind[v1::MEASURE] =
        std::make_unique<SimulatedMeasureExecutor>(options.simulated_seed, options.simulated_measurement);
    if (options.build) {
      v1::ToolchainInfo* info = lease.info.add_toolchains();
      info->set_kind(kSimulatedKind);
      info->set_version(kSimulatedToolchain);
      by_kind[v1::BUILD] = std::make_unique<SimulatedBuildExecutor>();
    }
    options.kinds.clear();
  } else if (options.build) {
    ClangToolchainOptions clang;
    clang.jobs = options.threads > 0 ? options.threads : UsableCores();
    absl::StatusOr<std::unique_ptr<ClangToolchain>> found = ClangToolchain::Create(clang);
    if (found.ok()) {
      toolchain = *std::move(found);
      v1::ToolchainInfo* info = lease.info.add_toolchains();
      info->set_kind("cpu");
      info->set_version(toolchain->version());
      by_kind[v1::BUILD] = std::make_unique<BuildExecutor>(toolchain.get());
    } else {
      options.log(absl::StrCat("no build tasks: ", std::string(found.status().message())));
    }
  }

  for (const std::string& kind : options.kinds) {
    if (kind != "cpu") {
      return absl::InvalidArgumentError(
          absl::StrCat("this worker measures devices of kind cpu, or of kind sim alone; not '", kind, "'"));
    }
    const std::string cache = options.state_folder.empty() ? "" : options.state_folder + "/device-cpu.json";
    ASSIGN_OR_RETURN(DeviceModel model, ProbeCpuCached(options.threads, toolchain ? toolchain->version() : "", cache));
    lease.info.set_device_model_json(DeviceModelToJson(model));
    lease.info.add_measure_kinds(kind);
    options.log(absl::StrFormat("device %s, %s, %d cores, %.0f GFLOP/s a core, %.1f GB/s from DRAM", model.name,
                                model.isa, model.parallel_units, model.fma_f32_flops_per_s * 1e-9,
                                model.memory.back().bandwidth_bytes_per_s * 1e-9));
    MeasureExecutorOptions measure;
    measure.program = options.measure_program.empty() ? MeasureProgramBesideThis() : options.measure_program;
    measure.default_threads = std::max(1, options.threads);
    by_kind[v1::MEASURE] = std::make_unique<MeasureExecutor>(measure);
  }
  if (by_kind.empty()) {
    return absl::FailedPreconditionError("nothing to do: no toolchain to build with and no device to measure");
  }

  std::unique_ptr<Transport> transport = MakeGrpcTransport(options.server);
  Transport* wire = transport.get();
  // The stack, innermost first: what the task is, its bytes, its deadline, a line in the log.
  std::unique_ptr<Executor> executor = ByKind(std::move(by_kind));
  executor = WithPayload(std::move(executor),
                         [wire](const std::string& digest, int64_t size) { return wire->ReadBlob(digest, size); });
  executor = WithDeadline(std::move(executor));
  executor = WithLogging(std::move(executor), options.log);
  return std::unique_ptr<Worker>(
      new LeasingWorker(std::move(lease), std::move(toolchain), std::move(transport), std::move(executor)));
}

}  // namespace fusion
