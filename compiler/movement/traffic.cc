#include "compiler/movement/traffic.h"

#include <algorithm>

#include "compiler/cost/caches.h"

namespace fusion::movement {

double Product(const std::vector<te::Axis>& axes) {
  double product = 1;
  for (const te::Axis& axis : axes) product *= static_cast<double>(axis.extent);
  return product;
}

double MeanTrips(const Loop& loop) {
  const auto most = static_cast<double>(loop.axis.extent);
  if (!loop.limit || loop.limit->parts().size() != 1) return most;
  const te::Index::Part& part = loop.limit->parts()[0];
  if (part.term.kind != te::TermKind::kAxis) return most;
  double trips = 0;
  for (int64_t i = 0; i < part.term.axis.extent; ++i) {
    const auto limit = static_cast<double>(loop.limit->constant() + part.coefficient * i);
    trips += std::clamp(limit, 0.0, most);
  }
  return trips / static_cast<double>(part.term.axis.extent);
}

double Trips(const std::vector<Loop>& loops) {
  double trips = 1;
  for (const Loop& loop : loops) trips *= MeanTrips(loop);
  return trips;
}

double ReducedElements(const Step& step) {
  return step.reduction && !step.Is<PrefixPass>() ? Product(step.reduction->axes) : 1;
}

Accesses AccessesOf(const Phase& phase) {
  Accesses accesses;
  for (const Step& step : phase.steps) {
    if (IsRare(step)) continue;
    const double points = static_cast<double>(phase.tasks() * TurnsOf(step)) * Trips(step.loops);
    const std::set<int> near = accesses.written;  // by an earlier step of the same task
    const auto note = [&](double times) {
      return [&accesses, &near, times](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad && near.count(node.tensor) == 0) accesses.read[node.tensor] += times;
      };
    };
    for (const Step& shared_copy : SharedCopiesOf(step)) te::Visit(shared_copy.body[0], note(kWholeBuffer));
    for (const te::Scalar& s : step.body) te::Visit(s, note(points * ReducedElements(step)));
    for (const te::Scalar& s : step.then) te::Visit(s, note(points));
    for (const Store& store : step.stores) accesses.written.insert(store.buffer);
    if (const auto* routine = step.As<RoutineCall>()) {
      for (const int buffer : routine->inputs) accesses.read[buffer] = kWholeBuffer;
    }
  }
  return accesses;
}

Accesses AccessesOf(const Phase& phase, const LibraryCall& call) {
  Accesses accesses;
  VisitBuffers(phase.steps[0], [&](int buffer) {
    if (buffer == ResultOf(call)) {
      accesses.written.insert(buffer);
    } else {
      accesses.read[buffer] = kWholeBuffer;
    }
  });
  return accesses;
}

double TouchedBytes(const Buffer& buffer, double loads, const DeviceModel& device) {
  const auto whole = static_cast<double>(SizeBytes(buffer));
  if (whole <= static_cast<double>(LargestCacheBytes(device))) return whole;
  return std::min(whole, loads * static_cast<double>(DTypeBytes(buffer.dtype)));
}

void Add(const Accesses& accesses, Accesses* sum) {
  for (const auto& [buffer, elements] : accesses.read) sum->read[buffer] += elements;
  sum->written.insert(accesses.written.begin(), accesses.written.end());
}

std::vector<BufferTraffic> TrafficOf(const Kernel& kernel, const Accesses& accesses, const DeviceModel& device) {
  std::map<int, BufferTraffic> traffic;
  for (const auto& [b, elements] : accesses.read) {
    const Buffer& buffer = kernel.buffers[b];
    if (!IsArgument(buffer)) continue;
    traffic[b].read_bytes = TouchedBytes(buffer, elements, device);
  }
  for (const int b : accesses.written) {
    const Buffer& buffer = kernel.buffers[b];
    if (!IsArgument(buffer)) continue;
    traffic[b].write_bytes = static_cast<double>(SizeBytes(buffer)) * (device.write_allocate ? 2 : 1);
  }
  std::vector<BufferTraffic> result;
  for (auto& [b, bytes] : traffic) {
    bytes.buffer = b;
    result.push_back(bytes);
  }
  return result;
}

double BytesOf(const std::vector<BufferTraffic>& traffic) {
  double bytes = 0;
  for (const BufferTraffic& one : traffic) bytes += one.read_bytes + one.write_bytes;
  return bytes;
}

double TrafficBytes(const Kernel& kernel, const Accesses& accesses, const DeviceModel& device) {
  return BytesOf(TrafficOf(kernel, accesses, device));
}

}  // namespace fusion::movement
