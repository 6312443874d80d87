// Convolutions that a library of the target computes. The compiler recognises their windows, and the bundle's device
// runs them through a cuDNN that the processor emulates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/cost/matrix_products.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/library_bundle.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/random_inputs.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;

DeviceModel WithLibrary() {
  DeviceModel device = CudaTestDevice(32);
  device.convolution_library = "cuDNN of a test";
  device.matrix_products = {{"tf32", 16, 8, 8, 32, 4 * device.fma_f32_flops_per_s}};
  return device;
}

struct Conv {
  Shape x, w;
  Ints pads = {0, 0, 0, 0}, strides = {1, 1}, dilations = {1, 1};
  int64_t group = 1;
};

G::Attrs AttrsOf(const Conv& c) {
  return {{"pads", c.pads}, {"strides", c.strides}, {"dilations", c.dilations}, {"group", c.group}};
}

// The export of a framework with channels last: transposed before and after.
V ChannelsLast(G* g, const Conv& c) {
  const V x = g->Op("Transpose", {g->In({c.x[0], c.x[2], c.x[3], c.x[1]})}, {{"perm", Ints{0, 3, 1, 2}}});
  return g->Op("Transpose", {g->Op("Conv", {x, g->Weight(c.w)}, AttrsOf(c))}, {{"perm", Ints{0, 2, 3, 1}}});
}

// The kernel of the whole graph, with the phases that it would leave to the library.
absl::StatusOr<FusionKernel> KernelOf(const G& g, const ValueLayouts& layouts = {},
                                      const DeviceModel& device = WithLibrary(),
                                      const Choices& choices = {{"library", 1}}) {
  std::vector<ecg::NodeId> nodes;
  for (size_t n = 0; n < g.graph().nodes().size(); ++n) nodes.push_back(static_cast<int>(n));
  return MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), layouts, device, {choices});
}

const std::vector<std::pair<std::string, Conv>>& Cases() {
  static const auto* cases = new std::vector<std::pair<std::string, Conv>>{
      {"plain", {{1, 24, 20, 18}, {32, 24, 3, 3}}},
      {"padded", {{2, 24, 20, 18}, {32, 24, 3, 3}, {1, 1, 1, 1}}},
      {"every second", {{1, 24, 20, 18}, {32, 24, 3, 3}, {1, 1, 1, 1}, {2, 2}}},
      {"every second of an odd image", {{1, 24, 21, 19}, {32, 24, 3, 3}, {1, 1, 1, 1}, {2, 2}}},
      {"steps that differ", {{1, 24, 20, 18}, {32, 24, 3, 5}, {1, 2, 1, 2}, {1, 3}}},
      {"a stem", {{1, 3, 38, 40}, {24, 3, 7, 7}, {3, 3, 3, 3}, {2, 2}}},
      {"apart", {{1, 24, 20, 18}, {32, 24, 3, 3}, {2, 2, 2, 2}, {1, 1}, {2, 2}}},
      {"apart and every second", {{1, 24, 20, 18}, {32, 24, 3, 3}, {0, 0, 0, 0}, {2, 2}, {2, 2}}},
      {"a row", {{1, 24, 20, 18}, {32, 24, 1, 5}, {0, 2, 0, 2}}},
      {"a column", {{2, 24, 20, 18}, {32, 24, 5, 1}}},
      {"even taps", {{1, 24, 20, 18}, {32, 24, 4, 2}, {1, 0, 1, 0}}},
      {"groups", {{1, 24, 20, 18}, {32, 12, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 2}},
      {"many groups", {{2, 32, 20, 18}, {32, 2, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 16}},
      {"groups of a result", {{1, 32, 20, 18}, {16, 2, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 16}},
      {"depthwise", {{1, 64, 20, 18}, {64, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 64}},
      {"depthwise, twice as many", {{1, 32, 20, 18}, {64, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 32}},
      {"less at the end", {{1, 24, 20, 18}, {32, 24, 3, 3}, {1, 1, 0, 0}, {2, 2}}},
      {"patches", {{1, 24, 20, 16}, {32, 24, 4, 4}, {0, 0, 0, 0}, {4, 4}}},
      {"a column of results", {{1, 24, 40, 5}, {32, 24, 3, 5}}},
      {"one channel", {{1, 1, 64, 64}, {32, 1, 5, 5}, {2, 2, 2, 2}}},
      {"one result", {{1, 64, 40, 40}, {1, 64, 3, 3}, {1, 1, 1, 1}}},
  };
  return *cases;
}

TEST(LibraryConvolution, IsTheConvolutionThatTheFusionBlockHas) {
  std::vector<FusionCase> cases;
  for (const auto& [name, c] : Cases()) {
    G g;
    g.Out(g.Op("Conv", {g.In(c.x), g.Weight(c.w)}, AttrsOf(c)));
    cases.push_back(FusionCase(name, g));
    G last;
    last.Out(ChannelsLast(&last, c));
    cases.push_back(FusionCase(name + ", channels last", last));
  }
  const auto add = [&](const char* name, const G& g) { cases.push_back(FusionCase(name, g)); };
  const Conv padded = {{1, 24, 20, 18}, {32, 24, 3, 3}, {1, 1, 1, 1}};
  {
    G g;  // the operators behind the convolution are text
    const V y = g.Op("Conv", {g.In(padded.x), g.Weight(padded.w), g.Weight({32})}, AttrsOf(padded));
    g.Out(g.Op("Relu", {g.Op("Add", {y, g.In({1, 32, 20, 18})})}));
    add("epilogue", g);
  }
  {
    G g;  // and so are the operators in front of it
    g.Out(g.Op("Conv", {g.Op("Exp", {g.In(padded.x)}), g.Weight(padded.w)}, AttrsOf(padded)));
    add("prologue", g);
  }
  {
    G g;
    g.Out(g.Op("Conv", {g.In(padded.x), g.In(padded.w)}, AttrsOf(padded)));
    add("a filter that is computed", g);
  }
  {
    G g;
    g.Out(g.Op("Conv", {g.In({3, 24, 200}), g.Weight({32, 24, 3})}, {{"pads", Ints{1, 1}}, {"strides", Ints{2}}}));
    add("a signal", g);
  }
  {
    G g;  // the channels of one image, read in another order
    const V y = g.Op("Conv", {g.In(padded.x), g.Weight(padded.w)}, AttrsOf(padded));
    g.Out(g.Op("Reshape", {y, g.Ints({1, 4, 8, 360})}));
    add("reshaped", g);
  }
  RunOptions options{WithLibrary()};
  options.choices = {{"library", 1}};
  for (const FusionResult& result : RunCases(cases, {options})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u) << result.name;
    const std::vector<LibraryCall> calls = LibraryCallsOf(result.kernels[0].kernel);
    ASSERT_EQ(calls.size(), 1u) << result.name << "\n" << movement::Print(result.kernels[0].kernel);
    EXPECT_TRUE(std::holds_alternative<LibraryConvolution>(calls[0])) << result.name;
  }
}

// Every call that is offered computes the right result.
TEST(LibraryConvolution, OfRandomShapes) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<FusionCase> cases;
  while (cases.size() < 80) {
    const int64_t group = draw(0, 2) > 0 ? 1 : draw(2, 4), in = draw(1, 6), out = draw(1, 12);
    Conv c = {{draw(1, 2), group * in, draw(9, 24), draw(9, 24)}, {group * out, in, draw(1, 4), draw(1, 4)}};
    c.strides = {draw(1, 3), draw(1, 3)}, c.dilations = {draw(1, 2), draw(1, 2)};
    for (int64_t& pad : c.pads) pad = draw(0, 2);
    if (draw(0, 1) > 0) c.pads[2] = c.pads[0], c.pads[3] = c.pads[1];
    c.group = group;
    G g;
    V y = draw(0, 1) > 0 ? ChannelsLast(&g, c) : g.Op("Conv", {g.In(c.x), g.Weight(c.w)}, AttrsOf(c));
    if (draw(0, 1) > 0) y = g.Op("Relu", {y});
    g.Out(y);
    cases.push_back(FusionCase(absl::StrCat("random ", cases.size()), g));
  }
  RunOptions options{WithLibrary()};
  options.choices = {{"library", 1}};
  size_t calls = 0;
  for (const FusionResult& result : RunCases(cases, {options})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) calls += LibraryCallsOf(kernel.kernel).size();
  }
  EXPECT_GE(calls, 20u);
}

// The call must describe the convolution as frameworks would, not as some other sum of the same products.
TEST(LibraryConvolution, IsDescribedAsItIsMeant) {
  for (const auto& [name, c] : Cases()) {
    for (const bool channels_last : {false, true}) {
      SCOPED_TRACE(name + (channels_last ? ", channels last" : ""));
      G g;
      g.Out(channels_last ? ChannelsLast(&g, c) : g.Op("Conv", {g.In(c.x), g.Weight(c.w)}, AttrsOf(c)));
      const auto kernel = KernelOf(g);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const std::vector<LibraryCall> calls = LibraryCallsOf(kernel->kernel);
      ASSERT_EQ(calls.size(), 1u);
      const auto& call = std::get<LibraryConvolution>(calls[0]);
      EXPECT_EQ(call.images, c.x[0]);
      EXPECT_EQ(call.channels, c.x[1]);
      EXPECT_EQ(call.results, c.w[0]);
      EXPECT_EQ(call.groups, c.group);
      EXPECT_THAT(call.taps, ElementsAre(c.w[2], c.w[3]));
      EXPECT_FALSE(call.tf32);
      if (c.x[1] > 1 && c.w[0] > 1) {  // a single channel is both first and last
        EXPECT_EQ(call.x_pitch[1] == 1, channels_last);
        EXPECT_EQ(call.y_pitch[1] == 1, channels_last);
        EXPECT_EQ(call.channels_last, channels_last);
      }
      // Without several taps a step may be taken for a pitch, and so may a common factor of steps and distances.
      if (name == "a row" || name == "a column" || name == "apart and every second") continue;
      EXPECT_THAT(call.stride, ElementsAre(c.strides[0], name == "a column of results" ? 1 : c.strides[1]));
      EXPECT_THAT(call.dilation, ElementsAre(c.dilations[0], c.dilations[1]));
      EXPECT_THAT(call.pad, ElementsAre(c.pads[0], c.pads[1]));
      EXPECT_THAT(call.in, ElementsAre(c.x[2], c.x[3]));
    }
  }
}

TEST(LibraryConvolution, IsNeverTheModelsChoice) {
  G g;
  g.Out(g.Op("Conv", {g.In({1, 24, 20, 18}), g.Weight({32, 24, 3, 3})}));
  const auto own = KernelOf(g, {}, WithLibrary(), {});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(LibraryCallsOf(own->kernel).empty());
  EXPECT_TRUE(std::any_of(own->choices.begin(), own->choices.end(), [](const ChoicePoint& point) {
    return point.name == "library" && point.kind == ChoiceKind::kUnmodelled;
  }));
  DeviceModel products = CudaTestDevice(32);
  products.product_library = "cuBLASLt of a test";
  for (const DeviceModel& device : {CudaTestDevice(32), products}) {
    const auto without = KernelOf(g, {}, device);
    ASSERT_TRUE(without.ok()) << without.status();
    EXPECT_TRUE(LibraryCallsOf(without->kernel).empty());
    EXPECT_EQ(without->key, own->key);
  }
  const auto rounded = KernelOf(g, {}, AllowTf32(WithLibrary())), exact = KernelOf(g);
  ASSERT_TRUE(rounded.ok() && exact.ok());
  EXPECT_TRUE(std::get<LibraryConvolution>(LibraryCallsOf(rounded->kernel).at(0)).tf32);
  EXPECT_NE(rounded->key, exact->key);
}

TEST(LibraryConvolution, IsOfferedOnlyWhereTheLibraryComputesTheSame) {
  std::vector<std::pair<std::string, G>> refused;
  const auto add = [&](const char* name, const Conv& c) {
    G g;
    g.Out(g.Op("Conv", {g.In(c.x), g.Weight(c.w)}, AttrsOf(c)));
    refused.emplace_back(name, g);
  };
  add("one tap", {{1, 64, 20, 18}, {64, 64, 1, 1}});
  add("one tap of every second pixel", {{2, 64, 40, 36}, {64, 64, 1, 1}, {0, 0, 0, 0}, {2, 2}});
  add("more padding at the end", {{1, 24, 20, 18}, {32, 24, 3, 3}, {0, 0, 1, 1}, {2, 2}});
  add("less padding at the end", {{1, 24, 20, 18}, {32, 24, 3, 3}, {1, 1, 0, 0}});
  {
    G g;
    g.Out(g.Op("MatMul", {g.In({64, 96}), g.Weight({96, 80})}));
    refused.emplace_back("a product", g);
  }
  {
    G g;
    g.Out(g.Op("Conv", {g.In({1, 24, 8, 10, 12}), g.Weight({32, 24, 3, 3, 3})}));
    refused.emplace_back("a volume", g);
  }
  {
    G g;
    g.Out(g.Op("ConvTranspose", {g.In({1, 24, 20, 18}), g.Weight({24, 32, 3, 3})}));
    refused.emplace_back("transposed", g);
  }
  {
    G g;  // the input has channels first, the output last
    const V y = g.Op("Conv", {g.In({1, 24, 20, 18}), g.Weight({32, 24, 3, 3})});
    g.Out(g.Op("Transpose", {y}, {{"perm", Ints{0, 2, 3, 1}}}));
    refused.emplace_back("another order", g);
  }
  {
    G g;  // a filter in an unsuitable order that is no constant, so it cannot be packed
    const V x = g.Op("Transpose", {g.In({1, 20, 18, 24})}, {{"perm", Ints{0, 3, 1, 2}}});
    g.Out(g.Op("Transpose", {g.Op("Conv", {x, g.In({32, 24, 3, 3})})}, {{"perm", Ints{0, 2, 3, 1}}}));
    refused.emplace_back("a filter of another order", g);
  }
  {
    G g;  // pads with values other than zero
    const V x = g.Op("Pad", {g.In({1, 24, 20, 18}), g.Ints({0, 0, 1, 1, 0, 0, 1, 1}), g.Scalar(1)});
    g.Out(g.Op("Conv", {x, g.Weight({32, 24, 3, 3})}));
    refused.emplace_back("ones outside", g);
  }
  for (const auto& [name, g] : refused) {
    const auto kernel = KernelOf(g);
    ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.status();
    if (name == "ones outside") {  // a separate stage in front may do the padding
      for (const LibraryCall& call : LibraryCallsOf(kernel->kernel)) {
        EXPECT_THAT(std::get<LibraryConvolution>(call).pad, ElementsAre(0, 0));
      }
      continue;
    }
    EXPECT_TRUE(LibraryCallsOf(kernel->kernel).empty()) << name << "\n" << movement::Print(kernel->kernel);
  }
  // The channels are blocked.
  G g;
  const V x = g.In({1, 32, 20, 18});
  const V y = g.Op("Conv", {x, g.Weight({32, 32, 3, 3})});
  g.Out(y);
  for (const ValueLayouts& layouts : {ValueLayouts{{x, Layout{1, 16}}, {y, Layout{1, 16}}},
                                      ValueLayouts{{x, Layout{1, 16}}}, ValueLayouts{{y, Layout{1, 16}}}}) {
    const auto kernel = KernelOf(g, layouts);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_TRUE(LibraryCallsOf(kernel->kernel).empty()) << movement::Print(kernel->kernel);
  }
}

TEST(LibraryConvolution, IsCalledByBundlesWhereItWasMeasuredFaster) {
  auto bundles = LibraryBundles::Create();
  ASSERT_TRUE(bundles.ok()) << bundles.status();
  DeviceModel device = WithLibrary();
  device.product_library = "cuBLASLt of a test";
  // A stem with too many columns for prepared indices; windows in groups, with holes, depthwise; and a product.
  G g;
  const V a = g.Op("Relu", {g.Op("Conv", {g.In({1, 3, 64, 70}), g.Weight({16, 3, 3, 3}), g.Weight({16})},
                                 {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}})});
  const V b = g.Op("Add", {g.Op("Conv", {a, g.Weight({16, 8, 3, 3}), g.Weight({16})},
                                {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{2}}}),
                           a});
  const V c = g.Op("Conv", {b, g.Weight({24, 16, 3, 3})}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}});
  const V d =
      g.Op("Relu", {g.Op("Conv", {c, g.Weight({24, 1, 5, 5})}, {{"pads", Ints{2, 2, 2, 2}}, {"group", int64_t{24}}})});
  g.Out(g.Op("Conv", {d, g.Weight({64, 24, 1, 1})}));
  for (const char* precision : {"fp32", "fp16", "tf32"}) {
    const auto run = [&](double share) { return (*bundles)->Run(g.graph(), {device, share, precision}); };
    const auto ours = run(2), theirs = run(0.5);
    ASSERT_TRUE(ours.ok()) << precision << ": " << ours.status();
    ASSERT_TRUE(theirs.ok()) << precision << ": " << theirs.status();
    EXPECT_EQ(ours->calls.size(), 0u) << precision;
    EXPECT_LT(ours->format, 6) << precision;
    ASSERT_EQ(theirs->calls.size(), 5u) << precision;
    for (size_t i = 0; i < 5; ++i) {
      const auto* convolution = std::get_if<LibraryConvolution>(&theirs->calls[i]);
      ASSERT_EQ(convolution != nullptr, i < 4) << precision;
      if (convolution != nullptr) EXPECT_EQ(convolution->tf32, precision == std::string("tf32"));
    }
    EXPECT_EQ(theirs->format, 7) << precision;
    ASSERT_EQ(ours->outputs.size(), 1u);
    const Tensor &expected = ours->outputs[0], &actual = theirs->outputs[0];
    if (precision == std::string("fp32")) {
      const absl::Status same = CompareOutputs(expected, actual);
      EXPECT_TRUE(same.ok()) << precision << ": " << same;
      continue;
    }
    // Halves have ten bits of mantissa: sums in another order round to neighbouring ones, and the next convolution sums
    // these. With tf32 our fragments round operands to ten bits, and the library of the test does not.
    double largest = 0, error = 0;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      largest = std::max(largest, std::abs(expected.GetDouble(i)));
      error = std::max(error, std::abs(expected.GetDouble(i) - actual.GetDouble(i)));
    }
    EXPECT_LT(error, 2e-3 * largest);
  }
}

// Runs in a process of its own, because a process looks for a library only once.
TEST(LibraryConvolutionDeathTest, SaysWhatABundleMisses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_without = [] {
    setenv("FUSION_CUDA_SHIM_NO_CUDNN", "1", 1);
    auto bundles = LibraryBundles::Create();
    if (!bundles.ok()) std::exit(2);
    G g;
    g.Out(g.Op("Conv", {g.In({1, 24, 20, 18}), g.Weight({32, 24, 3, 3})}));
    const auto result = (*bundles)->Run(g.graph(), {WithLibrary(), 0.5});
    std::cerr << result.status() << std::endl;
    std::exit(1);
  };
  EXPECT_EXIT(run_without(), ::testing::ExitedWithCode(1), "the bundle leaves convolutions to cuDNN");
}

// A NaN reaches the results that depend on it, and no others.
TEST(LibraryConvolution, PropagatesWhatIsNoNumber) {
  auto bundles = LibraryBundles::Create();
  ASSERT_TRUE(bundles.ok()) << bundles.status();
  G g;
  g.Out(g.Op("Relu", {g.Op("Conv", {g.In({1, 24, 20, 18}), g.Weight({32, 24, 3, 3}), g.Weight({32})},
                           {{"pads", Ints{1, 1, 1, 1}}})}));
  Tensor x = RandomTensor(DType::kF32, {1, 24, 20, 18}, 3, 5);
  x.SetDouble(18 * 4 + 6, std::numeric_limits<double>::quiet_NaN());
  const auto theirs = (*bundles)->Run(g.graph(), {WithLibrary(), 0.5, "fp32", {x}});
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->calls.size(), 1u);
  const Tensor& y = theirs->outputs[0];
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    const int64_t row = i / 18 % 20, column = i % 18;
    EXPECT_EQ(std::isnan(y.GetDouble(i)), std::abs(row - 4) <= 1 && std::abs(column - 6) <= 1) << i;
  }
}

}  // namespace
}  // namespace fusion::testing
