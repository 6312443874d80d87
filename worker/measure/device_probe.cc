#include "worker/measure/device_probe.h"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/devices/cpu/worker_pool.h"
#include "worker/measure/host_facts.h"
#include "worker/measure/host_kernels.h"

namespace fusion {
namespace {

constexpr int64_t kDramBytes = int64_t{96} << 20;
constexpr absl::Duration kLevelTime = absl::Milliseconds(60);

// The quantile that is taken as the rate of an undisturbed machine. A median would also measure other running programs
// (a launch then waits milliseconds for a core).
constexpr double kUndisturbed = 0.1;

// Copies one half of a buffer of `size_bytes` onto the other until `kLevelTime` has passed. Returns the bytes read plus
// written per second in an undisturbed round.
double CopyBandwidth(const InstructionSet& isa, char* buffer, int64_t size_bytes) {
  const int64_t half = std::max<int64_t>(128, size_bytes / 2 / 128 * 128);
  const int64_t repeats = std::max<int64_t>(1, (1 << 20) / half);
  std::vector<double> rates;
  const absl::Time end = SteadyNow() + kLevelTime;
  for (int round = 0; round < 3 || SteadyNow() < end; ++round) {
    const double rate = CopyBytesPerSecond(isa, buffer, buffer + half, half, repeats);
    if (round > 0) rates.push_back(rate);
  }
  return Quantile(rates, 1 - kUndisturbed);
}

// args[0]: the steps of a task.
void Steps(void* const* args, void*, int64_t begin, int64_t end) {
  int64_t x = 0;
  for (int64_t left = *static_cast<const int64_t*>(args[0]) * (end - begin); left > 0; --left) {
    asm volatile("" : "+r"(x));
  }
}

struct PhasePrices {
  double call_s = 0;     // of a phase that is a call of the pool
  double barrier_s = 0;  // of one that follows another within a call
};

// The cost of a phase beside its work if each thread has a task of it. The tasks take longer than it takes the
// threads to see each other's stores; without work one thread would run them all.
absl::StatusOr<PhasePrices> ProbePhases(int threads) {
  constexpr int kPhases = 100, kRounds = 30;
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerPool> pool, WorkerPool::Create(threads, 0));
  int64_t steps = 6000;
  void* const args[] = {&steps};
  void* const* const sets[] = {args};
  const std::vector<WorkerPool::Phase> phases(kPhases, pool->Cut({{Steps, sets, threads}}));
  const WorkerPool::Hold hold(*pool);
  const auto seconds = [](const auto& run) {
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t start = SteadyNanos();
      run();
      rounds.push_back(1e-9 * static_cast<double>(SteadyNanos() - start));
    }
    return Quantile(rounds, kUndisturbed) / kPhases;
  };
  const double work_s = seconds([&] { Steps(args, nullptr, 0, kPhases); });
  const double calls_s = seconds([&] {
    for (const WorkerPool::Phase& phase : phases) pool->Run({&phase, 1});
  });
  const double program_s = seconds([&] { pool->Run(phases); });
  constexpr double kLeast = 1e-9;  // of a call, which is not free even on one thread
  return PhasePrices{std::max(kLeast, calls_s - work_s), threads == 1 ? 0 : std::max(0.0, program_s - work_s)};
}

absl::Status ProbeLaunches(int threads, DeviceModel* model) {
  ASSIGN_OR_RETURN(const PhasePrices prices, ProbePhases(threads));
  model->launch_s = prices.call_s;
  model->barrier_s = prices.barrier_s;
  for (int fewer = 1; fewer < threads; fewer *= 2) {
    ASSIGN_OR_RETURN(const PhasePrices of_fewer, ProbePhases(fewer));
    model->fewer_threads.push_back({fewer, of_fewer.barrier_s});
  }
  return absl::OkStatus();
}

// Returns a line that changes whenever a cached model must not be used.
std::string CacheTag(int threads, const std::string& toolchain) {
  std::string tag = absl::StrCat("device-model 6|", CpuName(), "|", threads, "|", toolchain, "|");
  for (const CacheLevel& cache : HostCaches()) {
    absl::StrAppend(&tag, cache.size_bytes, "/", cache.line_bytes, ",");
  }
  return tag;
}

}  // namespace

int UsableCores() {
  cpu_set_t set;
  int cores = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "200000 100000" or "max 100000"
  double quota = 0, period = 0;
  if (file >> quota >> period && period > 0) {
    cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota / period))));
  }
  return cores;
}

absl::StatusOr<DeviceModel> ProbeCpu(int threads, const std::string& toolchain) {
  ASSIGN_OR_RETURN(InstructionSet isa, HostInstructionSet());
  if (threads <= 0) threads = UsableCores();
  DeviceModel model;
  model.kind = "cpu";
  model.name = CpuName();
  model.isa = isa.isa;
  model.march = isa.march;
  model.toolchain = toolchain;
  model.vector_bytes = isa.vector_bytes;
  model.vector_registers = isa.vector_registers;
  model.parallel_units = UsableCores();
  model.write_allocate = true;

  model.fma_f32_flops_per_s = 0;
  FmaFlopsPerSecond(isa, 2000000);  // makes the CPU raise its clock
  for (int round = 0; round < 5; ++round) {
    model.fma_f32_flops_per_s = std::max(model.fma_f32_flops_per_s, FmaFlopsPerSecond(isa, 500000));
  }
  model.special_cycles_ratio = SpecialCyclesRatio(isa);

  std::unique_ptr<char, decltype(&free)> buffer(static_cast<char*>(aligned_alloc(1 << 21, kDramBytes)), free);
  if (buffer == nullptr) return absl::ResourceExhaustedError("no memory for measuring bandwidths");
  std::fill_n(buffer.get(), kDramBytes, 1);
  for (const CacheLevel& cache : HostCaches()) {
    MemoryLevel level;
    level.name = absl::StrCat("L", cache.level);
    level.size_bytes = cache.size_bytes;
    level.shared = cache.shared;
    level.bandwidth_bytes_per_s = CopyBandwidth(isa, buffer.get(), std::min(cache.size_bytes / 2, kDramBytes / 4));
    model.memory.push_back(level);
    model.line_bytes = cache.line_bytes;
  }
  MemoryLevel dram;
  dram.name = "DRAM";
  dram.shared = true;
  dram.bandwidth_bytes_per_s = CopyBandwidth(isa, buffer.get(), kDramBytes);
  model.memory.push_back(dram);

  RETURN_IF_ERROR(ProbeLaunches(threads, &model));
  return model;
}

absl::StatusOr<DeviceModel> ProbeCpuCached(int threads, const std::string& toolchain, const std::string& cache_file) {
  if (threads <= 0) threads = UsableCores();
  const std::string tag = CacheTag(threads, toolchain);
  struct stat facts;
  if (!cache_file.empty() && stat(cache_file.c_str(), &facts) == 0 &&
      absl::Now() - absl::FromTimeT(facts.st_mtime) < absl::Hours(24)) {
    std::ifstream file(cache_file);
    std::string first;
    std::getline(file, first);
    std::stringstream rest;
    rest << file.rdbuf();
    if (first == tag) {
      absl::StatusOr<DeviceModel> cached = DeviceModelFromJson(rest.str());
      if (cached.ok()) return cached;
    }
  }
  ASSIGN_OR_RETURN(DeviceModel model, ProbeCpu(threads, toolchain));
  if (!cache_file.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(cache_file).parent_path(), ignored);
    const std::string temporary = cache_file + ".new";
    std::ofstream(temporary) << tag << "\n" << DeviceModelToJson(model);
    std::filesystem::rename(temporary, cache_file, ignored);
  }
  return model;
}

}  // namespace fusion
