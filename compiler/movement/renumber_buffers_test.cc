#include "compiler/movement/renumber_buffers.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "compiler/movement/testing/look_kernel.h"

namespace fusion::movement {
namespace {

// Every buffer that a step names, in values, indices, limits, looks and hints, is renamed.
TEST(RenumberBuffers, WhereverAStepNamesOne) {
  Kernel kernel = testing::LookingSums();
  std::vector<int> number;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) number.push_back(static_cast<int>(b) + 10);
  const te::Axis row{70, 4};
  for (Phase& phase : kernel.phases) {
    VisitSteps(&phase, [&](Step* step) {
      std::set<int> before, after, expected;
      step->stores[0].address = te::Index::Load(0, {te::Index(row)}, {0, 3});
      step->loops.push_back({row, te::Index::Load(1, {te::Index(0)}, {0, 4})});
      step->lane_limit = Bound{te::Index::Load(0, {te::Index(row)}, {0, 3}), 2};
      VisitBuffers(*step, [&](int b) { before.insert(b); });
      RenumberBuffers(number, step);
      VisitBuffers(*step, [&](int b) { after.insert(b); });
      for (const int b : before) expected.insert(number[static_cast<size_t>(b)]);
      EXPECT_EQ(after, expected);
    });
  }
}

TEST(RenumberBuffers, HintsRoutinesAndRings) {
  Step step;
  step.strategy = RegisterTile{.prefetch = {{.buffer = 1}}, .store_limit = Bound{te::Index::Load(2, {0}, {0, 4}), 4}};
  step.turn = Turn{{0, 4}, 0, {{0, 0, 1}}, {{2, 0, 1}}};
  step.look = Look{1, 0};
  RenumberBuffers({5, 6, 7}, &step);
  EXPECT_EQ(step.As<RegisterTile>()->prefetch[0].buffer, 6);
  EXPECT_EQ(step.As<RegisterTile>()->store_limit->index, te::Index::Load(7, {0}, {0, 4}));
  EXPECT_EQ(step.turn->reads[0].buffer, 5);
  EXPECT_EQ(step.turn->writes[0].buffer, 7);
  EXPECT_EQ(step.look->buffer, 6);
  step.strategy = RoutineCall{"sort", DType::kF32, {2}, {}};
  RenumberBuffers({0, 1, 9, 3, 4, 5, 6, 7}, &step);
  EXPECT_EQ(step.As<RoutineCall>()->inputs, std::vector<int>({9}));
  step.strategy = VectorMap{1, false, false, {0, 1, {3}}};
  step.turn->reads[0].buffer = step.turn->writes[0].buffer = step.look->buffer = 0;
  RenumberBuffers({0, 1, 2, 8}, &step);
  EXPECT_EQ(step.As<VectorMap>()->read_next.buffers, std::vector<int>({8}));
}

}  // namespace
}  // namespace fusion::movement
