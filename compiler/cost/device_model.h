// DeviceModel: what a worker measured about its device when it registered. Planning knows nothing else about the
// device: no planner holds a machine's constants. It is stored as JSON text, so that a model can be planned for a
// device that is not attached.
#ifndef FUSION_COMPILER_COST_DEVICE_MODEL_H_
#define FUSION_COMPILER_COST_DEVICE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/port_model.h"

namespace fusion {

struct MemoryLevel {
  std::string name;                  // "L1", "L2", "L3", "DRAM", from the core outward
  int64_t size_bytes = 0;            // per core where private, in total where shared; 0 = unbounded (DRAM)
  double bandwidth_bytes_per_s = 0;  // for a copy (read + write) by one core
  bool shared = false;
};

// One instruction with which `work_items` work-items of a work-group together multiply a fragment of `rows` × `depth`
// elements by one of `depth` × `columns`, accumulating in f32.
struct MatrixProduct {
  // The type of the operands: "f16"; "tf32", f32 rounded to ten bits of mantissa; or "f32", which only AllowTf32
  // (matrix_products.h) makes of tf32.
  std::string operands;
  int rows = 0, columns = 0, depth = 0;
  int work_items = 0;
  double flops_per_s = 0;  // of one core, published or measured
  // The operands are read from the work-group's shared memory, where they lie as layout blocks of 8 rows of 16 bytes,
  // instead of from registers.
  bool from_memory = false;
};

// The price of a barrier for a number of threads.
struct ThreadsBarrier {
  int threads = 0;
  double seconds = 0;
};

// The resources of a unit that its work-groups share at the same time, on devices that hide the latency of one
// work-group behind others. All 0 where the device has no such limits.
struct UnitLimits {
  int64_t registers = 0;       // of 32 bits, of all its work-items
  int64_t shared_bytes = 0;    // shared memory
  int64_t reserved_bytes = 0;  // shared memory that the system takes from each work-group
  int work_items = 0;
  int work_groups = 0;

  bool Known() const { return registers > 0 && shared_bytes > 0 && work_items > 0 && work_groups > 0; }
};

struct DeviceModel {
  std::string kind = "cpu";         // target family: cpu, opencl, cuda, dsa
  std::string name;                 // for people: "AMD EPYC"
  std::string isa = "avx512";       // avx2 | avx512 | avx512vnni | neon: what bundles require of the device
  std::string march = "x86-64-v4";  // the architecture that the toolchain compiles for; features follow a '+'
  std::string toolchain;            // "clang 14.0.6"
  int vector_bytes = 64;
  int vector_registers = 32;
  int parallel_units = 1;     // cores
  int work_group_size = 1;    // work-group size: work-items that share a task and its scratch; a power of two
  bool async_copies = false;  // copies into a work-group's shared memory may run while its work-items compute
  // Work-groups of one launch that are certain to run at the same time, so that they may wait for each other; 0 if
  // there is no such guarantee.
  int persistent_groups = 0;
  UnitLimits unit_limits;
  std::vector<MatrixProduct> matrix_products;
  // The library that multiplies matrices on an attached device: "cuBLASLt 13.0.0"; "" if there is none. A stored model
  // never names one.
  std::string product_library;
  std::string convolution_library;    // the same for convolutions of images: "cuDNN 9.1.0"
  bool byte_dots = true;              // kernels may use an instruction that adds four byte products in a lane
  double fma_f32_flops_per_s = 1e11;  // measured peak of one core; an FMA counts as 2 flops
  // Cycles of one vector exponential relative to one vector FMA. Functions that are no arithmetic cost this many times
  // what the table of operations says, divided by what it says of the exponential (compiler/te/scalar/op_table.h).
  double special_cycles_ratio = 11;
  double launch_s = 2e-6;   // one kernel launch with all threads; kind cpu: one call of the thread pool
  double barrier_s = 1e-6;  // between phases: of all threads, or of a persistent kernel's work-groups
  // Kind cpu: the barrier where fewer than all threads work, in ascending order. One thread waits for nobody.
  std::vector<ThreadsBarrier> fewer_threads;
  std::string host_isa = "avx2";  // kinds other than cpu: the ISA of the host processor, avx2 or neon
  bool write_allocate = true;     // a store to an uncached line counts twice: the line is read first
  std::vector<MemoryLevel> memory;
  int line_bytes = 64;       // of a cache line
  int lines_in_flight = 16;  // that a core reads from memory at once; prefetches run so far ahead
  PortModel ports;

  // Bandwidth of the nearest memory that holds this many bytes, for one core that copies (reads and writes) or only
  // reads. One purpose may use three quarters of a cache. In its own caches a core reads twice as fast as it copies,
  // because loads and stores have paths of their own; from a memory that it shares, bytes arrive at one rate, whichever
  // way they go.
  double CopyBandwidth(double footprint_bytes) const;
  double ReadBandwidth(double footprint_bytes) const;

  // Are the phases of a kernel one launch, with nothing but a barrier between them, also if it is not persistent?
  bool PhasesShareLaunch() const { return kind == "cpu"; }
  // Seconds that a barrier costs this many threads.
  double BarrierSeconds(int threads) const;
  // Seconds that a launch costs beside its work. Within a run on a CPU that is a barrier, too.
  double LaunchSeconds(int threads) const { return PhasesShareLaunch() ? BarrierSeconds(threads) : launch_s; }

  // Is a task's scratch ordinary memory, which the caches hold as far as they reach? On other devices it is a memory of
  // fixed size.
  bool CachesScratch() const { return kind == "cpu"; }

  // Do kernels read and write the host's own memory?
  bool SharesHostMemory() const { return kind == "cpu"; }

  // Does its runtime repeat launches? Loops of a graph are written out where it does not.
  bool RepeatsLaunches() const { return kind == "cpu" || kind == "cuda" || kind == "opencl"; }

  // Do neighbouring work-items of a task run in step, as the lanes of a vector do?
  bool WorkItemsAreLanes() const { return work_group_size > 1; }

  // Identifies the kind of device in profile keys. Contains family, name, ISA, units, cache sizes and what kernels may
  // use (work-group size, fragment products, libraries, …), but no measured rate.
  std::string Fingerprint() const;
  // The same device with the rates of `other`, level by level of memory as far as both have them. Schedules depend on
  // rates, and all devices of a kind, whose fingerprints are equal, must be asked for the same kernels.
  DeviceModel WithRatesOf(const DeviceModel& other) const;
};

std::string DeviceModelToJson(const DeviceModel& model);
absl::StatusOr<DeviceModel> DeviceModelFromJson(const std::string& json);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_DEVICE_MODEL_H_
