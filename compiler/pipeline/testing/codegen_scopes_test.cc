// A kernel computes the same results whatever scopes a plan asks for, and hands values over as it was asked to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

// softmax(q k^T s) v, and its projection.
FusionCase Attention() {
  G g;
  const V q = g.In({2, 24, 16}), k = g.In({2, 16, 24}), v = g.In({2, 24, 16});
  const V scores = g.Op("Mul", {g.Op("MatMul", {q, k}), g.Scalar(0.25)});
  const V context = g.Op("MatMul", {g.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
  g.Out(g.Op("Add", {g.Op("MatMul", {context, g.Weight({16, 32})}), g.Weight({32})}));
  return {"attention", g};
}

// A product and a norm of its rows.
FusionCase ProductAndNorm() {
  G g;
  const V x = g.Op("MatMul", {g.In({24, 40}), g.Weight({40, 48})});
  const V mean = g.Op("ReduceMean", {x, g.Ints({-1})});
  const V centred = g.Op("Sub", {x, mean});
  const V variance = g.Op("ReduceMean", {g.Op("Mul", {centred, centred}), g.Ints({-1})});
  g.Out(g.Op("Div", {centred, g.Op("Sqrt", {g.Op("Add", {variance, g.Scalar(1e-5)})})}));
  return {"product and norm", g};
}

FusionCase Convolutions() {
  G g;
  const V first = g.Op("Relu", {g.Op("Conv", {g.In({1, 16, 9, 14}), g.Weight({24, 16, 1, 1}), g.Weight({24})})});
  const V second = g.Op("Conv", {first, g.Weight({24, 1, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{24}}});
  g.Out(g.Op("Add", {g.Op("Relu", {second}), first}));
  return {"convolutions", g};
}

FusionCase Diamond() {
  G g;
  const V x = g.In({12, 33});
  const V a = g.Op("Exp", {x}), b = g.Op("Softmax", {a}, {{"axis", int64_t{-1}}}), c = g.Op("Neg", {a});
  g.Out(g.Op("Add", {b, c}));
  g.Out(g.Op("ReduceSum", {b, g.Ints({0})}));
  return {"diamond", g};
}

FusionCase RowAndBias() {
  G g;
  g.Out(g.Op("Relu", {g.Op("Add", {g.Op("MatMul", {g.In({1, 2048}), g.Weight({2048, 96})}), g.Weight({96})})}));
  return {"row and bias", g};
}

// Eighths around `centre`, so that sums of them, and of a few products, are exact in any order.
Tensor Eighths(const Shape& shape, int64_t step, float centre = 0) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.mutable_as<float>()[i] = centre + 0.125f * static_cast<float>(i * step % 5 - 2);
  }
  return tensor;
}

// Rows whose mean is 1,000 times their deviation. A mean of 256 of them is exact, too.
FusionCase ProductAndLayerNorm() {
  G g;
  const V product = g.Op("MatMul", {g.In(Eighths({40, 32}, 7)), g.Const(Eighths({32, 256}, 3))});
  const V p = g.Op("Add", {product, g.Const(Eighths({256}, 2, 500))});
  const V x = g.Op("Add", {p, g.In(Eighths({40, 256}, 11))});
  g.Out(g.Op("LayerNormalization", {x, g.Weight({256}), g.Weight({256})}, {{"axis", int64_t{-1}}}));
  return {"product and layer norm", g};
}

FusionCase ProductAndRmsNorm() {
  G g;
  const V p = g.Op("MatMul", {g.In({40, 32}), g.Weight({32, 256})});
  const V mean = g.Op("ReduceMean", {g.Op("Mul", {p, p}), g.Ints({-1})});
  g.Out(g.Op("Div", {p, g.Op("Sqrt", {g.Op("Add", {mean, g.Scalar(1e-5)})})}));
  return {"product and RMS norm", g};
}

// Rows of which parts, or all elements, are −inf.
FusionCase ProductAndSoftmax() {
  G g;
  Tensor mask(DType::kF32, {40, 256});
  for (int64_t i = 0; i < 40 * 256; ++i) {
    const int64_t row = i / 256, column = i % 256;
    const bool masked = row % 4 == 1 ? column < 140 : row % 4 == 2 ? column >= 12 : row == 3;
    mask.mutable_as<float>()[i] = masked ? -std::numeric_limits<float>::infinity() : static_cast<float>(column % 5);
  }
  const V p = g.Op("Add", {g.Op("MatMul", {g.In({40, 32}), g.Weight({32, 256})}), g.In(mask)});
  g.Out(g.Op("Softmax", {p}, {{"axis", int64_t{-1}}}));
  return {"product and softmax", g};
}

FusionCase ConvolutionAndInstanceNorm() {
  G g;
  const V p = g.Op("Conv", {g.In({1, 16, 12, 28}), g.Weight({32, 16, 1, 1}), g.Weight({32})});
  g.Out(g.Op("Relu", {g.Op("InstanceNormalization", {p, g.Weight({32}), g.Weight({32})})}));
  return {"convolution and instance norm", g};
}

std::vector<FusionCase> Cases() { return {Attention(), ProductAndNorm(), Convolutions(), Diamond(), RowAndBias()}; }

// Runs the cases with scopes drawn from several seeds. Returns the scopes that occurred.
std::set<Scope> RunWithDrawnScopes(const std::vector<FusionCase>& cases, const std::vector<DeviceModel>& devices,
                                   uint64_t seeds) {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : devices) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      RunOptions& option = options.emplace_back(RunOptions{device});
      option.scopes_seed = seed;
      if (seed % 3 == 0) option.layouts = LayoutMode::kChosen;
    }
  }
  std::set<Scope> met;
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) {
      for (const RealisedHandOver& hand_over : kernel.hand_overs) met.insert(hand_over.scope);
    }
  }
  return met;
}

TEST(CodegenScopes, RandomScopesComputeTheSame) {
  std::vector<FusionCase> cases = Cases();
  for (FusionCase norm : {ProductAndSoftmax(), ProductAndRmsNorm(), ConvolutionAndInstanceNorm()}) {
    cases.push_back(std::move(norm));
  }
  std::set<Scope> met = RunWithDrawnScopes(cases, {Avx512Device(), Avx2Device()}, 12);
  met.erase(Scope::kWarp);  // codegen_rows_test.cc asks for it
  EXPECT_EQ(met, (std::set<Scope>{Scope::kLane, Scope::kBlock, Scope::kDevice}));
}

TEST(CodegenScopes, RandomScopesComputeTheSameOnWorkGroups) {
  std::vector<DeviceModel> devices;
  for (DeviceModel device : {OpenClTestDevice(4, 32), CudaTestDevice(64)}) {
    device.parallel_units = 4;
    device.memory[0].size_bytes = 48 << 10;
    if (CanRun(device).ok()) devices.push_back(device);
  }
  if (devices.empty()) GTEST_SKIP() << "no device";
  std::vector<FusionCase> cases = Cases();
  cases.push_back(ProductAndRmsNorm());
  std::set<Scope> met = RunWithDrawnScopes(cases, devices, 4);
  met.erase(Scope::kWarp);  // codegen_rows_test.cc asks for it
  EXPECT_EQ(met, (std::set<Scope>{Scope::kLane, Scope::kBlock, Scope::kDevice}));
}

TEST(CodegenScopes, RecomputedNodesAreComputedInEachFusionBlock) {
  // A mask that two sums read: one fusion block owns it and stores it for nobody, the other computes it again.
  G g;
  const V mask = g.Op("Mul", {g.Op("Cast", {g.In({4, 1, 16}, DType::kI32)}, {{"to", int64_t{1}}}), g.Scalar(-2.5)});
  const V wide = g.Op("Expand", {mask, g.Ints({4, 12, 16})});
  g.Out(g.Op("Add", {g.In({4, 12, 16}), wide}));
  g.Out(g.Op("Mul", {g.In({4, 12, 16}), wide}));
  FusionBlock owner = {0, 1, 2, 3}, other = {4};
  owner.unread = {wide};
  other.recomputed = {0, 1, 2};
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    options.emplace_back(RunOptions{device}).fusion_blocks = {owner, other};
  }
  for (const FusionResult& result : RunCases({{"mask", g}}, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 2u);
    for (const FusionKernel& kernel : result.kernels) {
      for (const KernelArg& arg : kernel.args) EXPECT_NE(arg.value, wide) << "it is handed from block to block";
    }
  }
}

// --- two-phase reductions (compiler/schedule/rewrite/split_reductions.h): a barrier stands behind the first `products`
// nodes, and reductions behind it may be computed in two parts.

// All nodes in one fusion block. Results of the first `products` nodes may cross a barrier.
FusionBlock BehindProducts(const ecg::Graph& graph, int products) {
  FusionBlock fusion_block;
  for (size_t n = 0; n < graph.nodes().size(); ++n) fusion_block.nodes.push_back(static_cast<int>(n));
  for (HandOver& hand_over : InnerHandOvers(graph, fusion_block)) {
    if (hand_over.producer >= products || hand_over.consumer < products) continue;
    hand_over.nearest = Scope::kBlock;
    hand_over.furthest = Scope::kDevice;
    fusion_block.inner.push_back(hand_over);
  }
  return fusion_block;
}

bool HasPartials(const movement::Kernel& kernel) {
  bool partials = false;
  for (const movement::Phase& phase : kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) { partials = partials || step.label == "partial"; });
  }
  return partials;
}

// The first forms of the fusion block, at most `most`, that compute parts of reductions.
std::vector<int> SplitForms(const ecg::Graph& graph, const FusionBlock& fusion_block, const DeviceModel& device,
                            size_t most) {
  std::vector<int> forms;
  std::set<std::string> known;
  for (int form = 0; form < 24 && forms.size() < most; ++form) {
    ScheduleOptions options;
    options.choices = {{"form", form}};
    const auto kernel = MakeFusionKernel(graph, fusion_block, LiveOutOf(graph, fusion_block), {}, device, options);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) break;
    if (HasPartials(kernel->kernel) && known.insert(kernel->key).second) forms.push_back(form);
  }
  return forms;
}

void RunTwoPhaseReductions(const std::vector<DeviceModel>& devices, size_t forms) {
  const std::vector<std::pair<FusionCase, int>> cases = {{ProductAndLayerNorm(), 3},
                                                         {ProductAndRmsNorm(), 1},
                                                         {ProductAndSoftmax(), 2},
                                                         {ConvolutionAndInstanceNorm(), 1}};
  for (const auto& [fusion_case, products] : cases) {
    const FusionBlock fusion_block = BehindProducts(fusion_case.graph, products);
    for (const DeviceModel& device : devices) {
      std::vector<RunOptions> options;
      for (const int form : SplitForms(fusion_case.graph, fusion_block, device, forms)) {
        RunOptions& option = options.emplace_back(RunOptions{device});
        option.fusion_blocks = {fusion_block};
        option.choices = {{"form", form}};
        if (device.kind != "cpu") continue;
        options.push_back(option);
        options.back().layouts = LayoutMode::kChosen;
      }
      EXPECT_FALSE(options.empty()) << fusion_case.name << " " << device.march;
      const std::string failures = Failures({fusion_case}, options);
      EXPECT_EQ(failures, "");
    }
  }
}

TEST(CodegenScopes, TwoPhaseReductionsComputeTheSame) {
  RunTwoPhaseReductions({Avx512Device(), Avx2Device()}, /*forms=*/6);
}

TEST(CodegenScopes, TwoPhaseReductionsComputeTheSameOnWorkGroups) {
  std::vector<DeviceModel> devices;
  for (DeviceModel device : {OpenClTestDevice(4, 32), CudaTestDevice(64)}) {
    device.parallel_units = 4;
    device.memory[0].size_bytes = 48 << 10;
    if (CanRun(device).ok()) devices.push_back(device);
  }
  if (devices.empty()) GTEST_SKIP() << "no device";
  RunTwoPhaseReductions(devices, /*forms=*/1);
}

}  // namespace
}  // namespace fusion::testing
