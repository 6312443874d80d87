#include "compiler/movement/sequence_cost.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/movement/cost.h"
#include "compiler/movement/in_place.h"

namespace fusion::movement {
namespace {

// One set of arguments of one launch.
struct Run {
  const std::vector<PhaseCost>* phases = nullptr;
  const std::vector<InPlacePair>* in_place = nullptr;
  const std::vector<std::string>* memory = nullptr;
  bool launches = true;  // false: one that came before it has, for a batch or beside it
};

// Bytes of the buffer that are read or written, each once.
double TouchedBytes(const BufferTraffic& traffic, const DeviceModel& device) {
  return traffic.read_bytes + traffic.write_bytes / (device.write_allocate ? 2 : 1);
}

// A result: from the run that writes it first to the one that touches it last.
struct Life {
  size_t first = 0, last = 0;
  double bytes = 0;
};

std::map<std::string, Life> LivesOf(const std::vector<Run>& runs, const DeviceModel& device) {
  std::map<std::string, Life> lives;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const PhaseCost& phase : *runs[r].phases) {
      for (const BufferTraffic& traffic : phase.traffic) {
        const std::string& name = (*runs[r].memory)[traffic.buffer];
        if (const auto it = lives.find(name); it != lives.end()) {
          it->second.last = r;
        } else if (traffic.write_bytes > 0) {
          lives.emplace(name, Life{r, r, TouchedBytes({traffic.buffer, 0, traffic.write_bytes}, device)});
        }
      }
    }
  }
  return lives;
}

double MostAliveBytes(const std::map<std::string, Life>& lives, size_t runs) {
  std::vector<double> change(runs + 1, 0);
  for (const auto& [name, life] : lives) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  double alive = 0, most = 0;
  for (const double bytes : change) most = std::max(most, alive += bytes);
  return most;
}

class Sequence {
 public:
  Sequence(const std::vector<Run>& runs, const DeviceModel& device)
      : runs_(runs), device_(device), lives_(LivesOf(runs, device)), most_alive_(MostAliveBytes(lives_, runs.size())) {}

  double RunSeconds() {
    double seconds = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      for (const PhaseCost& phase : *runs_[r].phases) {
        const bool launched = &phase == &runs_[r].phases->front() && !runs_[r].launches;
        seconds += (launched ? 0 : phase.wait_s) + std::max(phase.compute_s, TrafficSeconds(r, phase));
      }
    }
    return seconds;
  }

 private:
  // Is the buffer written over an operand that nobody needs any more?
  bool WrittenInPlace(size_t r, int buffer) const {
    const Run& run = runs_[r];
    return std::any_of(run.in_place->begin(), run.in_place->end(), [&](const InPlacePair& pair) {
      const auto operand = lives_.find((*run.memory)[pair.in]);
      return pair.out == buffer && operand != lives_.end() && operand->second.last == r;
    });
  }

  // Bytes touched since the memory was touched last, these bytes included.
  double BytesSince(const std::string& memory, const BufferTraffic& traffic) const {
    const auto before = touched_at_.find(memory);
    const double own = TouchedBytes(traffic, device_);
    double since = std::numeric_limits<double>::infinity();
    if (before != touched_at_.end()) since = touched_ - before->second + own;
    return traffic.write_bytes > 0 ? std::min(since, most_alive_ + own) : since;
  }

  double TrafficSeconds(size_t r, const PhaseCost& phase) {
    double seconds = 0, moved = 0;
    for (const BufferTraffic& traffic : phase.traffic) {
      const double own = TouchedBytes(traffic, device_);
      if (traffic.write_bytes > 0 && WrittenInPlace(r, traffic.buffer)) {
        seconds += own / device_.CopyBandwidth(0);
      } else {
        const double since = BytesSince((*runs_[r].memory)[traffic.buffer], traffic);
        seconds += (traffic.read_bytes + traffic.write_bytes) / device_.CopyBandwidth(since);
        moved += own;
      }
    }
    touched_ += moved;
    for (const BufferTraffic& traffic : phase.traffic) touched_at_[(*runs_[r].memory)[traffic.buffer]] = touched_;
    return seconds;
  }

  const std::vector<Run>& runs_;
  const DeviceModel& device_;
  const std::map<std::string, Life> lives_;
  const double most_alive_;                   // bytes of results at once
  double touched_ = 0;                        // bytes, since the first run began
  std::map<std::string, double> touched_at_;  // `touched_` when a memory was touched last
};

}  // namespace

double EstimateSequence(absl::Span<const SequenceLaunch> launches, const DeviceModel& device, int threads) {
  std::vector<std::vector<PhaseCost>> phases;
  std::vector<std::vector<InPlacePair>> in_place;
  phases.reserve(launches.size());
  in_place.reserve(launches.size());
  std::vector<Run> runs;
  for (const SequenceLaunch& launch : launches) {
    phases.push_back(EstimatePhases(*launch.kernel, device, threads));
    in_place.push_back(InPlacePairs(*launch.kernel));
    runs.push_back({&phases.back(), &in_place.back(), &launch.memory, !launch.concurrent});
    for (const std::vector<std::string>& other : launch.others) {
      runs.push_back({&phases.back(), &in_place.back(), &other, false});
    }
  }
  Sequence sequence(runs, device);
  sequence.RunSeconds();  // leaves in the caches what a run before would
  return 1e9 * sequence.RunSeconds();
}

}  // namespace fusion::movement
