#include "compiler/movement/read_time.h"

#include <algorithm>
#include <map>

#include "compiler/movement/rereads.h"
#include "compiler/movement/traffic.h"

namespace fusion::movement {

std::vector<RereadTime> RereadTimes(const Kernel& kernel, const Phase& phase, const DeviceModel& device) {
  std::vector<RereadTime> times(phase.steps.size());
  for (const Reread& reread : RereadsOf(kernel, phase, device)) {
    RereadTime& time = times[reread.step];
    (reread.prefetched ? time.beside_s : time.apart_s) += reread.bytes / device.ReadBandwidth(reread.footprint);
  }
  return times;
}

double ExposedSeconds(double reading_s, double computing_s) {
  return reading_s > 0 ? reading_s * reading_s / std::max(reading_s, computing_s) : 0;
}

double TaskOperandSeconds(const Kernel& kernel, const Phase& phase, const DeviceModel& device) {
  struct Reads {
    double elements = 0;  // in a task, or in an iteration
    int64_t turns = 1;
  };
  std::map<int, Reads> reads;
  for (const Step& step : phase.steps) {
    if (IsRare(step)) continue;
    const double loads = Trips(step.loops) * ReducedElements(step);
    std::map<int, double> of_step;
    const auto note = [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || !IsArgument(kernel.buffers[node.tensor])) return;
      const bool shared = std::any_of(phase.grid.begin(), phase.grid.end(),
                                      [&](const te::Axis& axis) { return node.indices[0].UsesAxis(axis.id); });
      const bool in_turn = step.turn && node.indices[0].UsesAxis(step.turn->axis.id);
      if (!shared && !in_turn) of_step[node.tensor] += loads;
    };
    for (const te::Scalar& s : step.body) te::Visit(s, note);
    for (const auto& [b, elements] : of_step) {
      reads[b].elements = std::max(reads[b].elements, elements);
      reads[b].turns = std::max(reads[b].turns, TurnsOf(step));
    }
  }
  double seconds = 0;
  for (const auto& [b, read] : reads) {
    const Buffer& buffer = kernel.buffers[b];
    const auto whole = static_cast<double>(SizeBytes(buffer));
    const double bytes = std::min(whole, read.elements * static_cast<double>(DTypeBytes(buffer.dtype)));
    seconds += static_cast<double>(phase.tasks() * read.turns) * bytes / device.ReadBandwidth(whole);
  }
  return seconds;
}

}  // namespace fusion::movement
