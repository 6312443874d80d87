// Loops of a graph. A graph stays one list of nodes: between a LoopBegin and its LoopEnd stands the body, once, and a
// run executes it `trips` times (docs/decisions/0046-loops-are-regions.md).
//
//   %h, %x = LoopBegin(%h0, %xs) {loop = 7, trips = 100, carried = 1, reversed = ints[0]}
//   %h1 = Tanh(Add(%h, %x))
//   %last, %all = LoopEnd(%h, %h1, %h1) {loop = 7, trips = 100, carried = 1, reversed = ints[0]}
//
// LoopBegin(initial…, scanned…) → (carried…, slices…). In iteration t, a carried value is what LoopEnd got as its next
// in iteration t - 1, or the initial value in iteration 0, and a slice is scanned[t] without its first axis, or
// scanned[trips - 1 - t] where `reversed` says 1.
// LoopEnd(token, next…, scanned…) → (last…, stacks…). `token` is the first result of its LoopBegin. `last` are the
// carried values after the last iteration. A stack has the iterations along a new first axis, the last one first where
// `reversed` says 1.
//
// LoopCopy(value, token) → value: a copy that runs in the loop of the token, whatever it copies. Only passes make it.
//
// A node runs in the loop if it depends on LoopBegin and not through LoopEnd; everything else runs once
// (compiler/ops/control/find_loops.h). `loop` only tells equal loops apart, so that no pass takes two for one.
#ifndef FUSION_COMPILER_OPS_CONTROL_LOOP_H_
#define FUSION_COMPILER_OPS_CONTROL_LOOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::ops {

// From this many iterations on import keeps a loop. Fewer are written out: they fuse with what surrounds them.
inline constexpr int64_t kLeastTrips = 4;
// A run holds the arguments of each iteration, so longer loops are refused like loops that are written out.
inline constexpr int64_t kMostKeptTrips = 1 << 16;

inline constexpr char kLoopBegin[] = "LoopBegin", kLoopEnd[] = "LoopEnd", kLoopCopy[] = "LoopCopy";

// Is it LoopBegin or LoopEnd? Their lowering is what one iteration sees, so no pass may evaluate such a node, take it
// for a copy, derive ranges from it or fuse it with another.
bool IsLoopBoundary(const ecg::Node& node);

struct LoopForm {
  int64_t trips = 0;
  int carried = 0;
  std::vector<int64_t> reversed;  // 0 or 1 for each scanned value
};
LoopForm LoopFormOf(const ecg::Node& boundary);

// The attributes of a boundary.
ecg::Attributes LoopAttributes(int64_t loop, const LoopForm& form);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_CONTROL_LOOP_H_
