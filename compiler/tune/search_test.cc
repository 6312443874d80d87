#include "compiler/tune/search.h"

#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::tune {
namespace {

using ::testing::SizeIs;

// A made-up kernel. The tile matters most. The unroll is a choice that exists only with tile 7.
struct Made {
  std::vector<ChoicePoint> points;
  double latency_ns;
};
Made Evaluate(const Choices& choices) {
  ChoiceLog log(choices);
  const int tile = log.Pick("tile", 12), order = log.Pick("order", 4);
  const int unroll = tile == 7 ? log.Pick("unroll", 4) : 0;
  return {log.met(), 100.0 + 3 * std::abs(tile - 7) + 5 * std::abs(order - 2) - 8 * unroll};
}

std::string TextOf(const Made& made) {
  std::string text;
  for (const ChoicePoint& point : made.points) absl::StrAppend(&text, point.taken, " ");
  return text;
}

// The best latency after `trials` different schedules. A choice that the kernel does not meet makes no new schedule.
double BestOf(uint64_t seed, size_t trials, std::vector<Choices> start, std::vector<std::string>* proposed = nullptr) {
  Search search(seed, std::move(start));
  std::set<std::string> tried;
  while (tried.size() < trials) {
    for (const Choices& choices : search.Propose(4)) {
      if (proposed != nullptr) proposed->push_back(PrintChoices(choices));
      const Made made = Evaluate(choices);
      if (tried.insert(TextOf(made)).second) search.Tell(made.points, made.latency_ns);
    }
  }
  return search.told().front().latency_ns;
}

TEST(Search, FindsTheBestOfADependentSpace) {
  int found = 0, found_blindly = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    found += BestOf(seed, 30, {{}}) == 76 ? 1 : 0;
    std::mt19937_64 random(seed);
    std::set<std::string> tried;
    bool best = false;
    while (tried.size() < 30) {
      const Made made = Evaluate({{"tile", static_cast<int>(random() % 12)},
                                  {"order", static_cast<int>(random() % 4)},
                                  {"unroll", static_cast<int>(random() % 4)}});
      tried.insert(TextOf(made));
      best = best || made.latency_ns == 76;
    }
    found_blindly += best ? 1 : 0;
  }
  EXPECT_GE(2 * found, 3 * found_blindly) << found_blindly;
}

TEST(Search, EqualSeedsProposeTheSame) {
  std::vector<std::string> once, again, other;
  BestOf(3, 20, {{}}, &once);
  BestOf(3, 20, {{}}, &again);
  BestOf(4, 20, {{}}, &other);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
}

TEST(Search, StartsFromWhatItIsGiven) {
  std::vector<std::string> proposed;
  EXPECT_EQ(BestOf(1, 2, {{}, {{"tile", 7}, {"order", 2}, {"unroll", 3}}}, &proposed), 76);
  EXPECT_EQ(proposed[1], "order=2 tile=7 unroll=3");
}

TEST(Search, ProposesNothingTwiceAndEndsWhenAllIsKnown) {
  Search search(1, {{}});
  std::set<std::string> seen;
  size_t total = 0;
  for (int r = 0; r < 50; ++r) {
    for (const Choices& choices : search.Propose(4)) {
      EXPECT_TRUE(seen.insert(PrintChoices(choices)).second);
      ++total;
      ChoiceLog log(choices);
      log.Pick("a", 2);
      log.Pick("b", 3);
      search.Tell(log.met(), 1);
    }
  }
  EXPECT_EQ(total, 6u);
  EXPECT_THAT(search.Propose(4), SizeIs(0));
}

TEST(Search, WithoutChoicesThereIsNothingToPropose) {
  Search search(1, {{}});
  EXPECT_THAT(search.Propose(4), SizeIs(1));
  search.Tell(Choices(), 5);
  EXPECT_THAT(search.Propose(4), SizeIs(0));
}

TEST(Search, SchedulesThatFailHaveNoOffspringBeforeOthers) {
  Search search(1, {{}, {{"tile", 1}}});
  for (const Choices& choices : search.Propose(2)) {
    ChoiceLog log(choices);
    const int tile = log.Pick("tile", 2);
    search.Tell(log.met(), tile == 1 ? INFINITY : 1);
  }
  EXPECT_EQ(PrintChoices(search.told().front().choices), "");
}

}  // namespace
}  // namespace fusion::tune
