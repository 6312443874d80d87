#include "runtime/devices/launch_order.h"

#include <optional>

namespace fusion {

std::vector<LaunchedAt> LaunchesInOrder(const ManifestProgram& program) {
  std::vector<LaunchedAt> order;
  for (size_t first = 0, end = 0; first < program.launches.size(); first = end) {
    int64_t trips = 1;
    end = first + 1;
    for (const Repeat& repeat : program.repeats) {
      if (repeat.in_launch || static_cast<size_t>(repeat.first) != first) continue;
      trips = repeat.trips;
      end = static_cast<size_t>(repeat.end);
    }
    for (int64_t t = 0; t < trips; ++t) {
      for (size_t l = first; l < end; ++l) order.push_back({l, t});
    }
  }
  return order;
}

int64_t MovedBy(const ManifestProgram& program, int buffer, int64_t iteration) {
  const std::optional<BufferSteps>& steps = program.buffers[buffer].steps;
  return steps ? steps->OffsetAt(iteration) : 0;
}

bool MovesInLaunch(const ManifestProgram& program, int buffer) {
  const std::optional<BufferSteps>& steps = program.buffers[buffer].steps;
  return steps && program.repeats[steps->repeat].in_launch;
}

}  // namespace fusion
