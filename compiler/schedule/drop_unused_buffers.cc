#include "compiler/schedule/drop_unused_buffers.h"

#include <utility>
#include <vector>

#include "compiler/movement/renumber_buffers.h"

namespace fusion {
namespace {

std::vector<bool> UsedBuffers(const movement::Kernel& kernel) {
  std::vector<bool> used(kernel.buffers.size(), false);
  for (const movement::Phase& phase : kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) {
      movement::VisitBuffers(step, [&](int buffer) { used[buffer] = true; });
    });
  }
  return used;
}

}  // namespace

void DropUnusedBuffers(movement::Kernel* kernel) {
  const std::vector<bool> used = UsedBuffers(*kernel);
  std::vector<int> number(kernel->buffers.size(), -1);
  std::vector<movement::Buffer> kept;
  for (const bool argument : {true, false}) {
    for (size_t b = 0; b < kernel->buffers.size(); ++b) {
      if (!used[b] || movement::IsArgument(kernel->buffers[b]) != argument) continue;
      number[b] = static_cast<int>(kept.size());
      kept.push_back(kernel->buffers[b]);
    }
  }
  for (movement::Phase& phase : kernel->phases) {
    movement::VisitSteps(&phase, [&](movement::Step* step) { movement::RenumberBuffers(number, step); });
  }
  kernel->buffers = std::move(kept);
}

}  // namespace fusion
