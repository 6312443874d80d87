// A kernel computes the same results whatever tuning chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

FusionCase Conv(const std::string& name, const Shape& x, const Shape& w, const G::Attrs& attrs = {}) {
  G g;
  const V conv = g.Op("Conv", {g.In(x), g.Weight(w), g.Weight({w[0]})}, attrs);
  g.Out(g.Op("Relu", {conv}));
  return FusionCase(name, g);
}

FusionCase MatMul(const std::string& name, const Shape& a, const Shape& b, bool weight) {
  G g;
  const V product = g.Op("MatMul", {g.In(a), weight ? g.Weight(b) : g.In(b)});
  g.Out(g.Op("Relu", {product}));
  return FusionCase(name, g);
}

// A step of a recurrent network: two rows times matrices, whose rows lie contiguous along the sums.
FusionCase Cell(int64_t columns, int64_t rows) {
  G g;
  const G::Attrs turned = {{"transB", int64_t{1}}};
  const V from_input = g.Op("Gemm", {g.In({1, rows}), g.Weight({columns, rows}), g.Weight({columns})}, turned);
  const V from_state = g.Op("Gemm", {g.In({1, 32}), g.Weight({columns, 32}), g.Weight({columns})}, turned);
  g.Out(g.Op("Add", {from_input, from_state}));
  return FusionCase("cell", g);
}

TEST(CodegenChoices, RandomSchedulesComputeTheSame) {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases = {
      Conv("1x1", {1, 24, 9, 14}, {40, 24, 1, 1}),
      Conv("3x3", {1, 16, 8, 9}, {32, 16, 3, 3}, {{"pads", pad1}}),
      Conv("3x3 of 48 channels", {1, 48, 4, 28}, {64, 48, 3, 3}, {{"pads", pad1}}),
      Conv("grouped", {1, 32, 6, 14}, {32, 8, 3, 3}, {{"pads", pad1}, {"group", int64_t{4}}}),
      Conv("depthwise", {1, 32, 6, 14}, {32, 1, 3, 3}, {{"pads", pad1}, {"group", int64_t{32}}}),
      Conv("stem", {1, 3, 17, 16}, {32, 3, 5, 5}, {{"strides", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}),
      MatMul("weights", {37, 40}, {40, 96}, true),
      MatMul("long reduction", {32, 1536}, {1536, 192}, true),
      MatMul("two runtime operands", {2, 33, 48}, {2, 48, 50}, false),
      MatMul("row", {1, 96}, {96, 100}, true),
      Cell(96, 40),
  };
  for (const Shape& shape : {Shape{6, 40}, Shape{420, 640}}) {  // the latter is larger than a core's private caches
    G g;
    g.Out(g.Op("Softmax", {g.Op("Mul", {g.In(shape), g.In(shape)})}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("softmax", g));
  }
  {
    G g;
    const V conv = g.Op("Conv", {g.In({1, 16, 8, 14}), g.Weight({32, 16, 3, 3})}, {{"pads", pad1}});
    g.Out(g.Op("MaxPool", {conv}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
    cases.push_back(FusionCase("conv and pool", g));
  }
  {
    G g;
    g.Out(g.Op("Relu", {g.Op("Mul", {g.In({30, 40, 41}), g.Weight({40, 41})})}));
    cases.push_back(FusionCase("map", g));
  }
  for (const Shape& shape :
       {Shape{768, 384, 1}, Shape{773, 391, 1}, Shape{400, 12, 64}}) {  // larger than a core's private caches
    G g;
    g.Out(g.Op("Transpose", {g.In(shape)}, {{"perm", Ints{1, 0, 2}}}));
    cases.push_back(FusionCase("turned", g));
  }
  {
    G g;
    g.Out(g.Op("ReduceMean", {g.In({1024, 304}), g.Ints({0})}));  // this is larger, too
    cases.push_back(FusionCase("columns", g));
  }
  std::vector<RunOptions> options;
  uint64_t seed = 0;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
      for (int times = 0; times < 6; ++times) options.push_back({device, mode, false, ++seed});
    }
  }
  std::set<std::string> met, different;
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) {
      different.insert(kernel.key);
      for (const ChoicePoint& point : kernel.choices) {
        EXPECT_LT(point.taken, point.count);
        if (point.taken != 0) met.insert(point.name);
      }
    }
  }
  // For every choice, some kernel took an alternative to the scheduler's own.
  for (const char* name : {"transpose", "chunk", "columns", "reduction", "form", "lanes", "prefetch", "rows",
                           "k_blocking", "product", "stitch", "stream", "tasks", "tile", "unroll"}) {
    EXPECT_TRUE(met.count(name)) << name;
  }
  EXPECT_GT(different.size(), 8 * cases.size());
}

// Tasks of 64 columns, whose tiles of four vectors read parts of wider panels, or several narrower ones.
TEST(CodegenChoices, PanelsOfEveryWidth) {
  std::vector<RunOptions> options;
  for (int width = 0; width < 4; ++width) {
    options.push_back({Avx512Device()});
    options.back().choices = {{"product", 1}, {"panel", width}, {"product.1", 1}, {"panel.1", width}};
  }
  std::set<std::string> widths;
  for (const FusionResult& result : RunCases({Cell(1024, 256)}, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u);
    for (const ChoicePoint& point : result.kernels[0].choices) {
      if (point.name == "panel" || point.name == "panel.1") widths.insert(point.labels[point.taken]);
    }
  }
  EXPECT_EQ(widths, (std::set<std::string>{"own", "1", "2", "8"}));
}

TEST(CodegenChoices, StreamingStores) {
  const Shape shape = {2049, 4112};  // rows of whole cache lines, together larger than any cache
  G map, softmax;
  map.Out(map.Op("Relu", {map.Op("Add", {map.In(shape), map.Weight({4112})})}));
  softmax.Out(softmax.Op("Softmax", {softmax.In(shape)}, {{"axis", int64_t{-1}}}));
  RunOptions options{Avx512Device()};
  options.choices = {{"streaming", 1}};
  for (const FusionResult& result : RunCases({FusionCase("map", map), FusionCase("softmax", softmax)}, {options})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) {
      EXPECT_TRUE(std::any_of(kernel.choices.begin(), kernel.choices.end(), [](const ChoicePoint& point) {
        return point.name == "streaming" && point.taken == 1;
      })) << result.name;
    }
  }
}

}  // namespace
}  // namespace fusion::testing
