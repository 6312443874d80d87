#include "compiler/plan/planners/fusion_stitching/beam_search.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// A buffer set: a plan as far as it is made.
struct Buffer {
  double score = 0;
  std::vector<Pattern> patterns;
  std::vector<int> pattern_of;  // by vertex; -1: a kernel of its own
  int last = 0;                 // the last vertex of all patterns
};

bool Overlaps(const Buffer& buffer, const Pattern& pattern) {
  return std::any_of(pattern.begin(), pattern.end(), [&](int v) { return buffer.pattern_of[v] >= 0; });
}

// Would the pattern, which is convex by itself, close a cycle with those of the buffer?
class CycleFinder {
 public:
  explicit CycleFinder(const KernelGraph& graph) : graph_(graph), marked_(graph.size(), 0) {}

  bool ClosesCycle(const Buffer& buffer, const Pattern& pattern) {
    ++question_;
    const auto inside = [&](int v) { return std::binary_search(pattern.begin(), pattern.end(), v); };
    std::vector<int> open;
    // Vertices behind all patterns lead to later ones only.
    const int last = std::max(pattern.back(), buffer.last);
    const auto reach = [&](int v) {
      if (marked_[v] == question_) return;
      const int other = buffer.pattern_of[v];
      if (other < 0) {
        if (v > last) return;
        marked_[v] = question_;
        open.push_back(v);
        return;
      }
      for (int member : buffer.patterns[other]) {
        if (marked_[member] == question_) continue;
        marked_[member] = question_;
        open.push_back(member);
      }
    };
    for (int v : pattern) {
      for (int consumer : graph_[v].consumers) {
        if (!inside(consumer)) reach(consumer);
      }
    }
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      for (int consumer : graph_[v].consumers) {
        if (inside(consumer)) return true;
        reach(consumer);
      }
    }
    return false;
  }

 private:
  const KernelGraph& graph_;
  std::vector<int> marked_;
  int question_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<Pattern>>> SearchPlans(const KernelGraph& graph,
                                                              const std::vector<std::vector<ScoredPattern>>& candidates,
                                                              const std::function<bool()>& cancelled) {
  CycleFinder finder(graph);
  std::vector<Buffer> buffers(1);
  buffers[0].pattern_of.assign(graph.size(), -1);
  // Two ways to the same set of patterns do not occur: a pattern is offered once, with its first vertex.
  for (int v = 0; v < graph.size(); ++v) {
    if (cancelled && cancelled()) return absl::CancelledError("planning was cancelled");
    if (candidates[v].empty()) continue;
    struct Step {
      double score;
      size_t buffer;
      const ScoredPattern* added;  // null: none
    };
    std::vector<Step> steps;
    for (size_t b = 0; b < buffers.size(); ++b) {
      steps.push_back({buffers[b].score, b, nullptr});
      for (const ScoredPattern& pattern : candidates[v]) {
        if (Overlaps(buffers[b], pattern.vertices) || finder.ClosesCycle(buffers[b], pattern.vertices)) continue;
        steps.push_back({buffers[b].score + pattern.score, b, &pattern});
      }
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.score > b.score; });
    if (steps.size() > kBeamWidth) steps.resize(kBeamWidth);
    std::vector<Buffer> next;
    for (size_t s = 0; s < steps.size(); ++s) {
      const bool last_use = std::none_of(steps.begin() + static_cast<std::ptrdiff_t>(s) + 1, steps.end(),
                                         [&](const Step& later) { return later.buffer == steps[s].buffer; });
      Buffer& from = buffers[steps[s].buffer];
      next.push_back(last_use ? std::move(from) : from);
      if (steps[s].added == nullptr) continue;
      Buffer& buffer = next.back();
      buffer.score = steps[s].score;
      for (int member : steps[s].added->vertices) buffer.pattern_of[member] = static_cast<int>(buffer.patterns.size());
      buffer.patterns.push_back(steps[s].added->vertices);
      buffer.last = std::max(buffer.last, buffer.patterns.back().back());
    }
    buffers = std::move(next);
  }
  std::vector<std::vector<Pattern>> plans;
  for (Buffer& buffer : buffers) plans.push_back(std::move(buffer.patterns));
  return plans;
}

}  // namespace fusion
