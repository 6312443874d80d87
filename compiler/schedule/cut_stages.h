// Cuts the stages of a fusion block into groups between which the whole device waits. Phases follow from scopes: the
// groups are what remains of the graph of stages when the edges are cut that a plan wants at device scope.
#ifndef FUSION_COMPILER_SCHEDULE_CUT_STAGES_H_
#define FUSION_COMPILER_SCHEDULE_CUT_STAGES_H_

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/hand_overs.h"
#include "compiler/te/program/program.h"

namespace fusion {

enum class CutEdges : uint8_t {
  kRequired,  // only those that must have device scope
  kAllowed,   // all that may have it
};

struct CutProgram {
  te::Program program;    // the same expressions, the stages of a group after one another
  std::vector<int> cuts;  // the first stage of each group but the first
};

// Is the hand-over of the tensor to this stage cut?
bool IsCut(const std::vector<HandOverRequest>& requests, te::TensorId tensor, const te::Te& consumer, CutEdges edges);

// Two stages are in one group if a hand-over between them stays uncut. Fails with FAILED_PRECONDITION, naming a tensor,
// where groups would have to wait for each other.
//
// `partials`: tensors of SplitReductions. The stages that make them belong to the group of what they read, whatever is
// asked of that, and their readers to a later one.
absl::StatusOr<CutProgram> CutStages(const te::Program& program, const std::vector<HandOverRequest>& requests,
                                     CutEdges edges, const std::set<te::TensorId>& partials = {});

// The groups are the stages that hand-overs connect; none hands anything to another one.
CutProgram UnconnectedStages(const te::Program& program);

// Whether some hand-over is asked for that may, or must, have device scope.
bool MayCut(const std::vector<HandOverRequest>& requests);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_CUT_STAGES_H_
