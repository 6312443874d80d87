#include "compiler/plan/planners/graph_turbo/access_map.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"
#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion::graph_turbo {
namespace {

// Is row-major element `e` of a tensor in the region?
bool Contains(const Region& region, const Shape& shape, int64_t e) {
  if (region.nothing) return false;
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t at = e % shape[d];
    e /= shape[d];
    if (at < region.ranges[d].begin || at >= region.ranges[d].end) return false;
  }
  return true;
}

Region RegionOf(const std::vector<Range>& ranges) { return {false, {ranges.begin(), ranges.end()}}; }

AccessMap MapOf(const std::string& text) { return OpGraphFromText(text).ops.at(0).access; }

TEST(AccessMap, AConvolutionNeedsItsHalo) {
  const AccessMap map = MapOf(R"(graph g(%x: f32[2, 3, 8, 8], %w: f32[4, 3, 3, 3]) {
    %y: f32[2, 4, 8, 8] = Conv(%x, %w) {pads = ints[1, 1, 1, 1]}
    return %y
  })");
  const auto needs = map.Required({RegionOf({{1, 2}, {0, 4}, {2, 4}, {0, 8}})});
  EXPECT_EQ(needs.inputs[0], RegionOf({{1, 2}, {0, 3}, {1, 5}, {0, 8}}));
  // The first rows have no halo above.
  EXPECT_EQ(map.Required({RegionOf({{0, 1}, {0, 4}, {0, 2}, {0, 8}})}).inputs[0],
            RegionOf({{0, 1}, {0, 3}, {0, 3}, {0, 8}}));
  // A quarter of the rows of one of two images.
  EXPECT_EQ(needs.work * 8, map.Required({WholeRegion({2, 4, 8, 8})}).work);
}

TEST(AccessMap, AStridedConvolutionNeedsTwiceTheRows) {
  const AccessMap map = MapOf(R"(graph g(%x: f32[1, 3, 8, 8], %w: f32[4, 3, 1, 1]) {
    %y: f32[1, 4, 4, 4] = Conv(%x, %w) {strides = ints[2, 2]}
    return %y
  })");
  EXPECT_EQ(map.Required({RegionOf({{0, 1}, {0, 4}, {1, 3}, {0, 4}})}).inputs[0],
            RegionOf({{0, 1}, {0, 3}, {2, 5}, {0, 7}}));
}

TEST(AccessMap, ABranchThatTheBoxRulesOutReadsNothing) {
  const AccessMap map = MapOf(R"(graph g(%x: f32[2, 3], %y: f32[2, 5]) {
    %z: f32[2, 8] = Concat(%x, %y) {axis = 1}
    return %z
  })");
  const auto left = map.Required({RegionOf({{0, 2}, {1, 3}})});
  EXPECT_EQ(left.inputs[0], RegionOf({{0, 2}, {1, 3}}));
  EXPECT_TRUE(left.inputs[1].nothing);
  const auto both = map.Required({RegionOf({{0, 1}, {2, 4}})});
  EXPECT_EQ(both.inputs[0], RegionOf({{0, 1}, {2, 3}}));
  EXPECT_EQ(both.inputs[1], RegionOf({{0, 1}, {0, 1}}));
}

TEST(AccessMap, ASoftmaxNeedsItsRows) {
  const AccessMap map = MapOf(R"(graph g(%x: f32[4, 6, 8]) {
    %y: f32[4, 6, 8] = Softmax(%x) {axis = -1}
    return %y
  })");
  EXPECT_EQ(map.Required({RegionOf({{1, 2}, {2, 4}, {0, 1}})}).inputs[0], RegionOf({{1, 2}, {2, 4}, {0, 8}}));
}

TEST(AccessMap, AReshapeOfWholeRowsIsExact) {
  const AccessMap map = MapOf(R"(graph g(%x: f32[4, 6, 8]) {
    %s: i64[2] = const {24, 8}
    %y: f32[24, 8] = Reshape(%x, %s)
    return %y
  })");
  EXPECT_EQ(map.Required({RegionOf({{6, 12}, {0, 8}})}).inputs[0], RegionOf({{1, 2}, {0, 6}, {0, 8}}));
}

// RequiredBox answers the same questions through the normal form of indices; the two must agree. Programs of one
// expression, so that RequiredBox alone answers.
TEST(AccessMap, AgreesWithRequiredBox) {
  const char* const texts[] = {
      R"(graph g(%x: f32[2, 3, 9, 10], %w: f32[4, 3, 3, 2]) {
        %y: f32[2, 4, 5, 10] = Conv(%x, %w) {pads = ints[1, 1, 1, 0], strides = ints[2, 1]}
        return %y
      })",
      R"(graph g(%x: f32[4, 6, 8]) {
        %y: f32[8, 4, 6] = Transpose(%x) {perm = ints[2, 0, 1]}
        return %y
      })",
      R"(graph g(%x: f32[4, 6, 8]) {
        %s: i64[2] = const {8, 24}
        %y: f32[8, 24] = Reshape(%x, %s)
        return %y
      })",
      R"(graph g(%x: f32[3, 5, 7], %z: f32[7, 6]) {
        %y: f32[3, 5, 6] = MatMul(%x, %z)
        return %y
      })",
      R"(graph g(%x: f32[2, 3], %z: f32[2, 5]) {
        %y: f32[2, 8] = Concat(%x, %z) {axis = 1}
        return %y
      })",
      R"(graph g(%x: f32[4, 6], %z: f32[6]) {
        %y: f32[4, 6] = Add(%x, %z)
        return %y
      })",
  };
  std::mt19937 random(3);
  int compared = 0;
  for (const char* text : texts) {
    const AccessMap map = MapOf(text);
    const te::Program& program = map.program();
    ASSERT_EQ(program.tes.size(), 1) << text;
    const te::Te& te = program.tes[0];
    std::vector<Region> reused(program.tensors.size());  // holds the last trial's
    for (int trial = 0; trial < 200; ++trial) {
      Region region;
      region.nothing = false;
      te::Box box;
      for (const te::Axis& axis : te.axes) {
        const int64_t begin = static_cast<int64_t>(random() % axis.extent);
        const int64_t end = begin + 1 + static_cast<int64_t>(random() % (axis.extent - begin));
        region.ranges.push_back({begin, end});
        box.push_back({te::Index(begin), end - begin});
      }
      const auto needs = map.Required({region});
      ASSERT_EQ(map.RequiredTensors({region}), needs.tensors) << text;
      map.RequiredTensors({region}, {}, absl::MakeSpan(reused));
      ASSERT_EQ(reused, needs.tensors) << text;
      for (size_t i = 0; i < program.inputs.size(); ++i) {
        const auto expected = te::RequiredBox(te, box, program.inputs[i], program.tensors[program.inputs[i]].shape);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        int64_t elements = 1;
        for (const te::Span& span : *expected) elements *= span.length;
        ASSERT_EQ(needs.inputs[i].nothing, elements == 0) << text;
        if (elements == 0) continue;
        for (size_t d = 0; d < expected->size(); ++d) {
          // RequiredBox rounds // and % out to whole multiples, so its box may be the larger one.
          EXPECT_GE(needs.inputs[i].ranges[d].begin, (*expected)[d].origin.constant()) << text;
          EXPECT_LE(needs.inputs[i].ranges[d].end, (*expected)[d].origin.constant() + (*expected)[d].length) << text;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 2000);
}

// No needed element may be left out: with NaN everywhere outside the boxes, the results of the region are the same.
TEST(AccessMap, ResultsDependOnNothingOutside) {
  const char* const texts[] = {
      R"(graph g(%x: f32[2, 3, 9, 10], %w: f32[4, 3, 3, 2]) {
        %y: f32[2, 4, 5, 10] = Conv(%x, %w) {pads = ints[1, 1, 1, 0], strides = ints[2, 1]}
        return %y
      })",
      R"(graph g(%x: f32[2, 3, 9, 8]) {
        %y: f32[2, 3, 5, 4] = MaxPool(%x) {kernel_shape = ints[3, 2], pads = ints[1, 0, 1, 0], strides = ints[2, 2]}
        return %y
      })",
      R"(graph g(%x: f32[4, 6, 8]) {
        %s: i64[3] = const {8, 4, 6}
        %y: f32[8, 4, 6] = Reshape(%x, %s)
        return %y
      })",
      R"(graph g(%x: f32[4, 6, 8]) {
        %y: f32[4, 6, 8] = Softmax(%x) {axis = -1}
        return %y
      })",
      R"(graph g(%x: f32[2, 3], %z: f32[2, 5], %v: f32[2, 1]) {
        %y: f32[2, 9] = Concat(%x, %z, %v) {axis = 1}
        return %y
      })",
      R"(graph g(%x: f32[3, 5, 7], %z: f32[7, 6]) {
        %y: f32[3, 5, 6] = MatMul(%x, %z)
        return %y
      })",
      R"(graph g(%x: f32[4, 6, 8]) {
        %y: f32[8, 4, 6] = Transpose(%x) {perm = ints[2, 0, 1]}
        return %y
      })",
  };
  std::mt19937 random(11);
  int64_t compared = 0, poisoned = 0;
  for (const char* text : texts) {
    const AccessMap map = MapOf(text);
    const te::Program& program = map.program();
    std::vector<fusion::Tensor> inputs;
    for (const te::TensorId id : program.inputs) {
      // A reshape's extents are an operand, too, and the program does not read them.
      fusion::Tensor tensor(program.tensors[id].dtype, program.tensors[id].shape);
      for (int64_t i = 0; tensor.dtype() == DType::kF32 && i < tensor.num_elements(); ++i) {
        tensor.SetDouble(i, static_cast<double>(random() % 64) - 32);
      }
      inputs.push_back(std::move(tensor));
    }
    const auto whole = te::Interpret(program, inputs);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    for (int trial = 0; trial < 150; ++trial) {
      Region region;
      region.nothing = false;
      for (const int64_t extent : program.tensors[program.outputs[0]].shape) {
        const int64_t begin = static_cast<int64_t>(random() % extent);
        region.ranges.push_back({begin, begin + 1 + static_cast<int64_t>(random() % (extent - begin))});
      }
      const AccessMap::Needs needs = map.Required({region});
      std::vector<fusion::Tensor> poisoned_inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        fusion::Tensor& copy = poisoned_inputs.emplace_back(inputs[i].dtype(), inputs[i].shape());
        for (int64_t e = 0; copy.dtype() == DType::kF32 && e < copy.num_elements(); ++e) {
          const bool inside = Contains(needs.inputs[i], inputs[i].shape(), e);
          poisoned += !inside;
          copy.SetDouble(e, inside ? inputs[i].GetDouble(e) : std::numeric_limits<double>::quiet_NaN());
        }
      }
      const auto part = te::Interpret(program, poisoned_inputs);
      ASSERT_TRUE(part.ok()) << part.status().message();
      for (int64_t e = 0; e < (*whole)[0].num_elements(); ++e) {
        if (!Contains(region, (*whole)[0].shape(), e)) continue;
        ASSERT_EQ((*part)[0].GetDouble(e), (*whole)[0].GetDouble(e)) << text;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(poisoned, 5000);
}

}  // namespace
}  // namespace fusion::graph_turbo
