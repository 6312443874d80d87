// The time of a sequence of launches that runs again and again, as a model does: each launch finds in the caches what
// earlier launches, and the run before, have left there.
#ifndef FUSION_COMPILER_MOVEMENT_SEQUENCE_COST_H_
#define FUSION_COMPILER_MOVEMENT_SEQUENCE_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// The figures of a kernel that a sequence needs. They depend on kernel, device and threads alone, so that whoever
// estimates many sequences of the same kernels can keep them.
struct SequenceKernel {
  std::vector<PhaseCost> phases;
  std::vector<InPlacePair> in_place;
};
SequenceKernel MakeSequenceKernel(const Kernel& kernel, const DeviceModel& device, int threads);

struct SequenceLaunch {
  const Kernel* kernel = nullptr;
  // The memory of each buffer outside the tasks' scratch, in the order of Kernel::buffers. Equal names are one memory.
  std::vector<std::string> memory;
  // Further sets of arguments that run in the same launch (a batch).
  std::vector<std::vector<std::string>> others;
  bool concurrent = false;                // with the launch in front of it: no barrier lies between them
  const SequenceKernel* known = nullptr;  // of `kernel`; null: EstimateSequence makes it
};

// Returns nanoseconds of one run. A phase takes the longer of its computation and its traffic, as in EstimateCost; but
// each buffer comes from the nearest level of memory that holds all that was touched since the buffer was touched last.
// Results are written over memory that other results have left (the arena), so what they find is no colder than the
// most bytes that are alive at once; a result that may be written over an operand (in_place.h) which nobody reads later
// finds lines that were just read.
double EstimateSequence(absl::Span<const SequenceLaunch> launches, const DeviceModel& device, int threads);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_SEQUENCE_COST_H_
