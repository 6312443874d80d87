#include "compiler/plan/planners/power_fusion/templates.h"

#include <gtest/gtest.h>

#include "compiler/plan/planners/power_fusion/testing/operators.h"

namespace fusion::power_fusion {
namespace {

constexpr char kColumnSums[] = R"(graph g(%x: f32[64, 16]) {
  %axis: i64[1] = const {0}
  %e: f32[64, 16] = Exp(%x)
  %s: f32[1, 16] = ReduceSum(%e, %axis)
  return %s
})";

TEST(Templates, ShareOutLeadingAxesAndColumns) {
  const Operators graph(kColumnSums);
  std::vector<int64_t> units;
  for (const Template& one : TemplatesOf(graph.Of("e"), graph.device)) units.push_back(one.units);
  EXPECT_EQ(units, (std::vector<int64_t>{1, 64, 1024, 16}));
}

TEST(Templates, AReductionTooSmallForTheDeviceIsSharedByUnits) {
  DeviceModel many = TypicalCore();
  many.parallel_units = 128;
  const Operators graph(kColumnSums, many);
  bool shared = false;
  for (const Template& one : TemplatesOf(graph.Of("s"), graph.device)) {
    shared |= one.chunks > 1;
    EXPECT_EQ(64 % one.chunks, 0) << "chunks are equal";
  }
  EXPECT_TRUE(shared);
  for (const Template& one : TemplatesOf(graph.Of("s"), TypicalCore())) EXPECT_EQ(one.chunks, 1);
}

TEST(Templates, BoxesFollowFromTheIndexMaps) {
  const Operators graph(kColumnSums);
  const BasicOperator& sum = graph.Of("s");
  Template columns;
  columns.first = 0, columns.last = 2, columns.units = 16;
  const te::Box results = ResultBox(sum, columns, 16);
  const te::Box operand = OperandBox(sum, sum.operands[0], results);
  EXPECT_EQ(ToString(PatternOf(operand, {64, 16})), "64 x 1 / 16");
  // A template of one unit in a graph of more: every unit makes everything.
  const te::Box whole = ResultBox(sum, TemplatesOf(sum, graph.device)[0], 16);
  EXPECT_EQ(whole[1].length, 16);
}

TEST(MergeGirs, PutsASynchronisationBetweenWritingAndReading) {
  const Operators graph(kColumnSums);
  std::vector<ChosenTemplate> chosen;
  for (const char* name : {"e", "s"}) {
    const BasicOperator& op = graph.Of(name);
    for (const Template& one : TemplatesOf(op, graph.device)) {
      if (one.units != 16 || !(chosen.empty() || chosen.back().op != &op)) continue;
      chosen.push_back({&op, one});
    }
  }
  ASSERT_EQ(chosen.size(), 2u);
  const Gir gir = MergeGirs(graph.graph, chosen, 16, graph.results);
  EXPECT_EQ(Print(graph.graph, gir), R"(parallel 16 {
  move %x@DRAM[64 x 1 / 16] -> %x@registers[64 x 1 / 16]
  elementwise %x@registers[64 x 1 / 16] -> %e@registers[64 x 1 / 16]
  move %e@registers[64 x 1 / 16] -> %e@DRAM[64 x 1 / 16]
  sync device %e@DRAM[64 x 1 / 16] -> %e@DRAM[64 x 1 / 16]
  move %e@DRAM[64 x 1 / 16] -> %e@registers[64 x 1 / 16]
  reduce along num %e@registers[64 x 1 / 16] -> %s@registers[1 x 1 / 0]
  move %s@registers[1 x 1 / 0] -> %s@DRAM[1 x 1 / 0]
}
)");
}

}  // namespace
}  // namespace fusion::power_fusion
