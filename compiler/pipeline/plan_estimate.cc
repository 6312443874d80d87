#include "compiler/pipeline/plan_estimate.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/movement/sequence_cost.h"

namespace fusion {
namespace {

// Which memory each argument is. A constant that is packed is another memory than the constant as it was; packed
// copies of one size are taken for the same (share_packings.h).
std::vector<std::string> MemoryOf(const BlockKernel& block, size_t launch, const ElidedCopies& elided) {
  std::vector<std::string> memory;
  for (size_t a = 0; a < block.args.size(); ++a) {
    const KernelArg& arg = block.args[a];
    std::string& name = memory.emplace_back();
    if (arg.kind == KernelArg::Kind::kTemporary) {
      name = absl::StrCat("temporary ", launch, " ", a);
    } else if (arg.value == ecg::kNone) {
      name = absl::StrCat("literal ", block.key, " ", a);
    } else {
      ecg::ValueId value = arg.value;
      for (auto it = elided.values.find(value); it != elided.values.end(); it = elided.values.find(value)) {
        value = it->second.whole;
      }
      name = absl::StrCat("value ", value);
      if (arg.pack >= 0) absl::StrAppend(&name, " packed ", block.kernel.buffers[a].elements);
    }
  }
  return memory;
}

}  // namespace

double EstimatePlan(const std::vector<PlannedLaunch>& launches, const ElidedCopies& elided, const DeviceModel& device,
                    int threads) {
  std::vector<movement::SequenceLaunch> sequence;
  for (size_t l = 0; l < launches.size(); ++l) {
    movement::SequenceLaunch launch{&launches[l].block.kernel, MemoryOf(launches[l].block, l, elided), {},
                                    launches[l].concurrent};
    for (const BlockKernel& other : launches[l].others) launch.others.push_back(MemoryOf(other, l, elided));
    sequence.push_back(std::move(launch));
  }
  return movement::EstimateSequence(sequence, device, threads);
}

}  // namespace fusion
