#include "compiler/tune/search.h"

#include <algorithm>

namespace fusion::tune {
namespace {

constexpr size_t kParents = 8;    // the best schedules, from which new ones are made
constexpr double kCrossed = 0.5;  // share of the new schedules that have two parents
constexpr int kTries = 32;        // attempts for each schedule wanted to find one that was not proposed before

}  // namespace

Search::Search(uint64_t seed, std::vector<Choices> start) : random_(seed), start_(std::move(start)) {
  std::reverse(start_.begin(), start_.end());
}

// Prefers better schedules: takes the better of two random ones.
const Choices& Search::Parent() {
  const size_t most = std::min(told_.size(), kParents);
  const size_t first = random_() % most, second = random_() % most;
  return told_[std::min(first, second)].choices;
}

// Changes one choice, then another with a chance of a half each time. Neighbouring alternatives are often alike, so
// every second change moves by one step only.
Choices Search::Mutate(Choices choices) {
  do {
    auto gene = counts_.begin();
    std::advance(gene, static_cast<std::ptrdiff_t>(random_() % counts_.size()));
    int& taken = choices[gene->first];
    if (random_() % 2 == 0) {
      taken = static_cast<int>(random_() % static_cast<uint64_t>(gene->second));
    } else {
      taken = std::clamp(taken + (random_() % 2 == 0 ? 1 : -1), 0, gene->second - 1);
    }
  } while (random_() % 2 == 0);
  return choices;
}

Choices Search::Cross(const Choices& a, const Choices& b) {
  Choices child;
  for (const auto& [name, count] : counts_) {
    const Choices& from = random_() % 2 == 0 ? a : b;
    if (const auto it = from.find(name); it != from.end()) child[name] = it->second;
  }
  return child;
}

std::vector<Choices> Search::Propose(int count) {
  std::vector<Choices> proposals;
  const auto add = [&](Choices choices) {
    if (seen_.insert(PrintChoices(choices)).second) proposals.push_back(std::move(choices));
  };
  while (!start_.empty() && static_cast<int>(proposals.size()) < count) {
    Choices next = std::move(start_.back());
    start_.pop_back();
    add(std::move(next));
  }
  if (told_.empty() || counts_.empty()) return proposals;
  for (int tries = 0; static_cast<int>(proposals.size()) < count && tries < kTries * count; ++tries) {
    const bool cross = told_.size() > 1 && static_cast<double>(random_() >> 11) * 0x1p-53 < kCrossed;
    const Choices& first = Parent();
    add(cross ? Mutate(Cross(first, Parent())) : Mutate(first));
  }
  return proposals;
}

void Search::Tell(absl::Span<const ChoicePoint> points, double latency_ns) {
  Choices taken;
  for (const ChoicePoint& point : points) {
    counts_[point.name] = std::max(counts_[point.name], point.count);
    if (point.taken != 0) taken[point.name] = point.taken;
  }
  Tell(taken, latency_ns);
}

void Search::Tell(const Choices& choices, double latency_ns) {
  seen_.insert(PrintChoices(choices));
  const auto place = std::upper_bound(told_.begin(), told_.end(), latency_ns,
                                      [](double ns, const Told& told) { return ns < told.latency_ns; });
  told_.insert(place, {choices, latency_ns});
}

}  // namespace fusion::tune
