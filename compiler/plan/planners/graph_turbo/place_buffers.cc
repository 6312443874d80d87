#include "compiler/plan/planners/graph_turbo/place_buffers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace fusion::graph_turbo {
namespace {

// Declares buffers of `level` one level out until at each step those that are live fit.
void Spill(BufferScope level, double capacity, const std::function<double(const PlacedBuffer&)>& size,
           std::vector<PlacedBuffer>* buffers) {
  std::vector<size_t> by_birth(buffers->size());
  std::iota(by_birth.begin(), by_birth.end(), 0);
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [&](size_t a, size_t b) { return (*buffers)[a].birth < (*buffers)[b].birth; });
  using Death = std::pair<int64_t, size_t>;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> deaths;
  std::set<std::tuple<int64_t, double, size_t>> live;  // by how long it lives, then by size
  double used = 0;
  const auto key = [&](size_t b) {
    const PlacedBuffer& buffer = (*buffers)[b];
    return std::make_tuple(buffer.death - buffer.birth, size(buffer), b);
  };
  for (const size_t b : by_birth) {
    const PlacedBuffer& buffer = (*buffers)[b];
    if (buffer.scope != level) continue;
    while (!deaths.empty() && deaths.top().first < buffer.birth) {
      const size_t dead = deaths.top().second;
      deaths.pop();
      if (live.erase(key(dead)) > 0) used -= size((*buffers)[dead]);
    }
    live.insert(key(b));
    deaths.emplace(buffer.death, b);
    used += size(buffer);
    while (used > capacity && !live.empty()) {
      const auto longest = std::prev(live.end());
      PlacedBuffer& spilled = (*buffers)[std::get<2>(*longest)];
      used -= size(spilled);
      spilled.scope = level == BufferScope::kLocal ? BufferScope::kGlobal : BufferScope::kDdr;
      live.erase(longest);
    }
  }
}

int CoresOf(const Binding& binding, int cores) {
  return std::max<int>(1, static_cast<int>(std::min<int64_t>(Pieces(binding.factors), cores)));
}

class Steps {
 public:
  Steps(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs, const InstanceGraph& instances,
        const std::vector<Binding>& bindings, int cores)
      : graph_(graph), sub_graphs_(sub_graphs), instances_(instances), bindings_(bindings), cores_(cores) {}

  void Run(const std::vector<int>& order, const std::vector<Movement>& movements) {
    std::vector<std::vector<const Movement*>> before(instances_.instances.size());
    for (const Movement& movement : movements) before[movement.consumer].push_back(&movement);
    for (const int i : order) {
      held_.clear();
      for (const Movement* movement : before[i]) Move(*movement);
      LoadInputs(i);
      for (const int op : sub_graphs_[instances_.instances[i].sub_graph].sub_graph.ops) Compute(i, op);
    }
  }

  std::vector<PlacedBuffer> Take() { return std::move(buffers_); }

 private:
  int Add(BufferUse use, int tensor, int instance, const Region& region, BufferScope scope) {
    PlacedBuffer buffer;
    buffer.use = use;
    buffer.tensor = tensor;
    buffer.instance = instance;
    buffer.bytes = graph_.tensors[tensor].bytes(region);
    buffer.cores = CoresOf(bindings_[instance], cores_);
    buffer.birth = buffer.death = step_;
    buffer.scope = scope;
    buffers_.push_back(buffer);
    return static_cast<int>(buffers_.size()) - 1;
  }
  void Use(int buffer) { buffers_[buffer].death = step_; }

  // The buffers that hold what the instance reads of a tensor: what was moved for it, else what other instances made.
  std::vector<int> Holding(int i, int tensor) const {
    if (const auto moved = held_.find(tensor); moved != held_.end()) return moved->second;
    std::vector<int> holding;
    const auto makers = instances_.instances[i].makers.find(tensor);
    if (makers == instances_.instances[i].makers.end()) return holding;
    for (const int maker : makers->second) holding.push_back(output_.at({maker, tensor}));
    return holding;
  }

  void Move(const Movement& movement) {
    const Instance& consumer = instances_.instances[movement.consumer];
    const Region& read = consumer.footprint.regions.at(movement.tensor);
    if (movement.kind == MovementKind::kConcatenate) {
      for (const int buffer : Holding(movement.consumer, movement.tensor)) Use(buffer);
      held_[movement.tensor] = {
          Add(BufferUse::kMovement, movement.tensor, movement.consumer, read, BufferScope::kLocal)};
    } else {
      // The part that this maker made and the consumer reads.
      const std::vector<int> outputs =
          OutputsOf(graph_, sub_graphs_[instances_.instances[movement.maker].sub_graph].sub_graph);
      Region part = read;
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o] != movement.tensor) continue;
        const Region& made = instances_.instances[movement.maker].outputs[o];
        for (size_t d = 0; d < part.ranges.size(); ++d) {
          part.ranges[d].begin = std::max(part.ranges[d].begin, made.ranges[d].begin);
          part.ranges[d].end = std::min(part.ranges[d].end, made.ranges[d].end);
        }
      }
      Use(output_.at({movement.maker, movement.tensor}));
      const int moved = Add(BufferUse::kMovement, movement.tensor, movement.consumer, part, BufferScope::kLocal);
      auto held = held_.find(movement.tensor);
      if (held == held_.end()) {
        held = held_.emplace(movement.tensor, Holding(movement.consumer, movement.tensor)).first;
      }
      const std::vector<int>& makers = consumer.makers.at(movement.tensor);
      held->second[std::lower_bound(makers.begin(), makers.end(), movement.maker) - makers.begin()] = moved;
    }
    ++step_;
  }

  void LoadInputs(int i) {
    const Instance& instance = instances_.instances[i];
    for (const int tensor : InputsOf(graph_, sub_graphs_[instance.sub_graph].sub_graph)) {
      if (graph_.tensors[tensor].producer != kNone) continue;
      const Region& read = instance.footprint.regions.at(tensor);
      held_[tensor] = {Add(BufferUse::kInput, tensor, i, read, BufferScope::kLocal)};
    }
  }

  void Compute(int i, int op) {
    const Instance& instance = instances_.instances[i];
    const std::vector<int> outputs = OutputsOf(graph_, sub_graphs_[instance.sub_graph].sub_graph);
    for (const int tensor : graph_.ops[op].inputs) {
      if (tensor == kNone) continue;
      if (const auto own = output_.find({i, tensor}); own != output_.end()) {
        Use(own->second);
      } else {
        for (const int buffer : Holding(i, tensor)) Use(buffer);
      }
    }
    for (const int tensor : graph_.ops[op].outputs) {
      const bool leaves = std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
      output_[{i, tensor}] = Add(BufferUse::kOutput, tensor, i, instance.footprint.regions.at(tensor),
                                 leaves ? bindings_[i].scope : BufferScope::kLocal);
    }
    ++step_;
  }

  const OpGraph& graph_;
  const std::vector<GroupedSubGraph>& sub_graphs_;
  const InstanceGraph& instances_;
  const std::vector<Binding>& bindings_;
  const int cores_;
  int64_t step_ = 0;
  std::vector<PlacedBuffer> buffers_;
  std::map<std::pair<int, int>, int> output_;  // by instance and tensor: its buffer
  std::map<int, std::vector<int>> held_;       // of the instance at hand, by tensor: what was moved or loaded for it
};

}  // namespace

void SpillLongestLived(const Capacity& capacity, std::vector<PlacedBuffer>* buffers) {
  Spill(
      BufferScope::kLocal, capacity.local_bytes, [](const PlacedBuffer& b) { return b.bytes / b.cores; }, buffers);
  Spill(
      BufferScope::kGlobal, capacity.global_bytes, [](const PlacedBuffer& b) { return b.bytes; }, buffers);
}

std::vector<PlacedBuffer> PlaceBuffers(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                       const InstanceGraph& instances, const std::vector<int>& order,
                                       const std::vector<Binding>& bindings, const std::vector<Movement>& movements,
                                       const Capacity& capacity) {
  Steps steps(graph, sub_graphs, instances, bindings, capacity.cores);
  steps.Run(order, movements);
  std::vector<PlacedBuffer> buffers = steps.Take();
  SpillLongestLived(capacity, &buffers);
  return buffers;
}

}  // namespace fusion::graph_turbo
