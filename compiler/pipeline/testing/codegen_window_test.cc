// Convolutions and pooling: borders, strides, groups, channels that do not fill a vector, and the operators that
// networks put around them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/random_inputs.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

FusionCase Conv(const std::string& name, const Shape& x, const Shape& w, const G::Attrs& attrs = {}, bool bias = true) {
  G g;
  std::vector<V> inputs = {g.In(x), g.Weight(w)};
  if (bias) inputs.push_back(g.Weight({w[0]}));
  g.Out(g.Op("Conv", inputs, attrs));
  return FusionCase(name, g);
}

// There are fewer channels than a quarter of a vector. The lanes run along the input's channels, or along a row of the
// image from which a window has been copied.
TEST(CodegenConv, ToFewChannels) {
  std::vector<FusionCase> cases;
  const Ints pad1 = {1, 1, 1, 1};
  for (const auto& [channels, results] : std::vector<std::pair<int64_t, int64_t>>{{64, 1}, {64, 3}, {16, 1}, {40, 2}}) {
    G g;
    const V first = g.Op("Conv", {g.In({1, 8, 9, 11}), g.Weight({channels, 8, 1, 1})});
    const V last = g.Op("Conv", {first, g.Weight({results, channels, 3, 3}), g.Weight({results})}, {{"pads", pad1}});
    g.Out(g.Op("Sub", {g.In({1, results, 9, 11}), last}));
    cases.push_back(FusionCase(absl::StrCat(channels, " to ", results), g));
  }
  EXPECT_EQ(Failures(cases), "");
  for (const FusionResult& result : RunCases(cases, {{Avx512Device(), LayoutMode::kChosen, true}})) {
    if (result.name.rfind("40", 0) == 0) continue;  // channels are not whole vectors
    for (const movement::Step& step : result.kernels[1].kernel.phases[0].steps) {
      EXPECT_FALSE(step.Is<movement::ScalarLoops>()) << result.name << " " << step.label;
    }
  }
}

// Tasks of several rows copy the rows that their windows share once.
TEST(CodegenConv, RowsToFewChannels) {
  const Ints pad1 = {1, 1, 1, 1};
  const std::vector<FusionCase> cases = {
      Conv("image", {1, 16, 64, 64}, {3, 16, 3, 3}, {{"pads", pad1}}),
      Conv("tasks of four rows", {1, 24, 100, 64}, {4, 24, 3, 3}, {{"pads", pad1}}),
      Conv("strides", {1, 16, 127, 40}, {3, 16, 3, 3}, {{"pads", pad1}, {"strides", Ints{2, 2}}}),
      Conv("tall windows", {1, 64, 56, 56}, {16, 64, 7, 1}, {{"pads", Ints{3, 0, 3, 0}}}),
  };
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    options.push_back({device, LayoutMode::kPlain});
    options.back().directives = {{ecg::kNone, "form", "windows-copied-rows"}};
  }
  std::set<std::string> taken;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (absl::IsFailedPrecondition(result.status)) continue;  // such tasks save nothing there
    ASSERT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    const movement::Phase& phase = result.kernels.at(0).kernel.phases.at(0);
    EXPECT_LE(phase.tasks(), 50) << result.name << ": a task for each row";
    taken.insert(result.name.substr(0, result.name.find(" avx")));
  }
  EXPECT_EQ(taken.size(), cases.size()) << absl::StrJoin(taken, ", ");
}

// Convolutions that minimal filtering may compute, large enough for its forms to differ. Some device or seed must
// choose each form.
TEST(CodegenConv, MinimalFiltering) {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases = {
      Conv("32 channels", {1, 32, 16, 24}, {32, 32, 3, 3}, {{"pads", pad1}}),
      Conv("no pads, batch", {2, 24, 14, 18}, {48, 24, 3, 3}),
      Conv("odd channels", {1, 20, 12, 12}, {40, 20, 3, 3}, {{"pads", pad1}}),
      Conv("grouped", {1, 64, 12, 16}, {64, 32, 3, 3}, {{"pads", pad1}, {"group", int64_t{2}}}),
      Conv("blocks that do not divide", {1, 32, 36, 20}, {32, 32, 3, 3}, {{"pads", pad1}}),
      Conv("tiles past the end", {1, 32, 14, 14}, {48, 32, 3, 3}, {{"pads", pad1}}),
      Conv("small image", {1, 32, 7, 7}, {32, 32, 3, 3}, {{"pads", pad1}}),
      Conv("tiles past the end, no pads", {2, 32, 15, 17}, {32, 32, 3, 3}),
      Conv("one axis", {1, 32, 5, 16}, {32, 32, 3, 3}, {{"pads", pad1}}),
      Conv("row", {2, 32, 64}, {48, 32, 3}, {{"pads", Ints{1, 1}}}),
      Conv("volume", {1, 16, 5, 8, 12}, {32, 16, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}}),
  };
  {
    G g;
    const V x = g.In({1, 32, 16, 16});
    const V conv = g.Op("Conv", {x, g.Weight({32, 32, 3, 3}), g.Weight({32})}, {{"pads", pad1}});
    g.Out(g.Op("Relu", {g.Op("Add", {conv, x})}));
    cases.push_back(FusionCase("residual", g));
  }
  std::vector<RunOptions> options;
  uint64_t seed = 0;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
      for (int times = 0; times < 3; ++times) options.push_back({device, mode, false, seed++});
    }
  }
  std::set<std::string> filtered;
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) {
      for (const movement::Pack& pack : kernel.kernel.packs) {
        if (!pack.transform.by_dimension.empty()) filtered.insert(result.name.substr(0, result.name.find(" avx")));
      }
    }
  }
  EXPECT_EQ(filtered.size(), cases.size()) << absl::StrJoin(filtered, ", ");
}

// The product of minimal filtering as a phase of its own, between the transforms.
TEST(CodegenConv, MinimalFilteringInPhases) {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases = {
      Conv("many channels", {1, 96, 12, 14}, {64, 96, 3, 3}, {{"pads", pad1}}),
      Conv("no pads, batch", {2, 24, 14, 18}, {48, 24, 3, 3}),
      Conv("tiles past the end", {1, 32, 15, 15}, {48, 32, 3, 3}, {{"pads", pad1}}),
      Conv("odd channels", {1, 20, 12, 12}, {40, 20, 3, 3}, {{"pads", pad1}}),
      Conv("row", {2, 32, 64}, {48, 32, 3}, {{"pads", Ints{1, 1}}}),
  };
  {
    G g;
    const V x = g.In({1, 32, 16, 16});
    const V conv = g.Op("Conv", {x, g.Weight({32, 32, 3, 3}), g.Weight({32})}, {{"pads", pad1}});
    g.Out(g.Op("Relu", {g.Op("Add", {conv, x})}));
    cases.push_back(FusionCase("residual", g));
  }
  for (const char* form : {"winograd4-phases", "winograd2-phases"}) {
    std::vector<RunOptions> options;
    for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
      for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
        options.push_back({device, mode});
        options.back().directives = {{ecg::kNone, "form", form}};
      }
    }
    for (const FusionResult& result : RunCases(cases, options)) {
      EXPECT_TRUE(result.status.ok()) << form << ": " << result.name << ": " << result.status;
      ASSERT_EQ(result.kernels.size(), 1u) << form << ": " << result.name;
      EXPECT_GE(result.kernels[0].kernel.phases.size(), 3u) << form << ": " << result.name;
      const std::vector<movement::Pack>& packs = result.kernels[0].kernel.packs;
      EXPECT_TRUE(std::any_of(packs.begin(), packs.end(),
                              [](const movement::Pack& pack) { return !pack.transform.by_dimension.empty(); }))
          << form << ": " << result.name;
    }
  }
}

// Random numbers, among them an infinity of either sign and a NaN, far from each other.
Tensor WithInfinities(const Shape& shape) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Tensor tensor = RandomTensor(DType::kF32, shape, 3, 5);
  const int64_t all = tensor.num_elements();
  tensor.SetDouble(all / 11, kInfinity);
  tensor.SetDouble(all / 2 + 5, -kInfinity);
  tensor.SetDouble(all - 7, std::nanf(""));
  return tensor;
}

// An infinity or a NaN reaches the results that read it, and no others of its tile.
TEST(CodegenConv, MinimalFilteringOfInfinities) {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases;
  const auto add = [&](const std::string& name, const Shape& shape, const Shape& w, const G::Attrs& attrs,
                       const std::function<V(G*, V x, V conv)>& behind = {}) {
    G g;
    const V x = g.In(WithInfinities(shape));
    const V conv = g.Op("Conv", {x, g.Weight(w), g.Weight({w[0]})}, attrs);
    g.Out(behind ? behind(&g, x, conv) : conv);
    cases.push_back(FusionCase(name, g));
  };
  add("image", {1, 32, 12, 16}, {32, 32, 3, 3}, {{"pads", pad1}});
  add("tiles past the end", {1, 32, 15, 15}, {48, 32, 3, 3}, {{"pads", pad1}});
  add("odd channels", {1, 20, 12, 12}, {40, 20, 3, 3}, {{"pads", pad1}});
  add("batch", {2, 24, 14, 18}, {48, 24, 3, 3}, {});
  add("row", {2, 32, 64}, {48, 32, 3}, {{"pads", Ints{1, 1}}});
  add("volume", {1, 16, 5, 8, 12}, {32, 16, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}});
  add("residual", {1, 32, 16, 16}, {32, 32, 3, 3}, {{"pads", pad1}}, [](G* g, V x, V conv) {
    return g->Op("Relu", {g->Op("Add", {conv, x})});
  });
  std::vector<RunOptions> options;
  std::vector<std::string> forms;
  for (const char* form : {"winograd4", "winograd2", "winograd4-phases", "winograd2-phases"}) {
    for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
      for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked}) {
        options.push_back({device, mode});
        options.back().directives = {{ecg::kNone, "form", form}};
        forms.push_back(form);
      }
    }
  }
  const std::vector<FusionResult> results = RunCases(cases, options);
  std::map<std::string, int> compared;  // by form
  for (size_t r = 0; r < results.size(); ++r) {
    const FusionResult& result = results[r];
    const std::string& form = forms[r % options.size()];
    if (absl::IsFailedPrecondition(result.status)) continue;  // not every layout has every form
    EXPECT_TRUE(result.status.ok()) << form << ": " << result.name << ": " << result.status;
    ++compared[form];
    int rare = 0;
    for (const FusionKernel& kernel : result.kernels) {
      for (const movement::Phase& phase : kernel.kernel.phases) {
        for (const movement::Step& step : phase.steps) rare += movement::IsRare(step);
      }
    }
    EXPECT_EQ(rare, 1) << form << ": " << result.name;
  }
  for (const std::string& form : forms) EXPECT_GE(compared[form], 20) << form;
}

// The same as text of a driver, which has no function for it and whose pointers say what a phase writes.
TEST(CodegenConv, MinimalFilteringOfInfinitiesInOpenCl) {
  G g;
  const V x = g.In(WithInfinities({1, 16, 6, 16}));
  g.Out(g.Op("Conv", {x, g.Weight({16, 16, 3, 3}), g.Weight({16})}, {{"pads", Ints{1, 1, 1, 1}}}));
  std::vector<RunOptions> options;
  for (const char* form : {"winograd2", "winograd2-phases"}) {
    for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked}) {
      options.push_back({OpenClTestDevice(16, 1), mode});
      options.back().directives = {{ecg::kNone, "form", form}};
    }
  }
  EXPECT_EQ(Failures({FusionCase("image", g)}, options), "");
}

TEST(CodegenConv, Windows) {
  const Ints pad1 = {1, 1, 1, 1};
  EXPECT_EQ(Failures({
                Conv("1x1", {1, 24, 9, 7}, {40, 24, 1, 1}),
                Conv("1x1 wide", {2, 32, 5, 28}, {48, 32, 1, 1}, {}, false),
                Conv("1x1 stride 2", {1, 16, 9, 9}, {32, 16, 1, 1}, {{"strides", Ints{2, 2}}}),
                Conv("3x3", {1, 16, 8, 9}, {32, 16, 3, 3}, {{"pads", pad1}}),
                Conv("3x3 on 28", {1, 16, 4, 28}, {32, 16, 3, 3}, {{"pads", pad1}}),
                Conv("3x3 odd channels", {2, 5, 7, 6}, {24, 5, 3, 3}, {{"pads", pad1}}),
                Conv("3x3 58 channels", {1, 58, 5, 5}, {58, 58, 3, 3}, {{"pads", pad1}}),
                Conv("3x3 stride 2", {1, 16, 9, 10}, {24, 16, 3, 3}, {{"pads", pad1}, {"strides", Ints{2, 2}}}),
                Conv("7x7 stride 2, 3 channels", {1, 3, 33, 30}, {32, 3, 7, 7},
                     {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}}),
                Conv("dilated", {1, 16, 9, 9}, {16, 16, 3, 3}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}}),
                Conv("asymmetric pads", {1, 7, 6, 9}, {20, 7, 3, 2}, {{"pads", Ints{0, 1, 2, 0}}}),
                Conv("same upper", {1, 7, 6, 9}, {16, 7, 3, 4},
                     {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 3}}}),
                Conv("pad beyond the image", {1, 4, 2, 2}, {16, 4, 5, 5}, {{"pads", Ints{4, 4, 4, 4}}}),
                Conv("whole image", {1, 16, 6, 6}, {20, 16, 6, 6}),
                Conv("few channels", {1, 3, 8, 8}, {2, 3, 3, 3}, {{"pads", pad1}}),
                Conv("one by one by one", {1, 1, 1, 1}, {1, 1, 1, 1}),
                Conv("batch", {3, 8, 5, 5}, {16, 8, 3, 3}, {{"pads", pad1}}),
            }),
            "");
}

TEST(CodegenConv, Groups) {
  const Ints pad1 = {1, 1, 1, 1};
  EXPECT_EQ(Failures({
                Conv("depthwise", {1, 32, 9, 8}, {32, 1, 3, 3}, {{"pads", pad1}, {"group", int64_t{32}}}),
                Conv("depthwise 24", {2, 24, 9, 14}, {24, 1, 3, 3}, {{"pads", pad1}, {"group", int64_t{24}}}),
                Conv("depthwise 5x5 stride 2", {1, 40, 11, 10}, {40, 1, 5, 5},
                     {{"pads", Ints{2, 2, 2, 2}}, {"group", int64_t{40}}, {"strides", Ints{2, 2}}}),
                Conv("depthwise multiplier", {1, 16, 5, 5}, {32, 1, 3, 3}, {{"pads", pad1}, {"group", int64_t{16}}}),
                Conv("groups of 16", {1, 32, 6, 6}, {64, 16, 3, 3}, {{"pads", pad1}, {"group", int64_t{2}}}),
                Conv("groups of 4", {1, 32, 6, 6}, {32, 4, 3, 3}, {{"pads", pad1}, {"group", int64_t{8}}}),
                Conv("groups of 6", {1, 18, 6, 6}, {12, 6, 3, 3}, {{"pads", pad1}, {"group", int64_t{3}}}),
                Conv("1-D", {2, 9, 50}, {20, 9, 5}, {{"pads", Ints{2, 2}}, {"strides", Ints{2}}}),
                Conv("3-D", {1, 4, 5, 6, 7}, {16, 4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}}),
            }),
            "");
}

TEST(CodegenConv, Networks) {
  std::vector<FusionCase> cases;
  const Ints pad1 = {1, 1, 1, 1};
  auto conv = [&](G* g, V x, int64_t from, int64_t to, int64_t k, int64_t stride = 1) {
    return g->Op("Conv", {x, g->Weight({to, from, k, k}), g->Weight({to})},
                 {{"pads", Ints(4, k / 2)}, {"strides", Ints{stride, stride}}});
  };
  for (int64_t c : {32, 24}) {
    G g;  // a residual block between plain ends
    const V x = g.Op("Relu", {conv(&g, g.In({1, 3, 12, 12}), 3, c, 3, 2)});
    const V y = g.Op("Relu", {conv(&g, x, c, c, 3)});
    const V z = g.Op("Relu", {g.Op("Add", {conv(&g, y, c, c, 1), x})});
    const V p = g.Op("GlobalAveragePool",
                     {g.Op("MaxPool", {z}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", pad1}})});
    g.Out(g.Op("Gemm", {g.Op("Flatten", {p}), g.Weight({c, 10}), g.Weight({10})}));
    cases.push_back(FusionCase("residual network " + std::to_string(c), g));
  }
  {
    G g;
    const V y = conv(&g, g.In({1, 16, 6, 6}), 16, 24, 3);
    g.Out(g.Op("Relu", {g.Op("Add", {g.Op("Add", {g.Op("Mul", {y, g.Weight({24, 1, 1})}), g.Weight({24, 1, 1})}),
                                     g.In({1, 24, 6, 6})})}));
    cases.push_back(FusionCase("scale, shift, residual, relu", g));
  }
  for (int64_t c : {16, 12}) {
    G g;  // concatenation on channels, aligned and not
    const V x = g.In({1, 8, 6, 6});
    const V joined =
        g.Op("Concat", {conv(&g, x, 8, c, 1), conv(&g, x, 8, 32, 3), g.Op("Relu", {x})}, {{"axis", int64_t{1}}});
    g.Out(conv(&g, joined, c + 40, 16, 1));
    cases.push_back(FusionCase("inception " + std::to_string(c), g));
  }
  {
    G g;  // squeeze and excite
    const V x = conv(&g, g.In({1, 8, 6, 6}), 8, 24, 1);
    const V s =
        g.Op("Sigmoid", {conv(&g, g.Op("Relu", {conv(&g, g.Op("GlobalAveragePool", {x}), 24, 6, 1)}), 6, 24, 1)});
    g.Out(conv(&g, g.Op("Mul", {x, s}), 24, 16, 1));
    cases.push_back(FusionCase("squeeze and excite", g));
  }
  {
    G g;  // channel shuffle
    V x = conv(&g, g.In({1, 8, 4, 4}), 8, 32, 1);
    x = g.Op("Transpose", {g.Op("Reshape", {x, g.Ints({1, 2, 16, 4, 4})})}, {{"perm", Ints{0, 2, 1, 3, 4}}});
    g.Out(conv(&g, g.Op("Reshape", {x, g.Ints({1, 32, 4, 4})}), 32, 16, 1));
    cases.push_back(FusionCase("shuffle", g));
  }
  {
    G g;  // depthwise separable
    const V x = g.Op("Clip", {conv(&g, g.In({1, 8, 6, 6}), 8, 24, 1), g.Scalar(0), g.Scalar(6)});
    const V d = g.Op("Conv", {x, g.Weight({24, 1, 3, 3}), g.Weight({24})}, {{"pads", pad1}, {"group", int64_t{24}}});
    g.Out(conv(&g, g.Op("Clip", {d, g.Scalar(0), g.Scalar(6)}), 24, 16, 1));
    cases.push_back(FusionCase("depthwise separable", g));
  }
  {
    G g;
    const V x = conv(&g, g.In({1, 8, 4, 5}), 8, 16, 3);
    const V up = g.Op("Resize", {x, ecg::kNone, g.Const(Tensor::From<double>(DType::kF32, {4}, {1, 1, 2, 2}))},
                      {{"mode", std::string("nearest")},
                       {"nearest_mode", std::string("floor")},
                       {"coordinate_transformation_mode", std::string("asymmetric")}});
    g.Out(conv(&g, up, 16, 16, 1));
    cases.push_back(FusionCase("upsample", g));
  }
  {
    G g;  // patches of a vision transformer
    const V x =
        g.Op("Conv", {g.In({1, 3, 16, 16}), g.Weight({24, 3, 8, 8}), g.Weight({24})}, {{"strides", Ints{8, 8}}});
    g.Out(g.Op("Transpose", {g.Op("Reshape", {x, g.Ints({1, 24, 4})})}, {{"perm", Ints{0, 2, 1}}}));
    cases.push_back(FusionCase("patches", g));
  }
  {
    G g;
    const V x = g.In({2, 4, 5, 5});
    g.Out(g.Op("ConvTranspose", {x, g.Weight({4, 8, 3, 3}), g.Weight({8})},
               {{"strides", Ints{2, 2}}, {"pads", pad1}, {"output_padding", Ints{1, 1}}}));
    g.Out(g.Op("ConvTranspose", {x, g.Weight({4, 16, 2, 2})}, {{"strides", Ints{2, 2}}}));
    cases.push_back(FusionCase("transposed convolution", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Each form of a window between plain values: with borders copied around it, with elements a stride apart brought
// together, and reduced row by row first.
TEST(CodegenWindow, BetweenPlainValues) {
  std::vector<FusionCase> cases = {
      Conv("depthwise", {2, 6, 19, 35}, {6, 1, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{6}}}),
      Conv("depthwise 7x7", {1, 5, 14, 18}, {5, 1, 7, 7}, {{"pads", Ints{3, 3, 3, 3}}, {"group", int64_t{5}}}),
      Conv("depthwise stride 2", {1, 5, 23, 41}, {5, 1, 5, 5},
           {{"pads", Ints{2, 1, 0, 2}}, {"strides", Ints{2, 2}}, {"group", int64_t{5}}}),
      Conv("depthwise dilated", {1, 4, 20, 33}, {4, 1, 3, 3},
           {{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}, {"group", int64_t{4}}}),
      Conv("two each", {1, 4, 17, 33}, {8, 1, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{4}}}),
      Conv("row", {2, 5, 67}, {5, 1, 5}, {{"pads", Ints{2, 2}}, {"group", int64_t{5}}}),
      Conv("to few channels", {1, 8, 18, 35}, {3, 8, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}),
  };
  for (const char* op : {"MaxPool", "AveragePool"}) {
    const auto pool = [&](const std::string& name, const Shape& shape, const G::Attrs& attrs) {
      G g;
      g.Out(g.Op(op, {g.In(shape)}, attrs));
      cases.push_back(FusionCase(absl::StrCat(op, " ", name), g));
    };
    pool("5x5", {2, 3, 13, 17}, {{"kernel_shape", Ints{5, 5}}, {"pads", Ints{2, 2, 2, 2}}});
    pool("13x13", {1, 3, 13, 35}, {{"kernel_shape", Ints{13, 13}}, {"pads", Ints{6, 6, 6, 6}}});
    pool("3x3 stride 2", {1, 5, 37, 39},
         {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
    pool("3x3 stride 2 without border", {1, 3, 37, 40}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}});
    pool("2x2x2 stride 2", {1, 3, 4, 6, 44}, {{"kernel_shape", Ints{2, 2, 2}}, {"strides", Ints{2, 2, 2}}});
    pool("4x3x5", {1, 2, 7, 9, 20}, {{"kernel_shape", Ints{4, 3, 5}}});
  }
  std::vector<RunOptions> options;
  uint64_t seed = 0;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
      for (int times = 0; times < 3; ++times) options.push_back({device, mode, false, seed++});
    }
  }
  EXPECT_EQ(Failures(cases, options), "");
}

// Extents and kernels that are multiples of the stride, and others.
TEST(CodegenConv, Transposed) {
  const auto transposed = [](const std::string& name, const Shape& x, const Shape& w, G::Attrs attrs,
                             int64_t groups = 1) {
    G g;
    attrs.emplace_back("group", groups);
    g.Out(g.Op("ConvTranspose", {g.In(x), g.Weight(w), g.Weight({w[1] * groups})}, attrs));
    return FusionCase(name, g);
  };
  const auto strides = [](int64_t s) { return Ints{s, s}; };
  EXPECT_EQ(
      Failures({
          transposed("3x3", {1, 16, 7, 9}, {16, 20, 3, 3}, {{"strides", strides(2)}}),
          transposed("3x3 to even extents", {2, 16, 7, 9}, {16, 32, 3, 3},
                     {{"strides", strides(2)}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}}),
          transposed("4x4", {1, 12, 8, 9}, {12, 16, 4, 4}, {{"strides", strides(2)}, {"pads", Ints{1, 1, 1, 1}}}),
          transposed("5x5 stride 3", {1, 5, 6, 7}, {5, 16, 5, 5},
                     {{"strides", strides(3)}, {"pads", Ints{2, 0, 1, 3}}}),
          transposed("2x2 stride 3", {1, 5, 6, 7}, {5, 16, 2, 2}, {{"strides", strides(3)}}),
          transposed("to few channels", {1, 16, 9, 20}, {16, 3, 4, 4},
                     {{"strides", strides(2)}, {"pads", Ints{1, 1, 1, 1}}}),
          transposed("groups", {1, 12, 6, 7}, {12, 4, 3, 3}, {{"strides", strides(2)}}, 3),
          transposed("depthwise", {1, 20, 6, 7}, {20, 1, 3, 3}, {{"strides", strides(2)}}, 20),
          transposed("one stride", {1, 8, 6, 7}, {8, 16, 3, 3}, {{"strides", Ints{1, 2}}, {"pads", Ints{1, 1, 1, 1}}}),
          transposed("row", {1, 32, 20}, {32, 16, 10}, {{"strides", Ints{5}}, {"pads", Ints{2, 2}}}),
          transposed("row to one", {1, 32, 50}, {32, 1, 4}, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}}),
          transposed("volume", {1, 8, 3, 4, 5}, {8, 16, 3, 3, 3}, {{"strides", Ints{2, 2, 2}}}),
      }),
      "");
}

TEST(CodegenPool, Windows) {
  std::vector<FusionCase> cases;
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (const Shape& shape : std::vector<Shape>{{1, 32, 9, 9}, {2, 5, 9, 10}}) {
      auto pool = [&](const std::string& name, const G::Attrs& attrs) {
        G g;
        g.Out(g.Op(op, {g.In(shape)}, attrs));
        cases.push_back(FusionCase(op + (" " + name) + ShapeToString(shape), g));
      };
      pool("2x2", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
      pool("3x3 padded", {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
      pool("ceil", {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}});
      pool("1x1", {{"kernel_shape", Ints{1, 1}}});
      pool("asymmetric", {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{0, 1, 2, 0}}});
    }
  }
  for (int64_t include : {0, 1}) {
    G g;
    g.Out(g.Op("AveragePool", {g.In({1, 16, 6, 6})},
               {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", include}}));
    cases.push_back(FusionCase("count_include_pad " + std::to_string(include), g));
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    for (int64_t c : {3, 32, 58}) {
      G g;
      g.Out(g.Op(op, {g.In({2, c, 7, 7})}));
      cases.push_back(FusionCase(op + std::to_string(c), g));
    }
  }
  {
    G g;
    g.Out(g.Op("MaxPool", {g.In({1, 3, 20})}, {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}}));
    cases.push_back(FusionCase("1-D dilated", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

}  // namespace
}  // namespace fusion::testing
