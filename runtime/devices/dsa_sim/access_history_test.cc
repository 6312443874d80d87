#include "runtime/devices/dsa_sim/access_history.h"

#include <gtest/gtest.h>

#include <utility>

namespace fusion::dsa {
namespace {

using State = AccessStates::State;
using Stretches = std::vector<std::pair<State, int64_t>>;

// Gives [begin, end) the state `to`, and returns the stretches that were there, with their first bytes.
Stretches Set(AccessHistory* history, int64_t begin, int64_t end, State to) {
  Stretches before;
  EXPECT_TRUE(history->Update(begin, end, [&](State state, int64_t byte) {
    before.emplace_back(state, byte);
    return int64_t{to};
  }));
  return before;
}

TEST(AccessHistory, AStretchOfOneStateIsVisitedOnce) {
  AccessHistory history(1 << 20, 4);
  EXPECT_EQ(Set(&history, 8, 24, 5), (Stretches{{0, 8}}));
  EXPECT_EQ(Set(&history, 0, 32, 6), (Stretches{{0, 0}, {5, 8}, {0, 24}}));
  // Pages are 4096 bytes here. One that is given a state as a whole is one stretch again.
  EXPECT_EQ(Set(&history, 0, 12288, 7), (Stretches{{6, 0}, {0, 32}, {0, 4096}, {0, 8192}}));
  EXPECT_EQ(Set(&history, 4, 12284, 8), (Stretches{{7, 4}, {7, 4096}, {7, 8192}}));
  EXPECT_EQ(Set(&history, 0, 12288, 9), (Stretches{{7, 0}, {8, 4}, {8, 4096}, {8, 8192}, {7, 12284}}));
  EXPECT_EQ(Set(&history, (1 << 20) - 4, 1 << 20, 3), (Stretches{{0, (1 << 20) - 4}}));
}

TEST(AccessHistory, AVisitEndsAtANegativeNumber) {
  AccessHistory history(4096, 2);
  Set(&history, 0, 10, 5);
  int visits = 0;
  EXPECT_FALSE(history.Update(8, 20, [&](State state, int64_t) { return ++visits, state == 0 ? int64_t{-1} : 6; }));
  EXPECT_EQ(visits, 2);
  EXPECT_EQ(history.FirstUnwritten(0, 20), 10);
  EXPECT_EQ(history.FirstUnwritten(2, 10), 10);
  EXPECT_EQ(history.FirstUnwritten(12, 20), 12);
}

TEST(AccessStates, ForgetsWhatNobodyHas) {
  AccessStates states;
  const State a = states.Add(3, {}), b = states.Add(4, std::vector<int>{7, 9}), c = states.Add(5, std::vector<int>{8});
  states.SetNote(11, b, c);
  EXPECT_EQ(states.Note(11, b), c);
  EXPECT_EQ(states.Note(12, b), -1);
  AccessHistory history(8192, 4);
  Set(&history, 0, 4096, b);
  Set(&history, 4096, 4100, AccessStates::kInput);
  std::vector<bool> marked(states.size(), false);
  history.Mark(&marked);
  EXPECT_EQ(marked, (std::vector<bool>{true, true, false, true, false}));
  const std::vector<State> numbers = states.Keep(marked);
  history.Renumber(numbers);
  EXPECT_EQ(states.size(), 3U);
  EXPECT_EQ(Set(&history, 4092, 4104, 0), (Stretches{{numbers[b], 4092}, {1, 4096}, {0, 4100}}));
  EXPECT_EQ(states.writer(numbers[b]), 4);
  EXPECT_EQ(std::vector<int>(states.readers(numbers[b]).begin(), states.readers(numbers[b]).end()),
            (std::vector<int>{7, 9}));
  EXPECT_EQ(states.Note(11, numbers[b]), -1);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace fusion::dsa
