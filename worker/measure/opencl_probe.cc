#include "worker/measure/opencl_probe.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/bundle/manifest.h"
#include "runtime/devices/cpu/isa.h"
#include "runtime/devices/opencl/context.h"

namespace fusion {
namespace {

constexpr int kRounds = 5;
constexpr int kFmaChains = 8, kExpChains = 4;
constexpr int64_t kGlobalBytes = int64_t{64} << 20;
constexpr int64_t kMostCacheBytes = int64_t{8} << 20;  // a guest sees its host's whole cache
constexpr int64_t kMostLocalBytes = 512 << 10;         // of one task; CPUs report all their memory
constexpr int kLocalFloats = 4096;

// $L: vector lanes; $G: work-items of a work-group; $N: floats of local memory.
constexpr char kText[] = R"(
typedef float$L V;
#define GROUP __kernel __attribute__((reqd_work_group_size($G, 1, 1)))
GROUP void fma_rate(__global float* from, __global float* to, long n) {
  V a0 = (V)(from[0]), a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3, a4 = a0 + 4, a5 = a0 + 5, a6 = a0 + 6, a7 = a0 + 7;
  const V b = (V)(from[1]), c = (V)(from[2]);
  for (long i = 0; i < n; ++i) {
    a0 = a0 * b + c; a1 = a1 * b + c; a2 = a2 * b + c; a3 = a3 * b + c;
    a4 = a4 * b + c; a5 = a5 * b + c; a6 = a6 * b + c; a7 = a7 * b + c;
  }
  vstore$L(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7, get_global_id(0), to);
}
GROUP void exp_rate(__global float* from, __global float* to, long n) {
  V a0 = (V)(from[0]), a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3;
  for (long i = 0; i < n; ++i) { a0 = exp(-a0); a1 = exp(-a1); a2 = exp(-a2); a3 = exp(-a3); }
  vstore$L(a0 + a1 + a2 + a3, get_global_id(0), to);
}
GROUP void copy_rate(__global float* from, __global float* to, long n) {
  const long first = get_group_id(0) * n;
  for (long i = get_local_id(0); i < n; i += $G) vstore$L(vload$L(first + i, from), first + i, to);
}
GROUP void local_rate(__global float* from, __global float* to, long n) {
  __local float a[$N];
  for (int i = get_local_id(0); i < $N; i += $G) a[i] = from[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long r = 0; r < n; ++r) {
    for (int i = get_local_id(0); i < $N / 2 / $L; i += $G) vstore$L(vload$L(i, a) + 1, $N / 2 / $L + i, a);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < $N / 2 / $L; i += $G) vstore$L(vload$L($N / 2 / $L + i, a) + 1, i, a);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  to[get_global_id(0)] = a[get_local_id(0)];
}
int next_ticket(__global int* tickets, int end) {
  for (int next = atomic_or(tickets, 0); next < end;) {
    const int found = atomic_cmpxchg(tickets, next, next + 1);
    if (found == next) return next;
    next = found;
  }
  return end;
}
GROUP void phases(__global float* from, __global float* to, long n) {
  __global int* tickets = (__global int*)to;
  const int groups = get_num_groups(0), each = 4 * groups;
  int end = 0;
  for (long phase = 0; phase < n; ++phase) {
    end += each;
    while (next_ticket(tickets, end) < end) atomic_inc(tickets + 1);
    while (atomic_or(tickets + 1, 0) < end) {}
  }
  if (atomic_inc(tickets) == end + groups - 1) { atomic_xchg(tickets, 0); atomic_xchg(tickets + 1, 0); }
}
GROUP void clear(__global float* from, __global float* to, long n) { to[get_global_id(0)] = 0; }
GROUP void nothing(__global float* from, __global float* to, long n) {}
)";

class Probe {
 public:
  static absl::StatusOr<std::unique_ptr<Probe>> Create(std::shared_ptr<opencl::Context> context, int lanes, int group) {
    auto probe = std::make_unique<Probe>();
    const std::string text = absl::StrReplaceAll(
        kText, {{"$L", absl::StrCat(lanes)}, {"$G", absl::StrCat(group)}, {"$N", absl::StrCat(kLocalFloats)}});
    ASSIGN_OR_RETURN(probe->program_, context->BuildSource(text, "the probe"));
    ASSIGN_OR_RETURN(probe->from_, context->MakeBuffer(kGlobalBytes, "measuring bandwidths"));
    ASSIGN_OR_RETURN(probe->to_, context->MakeBuffer(kGlobalBytes, "measuring bandwidths"));
    for (const opencl::Buffer* buffer : {&probe->from_, &probe->to_}) {
      const float one = 1;
      RETURN_IF_ERROR(
          opencl::ToStatus(context->api().clEnqueueFillBuffer(context->queue(), buffer->get(), &one, sizeof one, 0,
                                                              kGlobalBytes, 0, nullptr, nullptr),
                           "filling memory"));
    }
    probe->context_ = std::move(context);
    return probe;
  }

  // Returns the time of the fastest of several rounds, without the launch.
  absl::StatusOr<double> Seconds(const std::string& symbol, int64_t groups, int64_t n) {
    ASSIGN_OR_RETURN(const opencl::ClKernel kernel, Bind(symbol, n));
    double best = 0;
    for (int round = 0; round <= kRounds; ++round) {  // the first round compiles
      cl_event event = nullptr;
      RETURN_IF_ERROR(context_->Launch(kernel, groups, &event));
      const absl::Status finished = context_->Finish();
      cl_ulong start = 0, end = 0;
      const opencl::Api& api = context_->api();
      api.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
      api.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
      api.clReleaseEvent(event);
      RETURN_IF_ERROR(finished);
      const double seconds = 1e-9 * static_cast<double>(std::max<cl_ulong>(end, start + 1) - start);
      if (round == 1 || (round > 1 && seconds < best)) best = seconds;
    }
    return best;
  }

  // Returns the time of one launch among others in the queue.
  absl::StatusOr<double> LaunchSeconds() {
    constexpr int kLaunches = 50;
    ASSIGN_OR_RETURN(const opencl::ClKernel kernel, Bind("nothing", 0));
    double best = 0;
    for (int round = 0; round <= kRounds; ++round) {
      const int64_t start = SteadyNanos();
      for (int i = 0; i < kLaunches; ++i) RETURN_IF_ERROR(context_->Launch(kernel, 1, nullptr));
      RETURN_IF_ERROR(context_->Finish());
      const double seconds = 1e-9 * static_cast<double>(SteadyNanos() - start) / kLaunches;
      if (round == 1 || (round > 1 && seconds < best)) best = seconds;
    }
    return best;
  }

 private:
  absl::StatusOr<opencl::ClKernel> Bind(const std::string& symbol, int64_t n) {
    ASSIGN_OR_RETURN(opencl::ClKernel kernel, context_->MakeKernel(program_, symbol));
    const cl_mem from = from_.get(), to = to_.get();
    const cl_long count = n;
    const opencl::Api& api = context_->api();
    RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), 0, sizeof(cl_mem), &from), symbol));
    RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), 1, sizeof(cl_mem), &to), symbol));
    RETURN_IF_ERROR(opencl::ToStatus(api.clSetKernelArg(kernel.get(), 2, sizeof count, &count), symbol));
    return kernel;
  }

  std::shared_ptr<opencl::Context> context_;
  opencl::ClProgram program_;
  opencl::Buffer from_, to_;
};

// Returns the number of work-items that run in lockstep, as the driver reports it for a kernel.
int SubgroupSize(const opencl::Context& context) {
  const auto program = context.BuildSource("__kernel void f(__global int* x) { x[get_global_id(0)] = 0; }", "a probe");
  if (!program.ok()) return 1;
  const auto kernel = context.MakeKernel(*program, "f");
  size_t multiple = 1;
  if (!kernel.ok() || context.api().clGetKernelWorkGroupInfo(kernel->get(), context.device().id,
                                                             CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                                             sizeof multiple, &multiple, nullptr) != CL_SUCCESS) {
    return 1;
  }
  return static_cast<int>(multiple);
}

int PowerOfTwo(int64_t at_most, int64_t limit) {
  int power = 1;
  while (2 * power <= at_most && 2 * power <= limit) power *= 2;
  return power;
}

}  // namespace

absl::StatusOr<DeviceModel> ProbeOpenCl() {
  ASSIGN_OR_RETURN(std::shared_ptr<opencl::Context> context, opencl::Context::Create());
  const opencl::DeviceFacts& facts = context->device();
  // A CPU computes on vectors, with one work-item per task. A GPU computes on work-items in lockstep and loads 16 bytes
  // for each at once; a few subgroups together hide each other's latencies and share the data that they load.
  const int lanes = facts.is_cpu ? std::max(2, PowerOfTwo(facts.preferred_lanes, 16)) : 4;
  const int group =
      facts.is_cpu ? 1 : PowerOfTwo(4 * std::max(32, SubgroupSize(*context)), std::min<int64_t>(facts.max_group, 256));
  DeviceModel model;
  model.kind = "opencl";
  model.name = facts.name;
  model.isa = "opencl1.2";
  model.march = absl::StrCat("float", lanes, "x", group);
  model.toolchain = facts.driver;
  model.vector_bytes = 4 * lanes;
  model.vector_registers = facts.is_cpu && lanes < 16 ? 16 : 32;
  model.parallel_units = std::max(1, facts.compute_units);
  model.work_group_size = group;
  model.byte_dots = false;
  if (const std::string host = HostIsa(); host == "neon") model.host_isa = host;
  model.write_allocate = facts.is_cpu;
  model.persistent_groups = facts.persistent_groups > 1 && group == 1 ? facts.persistent_groups : 0;

  ASSIGN_OR_RETURN(const std::unique_ptr<Probe> probe, Probe::Create(context, lanes, group));
  const int64_t groups = int64_t{facts.is_cpu ? 4 : 16} * model.parallel_units;
  const double units = model.parallel_units;
  const double points = static_cast<double>(groups) * group * lanes;

  constexpr int64_t kFmaSteps = 100000, kExpSteps = 10000, kLocalSteps = 200;
  ASSIGN_OR_RETURN(const double fma, probe->Seconds("fma_rate", groups, kFmaSteps));
  model.fma_f32_flops_per_s = 2 * points * kFmaChains * kFmaSteps / fma / units;
  ASSIGN_OR_RETURN(const double exp, probe->Seconds("exp_rate", groups, kExpSteps));
  model.special_cycles_ratio = std::max(1.0, (exp / (kExpChains * kExpSteps)) / (fma / (kFmaChains * kFmaSteps)));
  ASSIGN_OR_RETURN(model.launch_s, probe->LaunchSeconds());
  model.barrier_s = 0;  // without persistent kernels, a launch separates phases
  if (model.persistent_groups > 0) {
    constexpr int kPhases = 1000;
    RETURN_IF_ERROR(probe->Seconds("clear", 2, 0).status());
    ASSIGN_OR_RETURN(const double phases, probe->Seconds("phases", model.persistent_groups, kPhases));
    model.barrier_s = phases / kPhases;
  }

  auto copy = [&](int64_t bytes) -> absl::StatusOr<double> {
    const int64_t vectors = bytes / 2 / (4 * lanes) / groups;
    ASSIGN_OR_RETURN(const double seconds, probe->Seconds("copy_rate", groups, vectors));
    return 2.0 * static_cast<double>(vectors * groups * 4 * lanes) / seconds / units;
  };
  ASSIGN_OR_RETURN(const double local, probe->Seconds("local_rate", groups, kLocalSteps));
  // The text itself needs part of the local memory: slack, and the partial sums of the work-group.
  model.memory.push_back({"local", std::min(facts.local_bytes, kMostLocalBytes) - kBufferSlackBytes - 8 * group,
                          static_cast<double>(groups) * kLocalSteps * 2 * 4 * kLocalFloats / local / units, false});
  if (facts.cache_bytes > 0) {
    ASSIGN_OR_RETURN(const double rate, copy(std::min(facts.cache_bytes / 2, kMostCacheBytes)));
    model.memory.push_back({"cache", facts.cache_bytes, rate, true});
  }
  ASSIGN_OR_RETURN(const double rate, copy(2 * kGlobalBytes));
  model.memory.push_back({"global", 0, rate, true});
  return model;
}

}  // namespace fusion
