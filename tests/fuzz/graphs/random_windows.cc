#include "tests/fuzz/graphs/random_windows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/text.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "tests/fuzz/graphs/drawing.h"
#include "tests/fuzz/graphs/mild_values.h"

namespace fusion::fuzz {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMostElements = 6000;  // of a value
constexpr int64_t kMostTerms = 2000000;  // of a window operator, which the interpreter evaluates
constexpr size_t kMostNodes = 14;        // of a chain
constexpr const char* kWindows[] = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"};

enum class Kind : uint8_t { kConv, kDepthwise, kPointwise, kMaxPool, kAveragePool, kTransposed };

class Generator {
 public:
  explicit Generator(uint64_t seed) : draw_(seed, GraphLimits()) {}

  ecg::Graph Make() {
    const Shape x = {draw_.OneOf(Ints{1, 1, 2}), draw_.OneOf(Ints{1, 3, 5, 8, 16, 20}),
                     draw_.OneOf(Ints{1, 2, 7, 13, 16, 24}), draw_.OneOf(Ints{1, 3, 11, 14, 16, 33})};
    last_ = graph_.AddInput(MildName(x, &draw_), {DType::kF32, x});
    const int64_t windows = draw_.OneOf(Ints{2, 2, 2, 3, 3, 4, 5});
    for (int64_t made = 0, tries = 0; made < windows && tries < 100; ++tries) {
      if (!AddWindow(draw_.OneOf(kinds_))) continue;
      ++made;
      AddMap();
    }
    graph_.AddOutput(last_, graph_.value(last_).name);
    return std::move(graph_);
  }

 private:
  struct Window {
    Ints kernel, strides, dilations, pads;
  };

  Window DrawWindow(Kind kind) {
    const bool pool = kind == Kind::kMaxPool || kind == Kind::kAveragePool;
    if (kind == Kind::kPointwise) return {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    Window window;
    for (int d = 0; d < 2; ++d) {
      window.kernel.push_back(draw_.OneOf(Ints{1, 2, 3, 3, 3, 5}));
      window.strides.push_back(draw_.OneOf(Ints{1, 1, 1, 2, 3}));
      window.dilations.push_back(pool ? 1 : draw_.OneOf(Ints{1, 1, 1, 2, 3, 4}));
    }
    if (draw_.Chance(0.5)) {  // the result is as large as the image, but for strides
      for (int p = 0; p < 4; ++p) window.pads.push_back((window.kernel[p % 2] - 1) * window.dilations[p % 2] / 2);
    } else {
      for (int p = 0; p < 4; ++p) {
        window.pads.push_back(pool ? draw_.OneOf(Ints{0, window.kernel[p % 2] / 2})
                                   : draw_.OneOf(Ints{0, 1, 1, window.kernel[p % 2], 6}));
      }
    }
    return window;
  }

  // Adds a window operator over the last value; false where it does not fit.
  bool AddWindow(Kind kind) {
    const Window window = DrawWindow(kind);
    const int64_t channels = graph_.value(last_).type.shape[1];
    const int64_t results = kind == Kind::kDepthwise ? channels : draw_.OneOf(Ints{1, 4, 8, 16, 24});
    ecg::Attributes attrs;
    attrs.Set("pads", window.pads);
    attrs.Set("strides", window.strides);
    if (kind == Kind::kMaxPool || kind == Kind::kAveragePool) {
      attrs.Set("kernel_shape", window.kernel);
      return AddNode(kind == Kind::kMaxPool ? "MaxPool" : "AveragePool", {last_}, attrs, 0);
    }
    attrs.Set("dilations", window.dilations);
    if (kind == Kind::kDepthwise) attrs.Set("group", channels);
    const bool transposed = kind == Kind::kTransposed;
    const Shape filter = {transposed ? channels : results,
                          transposed ? results : kind == Kind::kDepthwise ? 1 : channels, window.kernel[0],
                          window.kernel[1]};
    std::vector<Shape> constants = {filter};
    if (draw_.Chance(0.6)) constants.push_back({results});
    return AddNode(transposed ? "ConvTranspose" : "Conv", {last_}, attrs, filter[1] * filter[2] * filter[3], constants);
  }

  // Adds an operator on single elements, or none.
  void AddMap() {
    if (draw_.Chance(0.4)) AddNode("Relu", {last_}, {}, 1);
    std::vector<ecg::ValueId> alike;
    for (ecg::ValueId v = 0; v < last_; ++v) {
      if (!graph_.value(v).constant && graph_.value(v).type == graph_.value(last_).type) alike.push_back(v);
    }
    if (!alike.empty() && draw_.Chance(0.3)) AddNode("Add", {last_, draw_.OneOf(alike)}, {}, 1);
    if (draw_.Chance(0.15)) AddNode("Sigmoid", {last_}, {}, 1);
  }

  // `terms`: how many the operator sums for each result.
  bool AddNode(const std::string& op, std::vector<ecg::ValueId> inputs, const ecg::Attributes& attrs, int64_t terms,
               const std::vector<Shape>& constants = {}) {
    std::vector<ecg::Value> made;
    for (const Shape& shape : constants) {
      ecg::Value& value = made.emplace_back();
      value.type = {DType::kF32, shape};
      value.constant = MildConstant(shape, &draw_);
    }
    std::vector<const ecg::Value*> operands;
    for (const ecg::ValueId v : inputs) operands.push_back(&graph_.value(v));
    for (const ecg::Value& value : made) operands.push_back(&value);
    const std::string name;
    const auto types = ops::InferTypes(ops::OpContext(op, name, attrs, operands), 1);
    if (!types.ok()) return false;
    const int64_t elements = NumElements((*types)[0].shape);
    if (elements == 0 || elements > kMostElements || elements * terms > kMostTerms) return false;
    for (const ecg::Value& value : made) {
      inputs.push_back(graph_.AddConstant(absl::StrCat("c", graph_.values().size()), *value.constant));
    }
    const std::string result = absl::StrCat("v", graph_.nodes().size());
    const ecg::NodeId node = graph_.AddNode(op, "", inputs, attrs, *types, {result});
    last_ = graph_.node(node).outputs[0];
    return true;
  }

  Drawing draw_;
  const std::vector<Kind> kinds_ = {Kind::kConv,      Kind::kConv,    Kind::kConv,        Kind::kDepthwise,
                                    Kind::kDepthwise, Kind::kPointwise, Kind::kMaxPool, Kind::kAveragePool,
                                    Kind::kTransposed};
  ecg::Graph graph_;
  ecg::ValueId last_ = ecg::kNone;
};

}  // namespace

ecg::Graph RandomWindows(uint64_t seed) { return Generator(seed).Make(); }

bool IsChainOfWindows(const ecg::Graph& graph) {
  const auto windows = std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const ecg::Node& node) {
    return std::find(std::begin(kWindows), std::end(kWindows), node.op) != std::end(kWindows);
  });
  return windows >= 2 && graph.nodes().size() <= kMostNodes && graph.output_extents().empty();
}

}  // namespace fusion::fuzz
