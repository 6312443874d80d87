// Hand-overs between the stages of a scheduled fusion block: which stage reads what another one makes, and how far the
// two are synchronised. The scheduler decides the latter while it makes phases and tasks; here it is read off the
// kernel, so that a plan can be held against it.
#ifndef FUSION_COMPILER_SCHEDULE_HAND_OVERS_H_
#define FUSION_COMPILER_SCHEDULE_HAND_OVERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"
#include "compiler/plan/scope.h"
#include "compiler/te/program/program.h"

namespace fusion {

struct StageHandOver {
  te::TensorId tensor = -1;
  std::vector<int> producer, consumer;  // origins of the stages (te::Te::origins)
  Scope scope = Scope::kBlock;          // kWarp to kDevice: kLane is inside a stage
  std::string why = {};                 // it is no nearer, where a plan asks for that
};

// The request about a tensor that one origin hands to another. `asked`: a planner asked for it. Otherwise it is the
// default, which lets a schedule go further; the fusion block is then refused as a whole
// (ScheduledFusionBlock::within).
struct HandOverRequest {
  te::TensorId tensor = -1;
  int producer = -1, consumer = -1;  // origins
  Scope nearest = Scope::kLane, furthest = Scope::kBlock;
  bool asked = false;
};

// Returns the hand-overs between different stages, in program order. Every step of the kernel must name its stage.
std::vector<StageHandOver> HandOversOf(const te::Program& program, const movement::Kernel& kernel);

// Returns, by phase of the kernel, the origins for which it computes, ascending. Every step must name its stage.
std::vector<std::vector<int>> PhaseOriginsOf(const te::Program& program, const movement::Kernel& kernel);

// Returns the furthest scope at which what the request's producer makes comes to a stage of its consumer: the tensor
// itself or, where its last expression was inlined into its readers, what is left of the producer in other stages.
// kLane where nothing is, because the two were merged. `all` says which tensors are hand-overs of their own.
Scope RealisedScope(const std::vector<StageHandOver>& hand_overs, const HandOverRequest& request,
                    const std::vector<HandOverRequest>& all);

// Fails with FAILED_PRECONDITION, naming the first tensor whose hand-over is nearer or further than its request allows.
absl::Status CheckWithin(const std::vector<HandOverRequest>& requests, const std::vector<StageHandOver>& hand_overs,
                         const te::Program& program, bool only_asked = false);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_HAND_OVERS_H_
