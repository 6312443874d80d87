// A genetic search over the choices of one kernel's schedule (DNNFusion §4.4.1: "arbitrary number of chromosomes" to
// start from, each a set of schedule parameters). The search proposes and the caller measures. Equal seeds and equal
// answers give equal proposals, so an interrupted search continues where it stopped once its answers are in the
// database.
#ifndef FUSION_COMPILER_TUNE_SEARCH_H_
#define FUSION_COMPILER_TUNE_SEARCH_H_

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/schedule/choices.h"

namespace fusion::tune {

class Search {
 public:
  // The distinct elements of `start` are proposed first.
  Search(uint64_t seed, std::vector<Choices> start);

  // Returns at most `count` schedules whose latency nobody has told yet. Returns fewer when the known space is
  // exhausted.
  std::vector<Choices> Propose(int count);

  // Tells the latency of a schedule; `points` are all choices that it met and what it took. Infinity means that it
  // crashes.
  void Tell(absl::Span<const ChoicePoint> points, double latency_ns);
  // The same for a schedule of which only the choices are remembered.
  void Tell(const Choices& choices, double latency_ns);

  struct Told {
    Choices choices;
    double latency_ns = 0;
  };
  // Best first; equal times in the order they were told.
  const std::vector<Told>& told() const { return told_; }

 private:
  Choices Mutate(Choices choices);
  Choices Cross(const Choices& a, const Choices& b);
  const Choices& Parent();

  std::mt19937_64 random_;
  std::vector<Choices> start_;                      // not proposed yet, last first
  std::map<std::string, int, std::less<>> counts_;  // alternatives of each choice met so far
  std::set<std::string> seen_;                      // proposed or told, as PrintChoices
  std::vector<Told> told_;
};

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_SEARCH_H_
