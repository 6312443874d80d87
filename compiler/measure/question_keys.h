// Questions about kernels, and their keys: SHA-256 over everything that a measurement depends on. Answers are stored
// under these keys, in the profile database too, so their text changes only with the generator version.
#ifndef FUSION_COMPILER_MEASURE_QUESTION_KEYS_H_
#define FUSION_COMPILER_MEASURE_QUESTION_KEYS_H_

#include <string>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/kernels/fusion_kernel.h"

namespace fusion {

// Asks how long the kernels take when one runs after another.
struct KernelQuestion {
  KernelSequence kernels;
  std::string description;                                              // for people
  std::string group = {}, workload = {}, structure = {}, choices = {};  // as in LatencyQuestion
};

// Returns the key of a measurement outside any comparison, with cold caches.
std::string QuestionKey(const KernelSequence& kernels, const DeviceModel& device, int threads);

// Returns the keys of questions that are asked together, parallel to `asked`. The members of a group are measured
// alternately, so the same kernels in another group are another question.
std::vector<std::string> KeysInGroups(const std::vector<KernelQuestion>& asked, const DeviceModel& device, int threads);

// Returns a key that is equal for kernels that do the same at other sizes. Trials of one are worth a try for the other.
std::string StructureKey(const FusionKernel& kernel, const DeviceModel& device, int threads);

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_QUESTION_KEYS_H_
