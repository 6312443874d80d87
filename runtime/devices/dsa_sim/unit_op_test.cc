#include "runtime/devices/dsa_sim/unit_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace fusion::dsa {
namespace {

// A state with three registers of each kind, of which the first two lanes hold values.
UnitState StateWith(std::vector<std::vector<double>> doubles, std::vector<std::vector<int64_t>> integers) {
  UnitState state;
  state.doubles.assign(4 * kUnitLanes, 0);
  state.integers.assign(4 * kUnitLanes, 0);
  for (size_t r = 0; r < doubles.size(); ++r)
    std::copy(doubles[r].begin(), doubles[r].end(), state.D(static_cast<int>(r)));
  for (size_t r = 0; r < integers.size(); ++r) {
    std::copy(integers[r].begin(), integers[r].end(), state.I(static_cast<int>(r)));
  }
  return state;
}

void Apply(const char* name, UnitInstruction instruction, UnitState* state) {
  const UnitOp* op = FindUnitOp(name);
  ASSERT_NE(op, nullptr) << name;
  instruction.op = op;
  op->run(*state, instruction, 2);
}

TEST(UnitOp, NamesAreDistinct) {
  const std::vector<std::string> names = UnitOpNames();
  EXPECT_GT(names.size(), 100u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(FindUnitOp("add"), nullptr) << "the type is part of the name";
}

TEST(UnitOp, FloatsFollowIeeeAndMaximaKeepNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  UnitState state = StateWith({{1.5, nan}, {-2, 1}}, {});
  Apply("max.f", {.dst = 2, .a = 0, .b = 1}, &state);
  EXPECT_EQ(state.D(2)[0], 1.5);
  EXPECT_TRUE(std::isnan(state.D(2)[1]));
  Apply("lt.f", {.dst = 1, .a = 1, .b = 0}, &state);
  EXPECT_EQ(state.I(1)[0], 1);
  EXPECT_EQ(state.I(1)[1], 0) << "no comparison with NaN holds";
}

TEST(UnitOp, IntegersWrapAndDivideByZero) {
  UnitState state = StateWith({}, {{0, 0}, {std::numeric_limits<int64_t>::min(), 7}, {-1, 0}});
  Apply("div.i", {.dst = 3, .a = 1, .b = 2}, &state);
  EXPECT_EQ(state.I(3)[0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(state.I(3)[1], 0);
  Apply("wrap_i8", {.dst = 3, .a = 2}, &state);
  EXPECT_EQ(state.I(3)[0], -1);
  state.I(1)[0] = 300;
  Apply("wrap_u8", {.dst = 3, .a = 1}, &state);
  EXPECT_EQ(state.I(3)[0], 44);
  Apply("shl.i", {.dst = 3, .a = 1, .b = 1, .imm = 32}, &state);
  EXPECT_EQ(state.I(3)[0], 0) << "a shift by more than the width";
}

TEST(UnitOp, AConversionRoundsTowardsZeroAndSaturates) {
  UnitState state = StateWith({{-1.75, 1e30}}, {});
  Apply("to_int", {.dst = 1, .a = 0}, &state);
  EXPECT_EQ(state.I(1)[0], -1);
  EXPECT_EQ(state.I(1)[1], std::numeric_limits<int64_t>::max());
  Apply("round_f16", {.dst = 1, .a = 0}, &state);
  EXPECT_EQ(state.D(1)[0], -1.75);
  EXPECT_TRUE(std::isinf(state.D(1)[1]));
}

TEST(UnitOp, AFloorOfNegativeNumbers) {
  UnitState state = StateWith({}, {{0, 0}, {-7, 7}});
  Apply("floor_div", {.dst = 2, .a = 1, .imm = 4}, &state);
  Apply("floor_mod", {.dst = 3, .a = 1, .imm = 4}, &state);
  EXPECT_EQ(state.I(2)[0], -2);
  EXPECT_EQ(state.I(3)[0], 1);
  EXPECT_EQ(state.I(2)[1], 1);
  EXPECT_EQ(state.I(3)[1], 3);
}

TEST(UnitOp, ALoadOutsideOfItsTensorFails) {
  const std::vector<float> values = {1, 2, 3};
  UnitState state = StateWith({}, {{0, 0}, {0, 2}, {1, 0}});
  state.arrays = {{values.data(), 3}};
  Apply("load.f", {.dst = 0, .a = 1, .imm = 0, .tensor = 0}, &state);
  EXPECT_EQ(state.failed, nullptr);
  EXPECT_EQ(state.D(0)[1], 3);
  // The second lane is masked out, so that its address does not matter.
  Apply("load_masked.f", {.dst = 0, .a = 1, .c = 2, .imm = 1, .fimm = -5, .tensor = 0}, &state);
  EXPECT_EQ(state.failed, nullptr);
  EXPECT_EQ(state.D(0)[0], 2);
  EXPECT_EQ(state.D(0)[1], -5);
  Apply("load.f", {.dst = 0, .a = 1, .imm = 1, .tensor = 0}, &state);
  ASSERT_NE(state.failed, nullptr);
  EXPECT_EQ(state.failed_value, 3);
}

TEST(UnitOp, LoadsOfEachFormAgree) {
  std::vector<float> values(600);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  constexpr int kLanes = 200;
  const std::vector<std::function<int64_t(int)>> addresses = {[](int l) { return l; }, [](int) { return 7; },
                                                              [](int l) { return 2 * l; },
                                                              [](int l) { return l == 199 ? 0 : l; }};
  for (const auto& address : addresses) {
    for (const bool masked : {false, true}) {
      UnitState state = StateWith({}, {{}, {}, {40}});
      for (int l = 0; l < kLanes; ++l) {
        state.I(1)[l] = address(l);
        state.I(3)[l] = l % 3 != 0;
      }
      state.arrays = {{values.data(), 600}};
      UnitInstruction load{.dst = 0, .a = 1, .b = 2, .c = 3, .imm = 10, .fimm = -5, .tensor = 0};
      load.op = FindUnitOp(masked ? "load_masked.f" : "load.f");
      load.op->run(state, load, kLanes);
      ASSERT_EQ(state.failed, nullptr);
      for (int l = 0; l < kLanes; ++l) {
        ASSERT_EQ(state.D(0)[l], masked && l % 3 == 0 ? -5 : static_cast<double>(address(l) + 50)) << l;
      }
    }
  }
}

TEST(UnitOp, WhatIsKnownOfARegisterEndsWhenItIsWritten) {
  UnitState state = StateWith({}, {{}, {0, 1}});
  EXPECT_EQ(state.FactsOf(1, 2).form, UnitState::LaneFacts::kConsecutive);
  state.I(1)[1] = 0;
  state.Forget(1);
  EXPECT_EQ(state.FactsOf(1, 2).form, UnitState::LaneFacts::kEqual);
  EXPECT_EQ(state.FactsOf(1, 3).lanes, 3) << "more lanes than were looked at";
  state.I(1)[0] = std::numeric_limits<int64_t>::min();
  state.Forget(1);
  // The least address is so far away that a sum with it would wrap.
  const std::vector<float> values = {1, 2, 3};
  state.arrays = {{values.data(), 3}};
  Apply("load.f", {.dst = 0, .a = 1, .imm = -1, .tensor = 0}, &state);
  EXPECT_NE(state.failed, nullptr);
}

}  // namespace
}  // namespace fusion::dsa
