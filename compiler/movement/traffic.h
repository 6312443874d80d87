// The memory traffic of a kernel: how often loops run, how often each buffer's elements are loaded, and the bytes that
// memory moves for it.
#ifndef FUSION_COMPILER_MOVEMENT_TRAFFIC_H_
#define FUSION_COMPILER_MOVEMENT_TRAFFIC_H_

#include <limits>
#include <map>
#include <set>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

double Product(const std::vector<te::Axis>& axes);
// The mean number of iterations of a loop, which the last tile of an axis may cut short.
double MeanTrips(const Loop& loop);
double Trips(const std::vector<Loop>& loops);
// The elements that a step reduces at each point of its loops; 1 without a reduction, and for a prefix reduction, whose
// pass takes one element at each point.
double ReducedElements(const Step& step);

// How often elements of a buffer are loaded where every element is taken to be needed.
constexpr double kWholeBuffer = std::numeric_limits<double>::infinity();

// The memory traffic of a phase.
struct Accesses {
  std::map<int, double> read;  // by buffer, how often its elements are loaded
  std::set<int> written;       // buffers
};
// A value that an earlier step of the same task stores is not read.
Accesses AccessesOf(const Phase& phase);
// The accesses of the phase's library call.
Accesses AccessesOf(const Phase& phase, const LibraryCall& call);
void Add(const Accesses& accesses, Accesses* sum);

// Bytes of the buffer that so many loads reach. A buffer that a cache can hold is taken whole, since rows that are
// gathered from it lie in most of its lines; of a larger table loads touch no more elements than they load.
double TouchedBytes(const Buffer& buffer, double loads, const DeviceModel& device);

// The traffic of one phase with a buffer outside the tasks' scratch.
struct BufferTraffic {
  int buffer = -1;
  double read_bytes = 0;   // each element once; of a table that no cache holds, what is loaded
  double write_bytes = 0;  // twice where a store reads its line first
};
// In the order of the buffers' numbers.
std::vector<BufferTraffic> TrafficOf(const Kernel& kernel, const Accesses& accesses, const DeviceModel& device);
double BytesOf(const std::vector<BufferTraffic>& traffic);
double TrafficBytes(const Kernel& kernel, const Accesses& accesses, const DeviceModel& device);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_TRAFFIC_H_
