// GIR: a program as a graph of computation and data movement (PowerFusion §4). Its nodes are gOperators, its edges
// memory slices. Parallel units all run the same graph, each on its own slices.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_GIR_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_GIR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/plan/planners/power_fusion/slice.h"

namespace fusion::power_fusion {

enum class GKind : uint8_t { kMove, kSync, kElementwise, kBroadcast, kReduce };
const char* GKindName(GKind kind);  // "move"

// A slice of a tensor in one level of memory.
struct Slice {
  ecg::ValueId value = ecg::kNone;  // kNone: partial results of a reduction
  Scope memory = Scope::kLane;      // where it lives: registers up to kWarp, kBlock, or kDevice, which is DRAM
  Pattern pattern;
  Shape shape;       // of the tensor
  double bytes = 0;  // of the tensor, all units together
};

struct GOperator {
  GKind kind = GKind::kMove;
  std::vector<int> reads;        // slices
  int writes = -1;               // a slice
  int op = -1;                   // the basic operator that it is part of
  Scope scope = Scope::kDevice;  // kSync: units that wait for each other
  double operations = 0;         // of all units
  // kReduce: the axis of computation. True: along the runs of the operand's slice, false: from run to run.
  bool along_width = false;
  // kMove: for each slice that it reads, the basic operators through whose index maps elements are moved, the first one
  // first. Empty: they are read as they are.
  std::vector<std::vector<int>> through;
  bool rereads = false;  // kMove from DRAM: the reader needs elements several times
  // kMove from DRAM, where values decide which elements: the bytes that are looked up. 0 elsewhere.
  double looked_up_bytes = 0;
};

struct Gir {
  int64_t units = 1;
  std::vector<Slice> slices;
  std::vector<GOperator> operators;   // those that are left after rewriting, in an order in which they can run
  std::vector<ecg::ValueId> results;  // values that must be in DRAM at the end

  int Add(Slice slice);
  void Add(GOperator op) { operators.push_back(std::move(op)); }
};

// By slice: the gOperator that writes it, -1 where it comes from outside.
std::vector<int> MakersOf(const Gir& gir);

// By gOperator: how many synchronisations of device scope are in front of it on any path. They are the kernel's phases.
std::vector<int> PhasesOf(const Gir& gir);

// The bytes that a GIR-Graph moves.
struct MovedBytes {
  double read = 0, written = 0;  // DRAM: each tensor once in each phase that touches it, as a kernel is accounted
  double exchanged = 0;          // written to and read from memory near the units, through synchronisations
  double unit_bytes = 0;         // the largest part of a tensor that a unit exchanges
  int phases = 1;
  double Dram(const DeviceModel& device) const { return read + written * (device.write_allocate ? 2 : 1); }
};
MovedBytes BytesOf(const Gir& gir, const DeviceModel& device);

// One line for each gOperator: "sync block %a[4 x 16 / 64] -> %a[4 x 16 / 64]".
std::string Print(const ecg::Graph& graph, const Gir& gir);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_GIR_H_
