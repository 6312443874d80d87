// DeviceModel: what a worker measured of its device when it registered, and all that planning may know of it
// (no planner holds a constant of a machine). Saved and loaded as JSON text, so that planning for a device that
// is not attached works.
#ifndef FUSION_COMPILER_COST_DEVICE_MODEL_H_
#define FUSION_COMPILER_COST_DEVICE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

struct MemoryLevel {
  std::string name;                  // "L1", "L2", "L3", "DRAM", from the core outward
  int64_t size_bytes = 0;            // per core where private, whole where shared; 0 = unbounded (DRAM)
  double bandwidth_bytes_per_s = 0;  // copy (read + write) by one core
  bool shared = false;
};

// One instruction by which `work_items` of a group together multiply a fragment of `rows` × `depth` elements with one
// of `depth` × `columns`, accumulating in f32.
struct MatrixProduct {
  std::string operands;  // f16; tf32: f32 rounded to ten bits of mantissa
  int rows = 0, columns = 0, depth = 0;
  int work_items = 0;
  double flops_per_s = 0;  // of one core, published or measured
  // Operands are read where they lie in the group's memory, in blocks of 8 rows of 16 bytes, instead of from registers.
  bool from_memory = false;
};

struct DeviceModel {
  std::string kind = "cpu";         // target family: cpu, opencl, cuda, dsa
  std::string name;                 // for people: "AMD EPYC"
  std::string isa = "avx512";       // avx2 | avx512 | avx512vnni | neon: what bundles require
  std::string march = "x86-64-v4";  // what the toolchain is told; features follow a '+'
  std::string toolchain;            // "clang 14.0.6"
  int vector_bytes = 64;
  int vector_registers = 32;
  int parallel_units = 1;     // cores
  int task_lanes = 1;         // work-items that share a task and its scratch; a power of two
  bool async_copies = false;  // into the memory of a group, while its work-items compute
  // Groups of one launch that are certain to run at the same time, so that they may wait for each other; 0: none are.
  int resident_groups = 0;
  std::vector<MatrixProduct> matrix_products;
  // What multiplies matrices where the device is attached: "cuBLASLt 13.0.0"; "": nothing. Never in a stored model.
  std::string product_library;
  std::string convolution_library;  // the same for convolutions of images: "cuDNN 9.1.0"
  bool tf32 = false;      // products of f32 may use operands of tf32: by explicit choice, never a fact of the device
  bool byte_dots = true;  // kernel text may add four products of bytes in a lane
  double fma_f32_flops_per_s = 1e11;  // one core, measured peak, 2 flops an FMA
  double special_cycles_ratio = 20;   // cycles of one vector exp/erf/tanh/div chain relative to one vector FMA
  double launch_s = 2e-6;             // one kernel launch with all threads
  double barrier_s = 1e-6;            // between phases: of the pool's threads, or of groups that stay
  std::string host_isa =
      "avx2";                  // of kinds other than cpu: what the processor beside the device executes, avx2 or neon
  bool write_allocate = true;  // stores to uncached lines count twice
  std::vector<MemoryLevel> memory;

  // Bytes a second of the nearest memory that holds so many bytes (three quarters of a cache serve one purpose), copied
  // (read and written) or only read, by one core.
  double CopyBandwidth(double footprint_bytes) const;
  double ReadBandwidth(double footprint_bytes) const { return 2 * CopyBandwidth(footprint_bytes); }

  // Is a task's scratch ordinary memory, which caches hold as far as they reach? Otherwise it is a memory of fixed
  // size.
  bool CachesScratch() const { return kind == "cpu"; }

  // Identifies the kind of device in profile keys: family, name, ISA, units, cache sizes; no measured rate.
  std::string Fingerprint() const;
  // The same device with rates that follow from its fingerprint, typical ones instead of those that were measured: for
  // decisions about what to measure, which must not change from one registration to the next.
  DeviceModel WithTypicalRates() const;
  // The same device with the rates that were measured of `other`, one of the same fingerprint: schedules follow rates,
  // and all devices of a kind have to be asked for the same kernels.
  DeviceModel WithRatesOf(const DeviceModel& other) const;
};

std::string DeviceModelToJson(const DeviceModel& model);
absl::StatusOr<DeviceModel> DeviceModelFromJson(const std::string& json);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_DEVICE_MODEL_H_
