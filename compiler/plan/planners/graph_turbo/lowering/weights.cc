#include "compiler/plan/planners/graph_turbo/lowering/weights.h"

#include <algorithm>
#include <limits>

#include "compiler/plan/planners/graph_turbo/sub_graph.h"

namespace fusion::graph_turbo {
namespace {

// A weight comes in pieces, so that the first products need not wait for all of it.
constexpr int64_t kPieces = 8;
constexpr int64_t kLeastPieceElements = 32 << 10;

std::vector<Region> PiecesOfWeight(const Region& whole) {
  size_t along = 0;
  while (along < whole.ranges.size() && whole.ranges[along].length() == 1) ++along;
  const int64_t wanted = std::clamp<int64_t>(whole.elements() / kLeastPieceElements, 1, kPieces);
  if (along == whole.ranges.size() || wanted == 1) return {whole};
  const int64_t length = PieceLength(whole.ranges[along].length(), std::min(wanted, whole.ranges[along].length()));
  std::vector<Region> pieces;
  for (int64_t begin = 0; begin < whole.ranges[along].length(); begin += length) {
    Region piece = whole;
    piece.ranges[along] = {begin, std::min(begin + length, whole.ranges[along].end)};
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

void Weights::Add(const Key& key, const Held& ddr, std::vector<int> steps) {
  if (!steps.empty()) last_[steps.back()].push_back(key);
  weights_[key] = {ddr, std::move(steps), {}};
}

int Weights::NextUse(const Weight& weight, int step) {
  const auto next = std::lower_bound(weight.steps.begin(), weight.steps.end(), step);
  return next == weight.steps.end() ? std::numeric_limits<int>::max() : *next;
}

void Weights::Drop(Weight* weight) {
  for (const Held& piece : weight->pieces) emitter_->Free(piece.block);
  weight->pieces.clear();
}

bool Weights::Evict(int now, int step) {
  Weight* latest = nullptr;
  int latest_use = step;
  for (auto& [key, weight] : weights_) {
    if (weight.pieces.empty()) continue;
    const int use = NextUse(weight, now);
    if (use <= latest_use) continue;
    latest = &weight;
    latest_use = use;
  }
  if (latest == nullptr) return false;
  Drop(latest);
  return true;
}

bool Weights::Bring(const Key& key, int now, int step, bool evict) {
  Weight& weight = weights_.at(key);
  if (!weight.pieces.empty()) return true;
  std::vector<Held> pieces;
  for (const Region& region : PiecesOfWeight(weight.ddr.box)) {
    Block* block = emitter_->NewGlobal(region.elements());
    while (block == nullptr && evict && Evict(now, step)) block = emitter_->NewGlobal(region.elements());
    if (block == nullptr) {
      for (const Held& piece : pieces) emitter_->Free(piece.block);
      return false;
    }
    pieces.push_back({block, region});
  }
  for (const Held& piece : pieces) emitter_->Copy(weight.ddr, piece, piece.box);
  weight.pieces = std::move(pieces);
  return true;
}

void Weights::Forget(int step) {
  const auto last = last_.find(step);
  if (last == last_.end()) return;
  for (const Key& key : last->second) Drop(&weights_.at(key));
}

}  // namespace fusion::graph_turbo
