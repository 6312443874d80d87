#include "compiler/movement/sequence_cost.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fusion::movement {
namespace {

// One set of arguments of one launch.
struct Run {
  const SequenceKernel* kernel = nullptr;
  std::vector<int> memory;
  bool launches = true;  // false: one that came before it has, for a batch or beside it
};

// Bytes of the buffer that are read or written, each once.
double TouchedBytes(const BufferTraffic& traffic, const DeviceModel& device) {
  return traffic.read_bytes + traffic.write_bytes / (device.write_allocate ? 2 : 1);
}

// When a memory is in use.
struct Life {
  bool result = false;         // somebody writes it
  size_t first = 0, last = 0;  // a result's runs, from the one that writes it first
  double bytes = 0;
};

std::vector<Life> LivesOf(const std::vector<Run>& runs, size_t memories, const DeviceModel& device) {
  std::vector<Life> lives(memories);
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const PhaseCost& phase : runs[r].kernel->phases) {
      for (const BufferTraffic& traffic : phase.traffic) {
        Life& life = lives[runs[r].memory[traffic.buffer]];
        if (!life.result && traffic.write_bytes > 0) {
          life = {true, r, r, TouchedBytes({traffic.buffer, 0, traffic.write_bytes}, device)};
        }
        life.last = r;
      }
    }
  }
  return lives;
}

double MostAliveBytes(const std::vector<Life>& lives, size_t runs) {
  std::vector<double> change(runs + 1, 0);
  for (const Life& life : lives) {
    if (!life.result) continue;
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  double alive = 0, most = 0;
  for (const double bytes : change) most = std::max(most, alive += bytes);
  return most;
}

class Sequence {
 public:
  Sequence(const std::vector<Run>& runs, size_t memories, const DeviceModel& device)
      : runs_(runs),
        device_(device),
        lives_(LivesOf(runs, memories, device)),
        most_alive_(MostAliveBytes(lives_, runs.size())),
        touched_at_(memories, -1) {}

  double RunSeconds() {
    double seconds = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const std::vector<PhaseCost>& phases = runs_[r].kernel->phases;
      for (const PhaseCost& phase : phases) {
        const bool launched = &phase == &phases.front() && !runs_[r].launches;
        seconds += (launched ? 0 : phase.wait_s) + std::max(phase.compute_s, TrafficSeconds(r, phase));
      }
    }
    return seconds;
  }

 private:
  // Is the buffer written over an operand that nobody needs any more?
  bool WrittenInPlace(size_t r, int buffer) const {
    const Run& run = runs_[r];
    const std::vector<InPlacePair>& pairs = run.kernel->in_place;
    return std::any_of(pairs.begin(), pairs.end(), [&](const InPlacePair& pair) {
      const Life& operand = lives_[run.memory[pair.in]];
      return pair.out == buffer && operand.result && operand.last == r;
    });
  }

  // Bytes touched since the memory was touched last, these bytes included.
  double BytesSince(int memory, const BufferTraffic& traffic) const {
    const double own = TouchedBytes(traffic, device_);
    double since = std::numeric_limits<double>::infinity();
    if (touched_at_[memory] >= 0) since = touched_ - touched_at_[memory] + own;
    return traffic.write_bytes > 0 ? std::min(since, most_alive_ + own) : since;
  }

  double TrafficSeconds(size_t r, const PhaseCost& phase) {
    double seconds = 0, moved = 0;
    for (const BufferTraffic& traffic : phase.traffic) {
      const double own = TouchedBytes(traffic, device_);
      if (traffic.write_bytes > 0 && WrittenInPlace(r, traffic.buffer)) {
        seconds += own / device_.CopyBandwidth(0);
      } else {
        const double since = BytesSince(runs_[r].memory[traffic.buffer], traffic);
        seconds += (traffic.read_bytes + traffic.write_bytes) / device_.CopyBandwidth(since);
        moved += own;
      }
    }
    touched_ += moved;
    for (const BufferTraffic& traffic : phase.traffic) touched_at_[runs_[r].memory[traffic.buffer]] = touched_;
    return seconds / phase.memory_units;
  }

  const std::vector<Run>& runs_;
  const DeviceModel& device_;
  const std::vector<Life> lives_;   // by memory
  const double most_alive_;         // bytes of results at once
  double touched_ = 0;              // bytes, since the first run began
  std::vector<double> touched_at_;  // `touched_` when a memory was touched last; -1: never
};

}  // namespace

SequenceKernel MakeSequenceKernel(const Kernel& kernel, const DeviceModel& device, int threads) {
  return {EstimatePhases(kernel, device, threads), InPlacePairs(kernel)};
}

double EstimateSequence(absl::Span<const SequenceLaunch> launches, const DeviceModel& device, int threads) {
  std::vector<SequenceKernel> made;
  made.reserve(launches.size());
  std::unordered_map<std::string_view, int> numbers;  // of memories
  const auto numbered = [&](const std::vector<std::string>& names) {
    std::vector<int> memory;
    memory.reserve(names.size());
    for (const std::string& name : names) {
      memory.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
    }
    return memory;
  };
  std::vector<Run> runs;
  for (const SequenceLaunch& launch : launches) {
    const SequenceKernel* kernel = launch.known;
    if (kernel == nullptr) kernel = &made.emplace_back(MakeSequenceKernel(*launch.kernel, device, threads));
    runs.push_back({kernel, numbered(launch.memory), !launch.concurrent});
    for (const std::vector<std::string>& other : launch.others) runs.push_back({kernel, numbered(other), false});
  }
  Sequence sequence(runs, numbers.size(), device);
  sequence.RunSeconds();  // leaves in the caches what a run before would
  return 1e9 * sequence.RunSeconds();
}

}  // namespace fusion::movement
