// The performance model: reads a movement graph and a device model, nothing else (PowerFusion §5.2, FusionStitching Eq.
// 1).
// - A phase takes the longer of its computation and its memory traffic.
// - Computation comes in waves of tasks over the parallel units. It includes reading again what every task reads or
//   loops push out of the core's own caches (rereads.h), and scratch that these do not hold.
//   Where units keep several work-groups (compiler/cost/occupancy.h), a wave is as many of them as fit, and few
//   work-items do not fill a unit.
// - Traffic counts each buffer but scratch once, and a stored one twice where a store reads its line first, at the
//   bandwidth of the memory that holds four times all buffers. A table that no cache holds counts by the elements
//   that are loaded.
// - Functions that are no arithmetic cost what the table of operations says, times what the device says of them.
// - Launches and barriers are added.
//
// Caches are not scopes: an access is served by the nearest memory that holds the bytes in question in three quarters
// of its size (DeviceModel::CopyBandwidth).
#ifndef FUSION_COMPILER_MOVEMENT_COST_H_
#define FUSION_COMPILER_MOVEMENT_COST_H_

#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/movement/traffic.h"

namespace fusion::movement {

struct KernelCost {
  double fma = 0;               // FMA-equivalents, all tasks
  double special = 0;           // the part of the work beyond plain arithmetic
  double compulsory_bytes = 0;  // each kernel-scope buffer element touched once (stores twice where allocated on write)
  double compute_ns = 0;        // the part of the time that units compute, also where reading and writing hide it
  double latency_ns = 0;
};

// The bytes that each level of memory serves, parallel to `device.memory`: arguments and what phases hand to each
// other, each element once in each phase that touches it, from the level that holds four times all buffers (they are
// taken as cold), and what loops read again (rereads.h) from the level that holds what lies between; a task's scratch
// from the level that holds it.
std::vector<double> BytesByLevel(const Kernel& kernel, const DeviceModel& device);

// The phases of a kernel between two barriers: one, or several beside each other.
struct PhaseCost {
  double wait_s = 0;     // the launch, or the barrier in front of it
  double compute_s = 0;  // the units compute
  std::vector<BufferTraffic> traffic;
  double memory_units = 1;  // whose rates of memory add up (MemoryUnits)
  int64_t trips = 1;        // of the phase loop around it
};
std::vector<PhaseCost> EstimatePhases(const Kernel& kernel, const DeviceModel& device, int threads);

KernelCost EstimateCost(const Kernel& kernel, const DeviceModel& device, int threads);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_COST_H_
