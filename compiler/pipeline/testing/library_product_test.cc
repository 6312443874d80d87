// Products that a library of the target computes. The compiler recognises their matrices, and the bundle's device runs
// them through a cuBLASLt that the processor emulates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/library_bundle.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

DeviceModel WithLibrary() {
  DeviceModel device = CudaTestDevice(32);
  device.product_library = "cuBLASLt of a test";
  return device;
}

size_t LibraryPhases(const FusionKernel& kernel) { return LibraryCallsOf(kernel.kernel).size(); }

FusionCase Product(const std::string& name, const Shape& a, const Shape& b, bool weights) {
  G g;
  g.Out(g.Op("MatMul", {g.In(a), weights ? g.Weight(b) : g.In(b)}));
  return FusionCase(name, g);
}

TEST(LibraryProduct, IsTheProductThatTheFusionBlockHas) {
  std::vector<FusionCase> cases = {
      Product("plain", {64, 96}, {96, 80}, true),
      Product("odd", {37, 129}, {129, 51}, true),
      Product("batches", {3, 2, 40, 64}, {3, 2, 64, 48}, false),
      Product("a batch of rows", {3, 40, 64}, {64, 48}, true),
  };
  const auto add = [&](const char* name, const G& g) { cases.push_back(FusionCase(name, g)); };
  for (const int64_t transposed : {0, 1}) {
    G g;  // the library adds a bias along the columns
    g.Out(g.Op("Gemm", {g.In(transposed ? Shape{96, 64} : Shape{64, 96}), g.Weight({80, 96}), g.Weight({80})},
               {{"transA", transposed}, {"transB", int64_t{1}}}));
    add("bias", g);
  }
  {
    G g;  // the operators behind the product are text
    const V sum = g.Op("Add", {g.Op("MatMul", {g.In({64, 96}), g.Weight({96, 80})}), g.Weight({80})});
    g.Out(g.Op("Add", {g.Op("Mul", {sum, g.Op("Erf", {sum})}), g.In({64, 80})}));
    add("epilogue", g);
  }
  {
    G g;  // heads beside each other: pitches that are not row lengths, and a result between others
    const auto heads = [&](const Ints& perm) {
      return g.Op("Transpose", {g.Op("Reshape", {g.In({1, 48, 4 * 32}), g.Ints({1, 48, 4, 32})})}, {{"perm", perm}});
    };
    g.Out(g.Op("MatMul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})}));
    add("heads", g);
  }
  {
    G g;
    g.Out(g.Op("Relu", {g.Op("Conv", {g.In({1, 48, 9, 11}), g.Weight({40, 48, 1, 1}), g.Weight({40})})}));
    add("a convolution of one tap", g);
  }
  {
    G g;
    const V y = g.Op("MatMul", {g.In({64, 96}), g.Weight({96, 80})});
    g.Out(g.Op("LayerNormalization", {y, g.Weight({80}), g.Weight({80})}));
    add("before a normalisation", g);
  }
  RunOptions options{WithLibrary()};
  options.choices = {{"library", 1}};
  for (const FusionResult& result : RunCases(cases, {options})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u) << result.name;
    const std::vector<LibraryCall> calls = LibraryCallsOf(result.kernels[0].kernel);
    ASSERT_EQ(calls.size(), 1u) << result.name << "\n" << movement::Print(result.kernels[0].kernel);
    ASSERT_TRUE(std::holds_alternative<LibraryProduct>(calls[0])) << result.name;
    if (absl::StartsWith(result.name, "bias")) {
      EXPECT_EQ(result.kernels[0].kernel.phases.size(), 1u) << result.name;
      EXPECT_GE(std::get<LibraryProduct>(calls[0]).bias, 0) << result.name;
    }
  }
}

TEST(LibraryProduct, IsNeverTheModelsChoiceAndOnlyOfOneProduct) {
  const auto kernel_of = [](const G& g, const DeviceModel& device, const Choices& choices) {
    std::vector<ecg::NodeId> nodes;
    for (size_t n = 0; n < g.graph().nodes().size(); ++n) nodes.push_back(static_cast<int>(n));
    return MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, device, {choices});
  };
  G product;
  product.Out(product.Op("MatMul", {product.In({512, 512}), product.In({512, 512})}));
  const auto own = kernel_of(product, WithLibrary(), {});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(LibraryPhases(*own), 0u);
  EXPECT_TRUE(std::any_of(own->choices.begin(), own->choices.end(), [](const ChoicePoint& point) {
    return point.name == "library" && point.kind == ChoiceKind::kUnmodelled;
  }));
  const auto without = kernel_of(product, CudaTestDevice(32), {{"library", 1}});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(LibraryPhases(*without), 0u);
  EXPECT_EQ(without->key, own->key);

  G two;
  two.Out(two.Op("MatMul", {two.Op("MatMul", {two.In({64, 96}), two.In({96, 80})}), two.In({80, 64})}));
  G window;
  window.Out(window.Op("Conv", {window.In({1, 48, 16, 16}), window.Weight({64, 48, 3, 3})}));
  G computed;
  computed.Out(computed.Op("MatMul", {computed.Op("Exp", {computed.In({64, 96})}), computed.In({96, 80})}));
  for (const G* g : {&two, &window, &computed}) {
    const auto kernel = kernel_of(*g, WithLibrary(), {{"library", 1}});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const ChoicePoint& point : kernel->choices) {
      if (g != &computed) EXPECT_NE(point.name, "library");
    }
    if (g != &computed) EXPECT_EQ(LibraryPhases(*kernel), 0u);
  }
}

TEST(LibraryProduct, IsCalledByBundlesWhereItWasMeasuredFaster) {
  auto bundles = LibraryBundles::Create();
  ASSERT_TRUE(bundles.ok()) << bundles.status();
  G g;
  const V x = g.Op("Gemm", {g.In({64, 96}), g.Weight({96, 80}), g.Weight({80})});
  const V y = g.Op("Erf", {g.Op("MatMul", {x, g.Weight({80, 128})})});
  g.Out(g.Op("MatMul", {g.In({2, 40, 64}), y}));
  for (const char* precision : {"fp32", "fp16"}) {
    const auto run = [&](double share) { return (*bundles)->Run(g.graph(), {WithLibrary(), share, precision}); };
    const auto ours = run(2), theirs = run(0.5);
    ASSERT_TRUE(ours.ok()) << precision << ": " << ours.status();
    ASSERT_TRUE(theirs.ok()) << precision << ": " << theirs.status();
    EXPECT_EQ(ours->calls.size(), 0u) << precision;
    EXPECT_LT(ours->format, 6) << precision;
    EXPECT_GE(theirs->calls.size(), 2u) << precision;
    EXPECT_EQ(theirs->format, 6) << precision;
    ASSERT_EQ(ours->outputs.size(), theirs->outputs.size());
    for (size_t o = 0; o < ours->outputs.size(); ++o) {
      const absl::Status same = CompareOutputs(ours->outputs[o], theirs->outputs[o]);
      EXPECT_TRUE(same.ok()) << precision << ": " << same;
    }
  }
}

}  // namespace
}  // namespace fusion::testing
