#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(ecg::Verify(*graph).ok()) << ecg::Verify(*graph);
  return *std::move(graph);
}

int Count(const ecg::Graph& graph, const std::string& op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const ecg::Node& node) { return node.op == op; }));
}

// Runs both graphs on small integers and returns the largest difference beside the largest value.
double Difference(const ecg::Graph& a, const ecg::Graph& b) {
  std::mt19937 random(7);
  std::vector<Tensor> inputs;
  for (ecg::ValueId input : a.inputs()) {
    Tensor tensor(a.value(input).type.dtype, a.value(input).type.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, static_cast<double>(random() % 7) - 3);
    inputs.push_back(std::move(tensor));
  }
  const auto of_a = ecg::Interpret(a, inputs), of_b = ecg::Interpret(b, inputs);
  EXPECT_TRUE(of_a.ok() && of_b.ok()) << of_a.status() << of_b.status();
  double largest = 1, difference = 0;
  for (size_t o = 0; o < of_a->size(); ++o) {
    const Tensor &x = (*of_a)[o], &y = (*of_b)[o];
    EXPECT_EQ(x.shape(), y.shape());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      largest = std::max(largest, std::abs(x.GetDouble(i)));
      difference = std::max(difference, std::abs(x.GetDouble(i) - y.GetDouble(i)));
    }
  }
  return difference / largest;
}

// Two units of a network that shuffles: each convolution reads half of the channels, and the other half passes.
constexpr char kUnits[] = R"(graph g(%a: f32[1, 6, 3, 3], %b: f32[1, 6, 3, 3]) {
  %w1: f32[6, 6, 1, 1] = const #00000000000000aa
  %w2: f32[5, 6, 1, 1] = const #00000000000000ab
  %split: i64[5] = const {1, 2, 6, 3, 3}
  %whole: i64[4] = const {1, 12, 3, 3}
  %zero: i64[1] = const {0}
  %half: i64[1] = const {6}
  %end: i64[1] = const {12}
  %channels: i64[1] = const {1}
  %c: f32[1, 12, 3, 3] = Concat(%a, %b) {axis = 1}
  %r: f32[1, 2, 6, 3, 3] = Reshape(%c, %split)
  %t: f32[1, 6, 2, 3, 3] = Transpose(%r) {perm = ints[0, 2, 1, 3, 4]}
  %s: f32[1, 12, 3, 3] = Reshape(%t, %whole)
  %pass: f32[1, 6, 3, 3] = Slice(%s, %zero, %half, %channels)
  %in: f32[1, 6, 3, 3] = Slice(%s, %half, %end, %channels)
  %y: f32[1, 6, 3, 3] = Conv(%in, %w1)
  %c2: f32[1, 12, 3, 3] = Concat(%pass, %y) {axis = 1}
  %r2: f32[1, 2, 6, 3, 3] = Reshape(%c2, %split)
  %t2: f32[1, 6, 2, 3, 3] = Transpose(%r2) {perm = ints[0, 2, 1, 3, 4]}
  %s2: f32[1, 12, 3, 3] = Reshape(%t2, %whole)
  %in2: f32[1, 6, 3, 3] = Slice(%s2, %half, %end, %channels)
  %z: f32[1, 5, 3, 3] = Conv(%in2, %w2)
  return %z
})";

TEST(CarryPermutations, ShufflesBecomeSegments) {
  const ecg::Graph graph = Parsed(kUnits), carried = CarryPermutations(graph);
  EXPECT_TRUE(ecg::Verify(carried).ok()) << ecg::Verify(carried);
  EXPECT_EQ(Count(carried, "Transpose"), 0);
  EXPECT_EQ(Count(carried, "Reshape"), 0);
  EXPECT_EQ(Count(carried, "Concat"), 2) << "one in front of each convolution";
  EXPECT_EQ(Count(carried, "Slice"), 5) << "halves of both inputs; then quarters of them, and half of the first result";
  EXPECT_LT(Difference(graph, carried), 1e-6);
  EXPECT_EQ(ecg::Print(CarryPermutations(carried)), ecg::Print(carried));
}

TEST(CarryPermutations, PassesDepthwiseConvolutionsAndElementwiseOperators) {
  const ecg::Graph graph = Parsed(R"(graph g(%x: f32[1, 4, 5, 5]) {
  %i: i64[4] = const {2, 0, 3, 1}
  %d: f32[4, 1, 3, 3] = const #00000000000000aa
  %k: f32[4, 1, 1] = const {1.0, 2.0, 3.0, 4.0}
  %w: f32[2, 4, 1, 1] = const #00000000000000ab
  %p: f32[1, 4, 5, 5] = Gather(%x, %i) {axis = 1}
  %y: f32[1, 4, 3, 3] = Conv(%p, %d) {group = 4}
  %m: f32[1, 4, 3, 3] = Mul(%y, %k)
  %r: f32[1, 4, 3, 3] = Relu(%m)
  %z: f32[1, 2, 3, 3] = Conv(%r, %w)
  return %z
})");
  const ecg::Graph carried = CarryPermutations(graph);
  EXPECT_EQ(carried.nodes().size(), 4u) << "no Gather";
  EXPECT_LT(Difference(graph, carried), 1e-6);
}

TEST(CarryPermutations, OrderThatSomebodyNeedsStays) {
  const auto stays = [](const std::string& rest, const std::string& what) {
    const ecg::Graph graph = Parsed(absl::StrCat(R"(graph g(%x: f32[1, 4, 5, 5], %z: f32[1, 4, 5, 5]) {
  %i: i64[4] = const {2, 0, 3, 1}
  %w: f32[2, 4, 1, 1] = const #00000000000000ab
  %p: f32[1, 4, 5, 5] = Gather(%x, %i) {axis = 1}
)",
                                                 rest));
    EXPECT_EQ(ecg::Print(CarryPermutations(graph)), ecg::Print(graph)) << what;
  };
  stays("  %y: f32[1, 2, 5, 5] = Conv(%p, %w)\n  return %y, %p\n}", "the permuted value is an output");
  stays("  %r: f32[1, 4, 5, 5] = Relu(%p)\n  %y: f32[1, 2, 5, 5] = Conv(%r, %w)\n  return %y, %r\n}",
        "what is made of it is an output");
  stays("  %a: f32[1, 4, 5, 5] = Add(%p, %z)\n  %y: f32[1, 2, 5, 5] = Conv(%a, %w)\n  return %y\n}",
        "it meets a value in its own order");
  stays("  %y: f32[1, 2, 5, 5] = Conv(%p, %w)\n  %s: f32[1, 4, 5, 5] = Add(%p, %z)\n  return %y, %s\n}",
        "one of two readers needs the order, so that the copy would stay beside another one");
}

TEST(CarryPermutations, NoLongerRunsNoChange) {
  const ecg::Graph graph = Parsed(R"(graph g(%a: f32[1, 4, 5, 5], %b: f32[1, 4, 5, 5]) {
  %w: f32[2, 8, 1, 1] = const #00000000000000ab
  %c: f32[1, 8, 5, 5] = Concat(%b, %a) {axis = 1}
  %y: f32[1, 2, 5, 5] = Conv(%c, %w)
  return %y
})");
  EXPECT_EQ(ecg::Print(CarryPermutations(graph)), ecg::Print(graph));
}

// Draws images that are concatenated, sliced, shuffled and gathered by tables, and convolutions and other operators
// that read them.
class RandomImages {
 public:
  explicit RandomImages(unsigned seed) : random_(seed) {
    for (int i = 0; i < 2; ++i) {
      images_.push_back(graph_.AddInput(absl::StrCat("x", i), {DType::kF32, {1, Draw(2, 12), 4, 4}}));
    }
  }

  ecg::Graph Run() {
    for (int step = Draw(4, 16); step > 0; --step) Step();
    for (int output = Draw(1, 2); output > 0; --output) Compute(images_[images_.size() - output]);
    ecg::AddOwnOutput(&graph_, images_.back(), "y");
    return std::move(graph_);
  }

 private:
  int64_t Draw(int64_t least, int64_t most) { return least + static_cast<int64_t>(random_() % (most - least + 1)); }
  ecg::ValueId Image() { return images_[images_.size() - Draw(1, std::min<int64_t>(4, images_.size()))]; }
  int64_t ChannelsOf(ecg::ValueId image) const { return graph_.value(image).type.shape[1]; }
  ecg::ValueId Ints(const std::vector<int64_t>& values) {
    return graph_.AddConstant("", Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values));
  }
  ecg::ValueId Weights(Shape shape) {
    Tensor tensor(DType::kF32, std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, static_cast<double>(Draw(-2, 2)));
    return graph_.AddConstant("", std::move(tensor));
  }

  ecg::ValueId Add(const std::string& op, std::vector<ecg::ValueId> inputs, ecg::Attributes attributes = {}) {
    std::vector<const ecg::Value*> values;
    for (ecg::ValueId input : inputs) values.push_back(&graph_.value(input));
    const std::string name;
    const auto types = ops::InferTypes(ops::OpContext(op, name, attributes, values), 1);
    EXPECT_TRUE(types.ok()) << types.status();
    return graph_.node(graph_.AddNode(op, name, std::move(inputs), std::move(attributes), *types)).outputs[0];
  }

  static ecg::Attributes With(const std::string& name, ecg::Attribute value) {
    ecg::Attributes attributes;
    attributes.Set(name, std::move(value));
    return attributes;
  }

  void Step() {
    const ecg::ValueId image = Image();
    const int64_t channels = ChannelsOf(image);
    switch (Draw(0, 6)) {
      case 0:
        if (channels <= 24) images_.push_back(Add("Concat", {image, Image()}, With("axis", int64_t{1})));
        return;
      case 1: {
        const int64_t first = Draw(0, channels - 1);
        images_.push_back(Add("Slice", {image, Ints({first}), Ints({Draw(first + 1, channels)}), Ints({1})}));
        return;
      }
      case 2: {
        std::vector<int64_t> table(channels);
        std::iota(table.begin(), table.end(), 0);
        std::shuffle(table.begin(), table.end(), random_);
        table.resize(Draw(1, channels));
        images_.push_back(Add("Gather", {image, Ints(table)}, With("axis", int64_t{1})));
        return;
      }
      case 3:
      case 4:
        return Shuffle(image, channels);
      default:
        return Compute(image);
    }
  }

  void Shuffle(ecg::ValueId image, int64_t channels) {
    for (const int64_t groups : {2, 3, 4}) {
      if (channels % groups != 0) continue;
      const ecg::ValueId split = Add("Reshape", {image, Ints({1, groups, channels / groups, 4, 4})});
      const ecg::ValueId turned = Add("Transpose", {split}, With("perm", std::vector<int64_t>{0, 2, 1, 3, 4}));
      images_.push_back(Add("Reshape", {turned, Ints({1, channels, 4, 4})}));
      return;
    }
  }

  void Compute(ecg::ValueId image) {
    const int64_t channels = ChannelsOf(image);
    ecg::Attributes same = With("pads", std::vector<int64_t>{1, 1, 1, 1});
    switch (Draw(0, 5)) {
      case 0:
        images_.push_back(Add("Relu", {image}));
        return;
      case 1:
        images_.push_back(Add("Mul", {image, Weights({channels, 1, 1})}));
        return;
      case 2:
        same.Set("group", channels);
        images_.push_back(Add("Conv", {image, Weights({channels, 1, 3, 3}), Weights({channels})}, same));
        return;
      case 3:
        same.Set("kernel_shape", std::vector<int64_t>{3, 3});
        images_.push_back(Add("MaxPool", {image}, same));
        return;
      default: {
        const int64_t made = Draw(1, 12), taps = Draw(0, 1) == 0 ? 1 : 3;
        const ecg::ValueId weights = Weights({made, channels, taps, taps});
        images_.push_back(Add("Conv", {image, weights, Weights({made})}, taps == 1 ? ecg::Attributes() : same));
        return;
      }
    }
  }

  std::mt19937 random_;
  ecg::Graph graph_;
  std::vector<ecg::ValueId> images_;
};

TEST(CarryPermutations, RandomGraphsStayEqual) {
  int changed = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const ecg::Graph graph = RemoveDead(RandomImages(seed).Run());
    ASSERT_TRUE(ecg::Verify(graph).ok()) << seed << ecg::Verify(graph);
    const ecg::Graph carried = CarryPermutations(graph);
    ASSERT_TRUE(ecg::Verify(carried).ok()) << seed << ecg::Verify(carried);
    EXPECT_LT(Difference(graph, carried), 1e-5) << "seed " << seed << "\n" << ecg::Print(graph) << ecg::Print(carried);
    changed += ecg::Print(graph) != ecg::Print(carried);
  }
  EXPECT_GT(changed, 150);
}

}  // namespace
}  // namespace fusion::simplify
