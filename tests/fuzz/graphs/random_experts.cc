#include "tests/fuzz/graphs/random_experts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/graphs/mild_graph.h"

namespace fusion::fuzz {
namespace {

using ecg::ValueId;
using Ints = std::vector<int64_t>;

class Generator : private MildGraph {
 public:
  explicit Generator(uint64_t seed) : MildGraph(seed) {}

  ecg::Graph Make() {
    const bool large = draw_.Chance(0.15);  // more weights than a core's caches hold
    experts_ = large ? 8 : draw_.OneOf(Ints{1, 2, 3, 4, 7});
    chosen_ = draw_.OneOf(Ints{1, 2, 2, 3});
    tokens_ = draw_.OneOf(large ? Ints{5, 9} : Ints{1, 2, 5, 8, 13});
    rows_ = large || draw_.Chance(0.7) ? 1 : draw_.OneOf(Ints{2, 5, 9});
    const int64_t terms = draw_.OneOf(large ? Ints{96} : Ints{1, 7, 16, 24, 33, 64});
    AddPicks();
    ValueId x = NewInput({picks_, rows_, terms});
    x = AddProduct(x, terms, draw_.OneOf(large ? Ints{512, 520} : Ints{1, 5, 16, 24, 32, 48, 66}));
    x = AddMaps(x);
    if (!large && draw_.Chance(0.6)) x = AddProduct(x, Shape(x)[2], draw_.OneOf(Ints{3, 16, 40}));
    if (draw_.Chance(0.5)) x = AddSum(x);
    graph_.AddOutput(x, graph_.value(x).name);
    return std::move(graph_);
  }

 private:
  // The expert of each token, or several of them; some count from the end.
  void AddPicks() {
    picks_ = tokens_ * chosen_;
    const DType dtype = draw_.OneOf(std::vector<DType>{DType::kI64, DType::kI64, DType::kI32});
    ids_ = graph_.AddInput(absl::StrCat("ids_below", experts_), {dtype, {picks_}});
    if (draw_.Chance(0.3)) ids_ = Add("Sub", {ids_, Scalar(dtype, draw_.OneOf(Ints{0, experts_}))});
  }

  ValueId Scalar(DType dtype, int64_t value) {
    return graph_.AddConstant(NewName("c"), Tensor::From<int64_t>(dtype, {}, {value}));
  }
  ValueId ShapeOf(const Ints& extents) {
    return graph_.AddConstant(NewName("c"),
                              Tensor::From<int64_t>(DType::kI64, {static_cast<int64_t>(extents.size())}, extents));
  }

  ValueId Weights(const fusion::Shape& shape) {
    if (draw_.Chance(0.7)) return NewConstant(shape);
    return NewInput(shape);
  }

  // [picks, rows, terms] times the picked [terms, columns].
  ValueId AddProduct(ValueId x, int64_t terms, int64_t columns) {
    const bool turned = draw_.Chance(0.5);
    const auto pick = [&](const fusion::Shape& shape) {
      if (draw_.Chance(0.7)) return Add("Gather", {Weights(shape), ids_});
      const ValueId tuples = Add("Reshape", {ids_, ShapeOf({picks_, 1})});
      return Add("GatherND", {Weights(shape), tuples});
    };
    ecg::Attributes swap;
    swap.Set("perm", Ints{0, 2, 1});
    ValueId y = ecg::kNone;
    if (turned) {  // weights that lie along the terms: [columns, terms] times [terms, rows]
      const ValueId picked = pick({experts_, columns, terms});
      y = Add("Transpose", {Add("MatMul", {picked, Add("Transpose", {x}, swap)})}, swap);
    } else {
      y = Add("MatMul", {x, pick({experts_, terms, columns})});
    }
    return draw_.Chance(0.3) ? Add("Add", {y, pick({experts_, 1, columns})}) : y;
  }

  ValueId AddMaps(ValueId x) {
    const int64_t columns = Shape(x)[2];
    if (columns % 2 == 0 && draw_.Chance(0.4)) {  // a half gates the other
      const auto half = [&](int64_t from) {
        return Add("Slice", {x, ShapeOf({from}), ShapeOf({from + columns / 2}), ShapeOf({2})});
      };
      const ValueId gate = half(0);
      return Add("Mul", {Add("Mul", {gate, Add("Sigmoid", {gate})}), half(columns / 2)});
    }
    return draw_.Chance(0.5) ? Add("Relu", {x}) : x;
  }

  // The weighted sum over the experts of a token.
  ValueId AddSum(ValueId x) {
    const ValueId weighted = Add("Mul", {x, NewInput({picks_, 1, 1})});
    const ValueId by_token = Add("Reshape", {weighted, ShapeOf({tokens_, chosen_, rows_, Shape(x)[2]})});
    ecg::Attributes keep;
    keep.Set("keepdims", int64_t{0});
    return Add("ReduceSum", {by_token, ShapeOf({1})}, keep);
  }

  int64_t experts_ = 1, chosen_ = 1, tokens_ = 1, rows_ = 1;
  int64_t picks_ = 1;  // tokens · chosen
  ValueId ids_ = ecg::kNone;
};

}  // namespace

ecg::Graph RandomExperts(uint64_t seed) { return Generator(seed).Make(); }

}  // namespace fusion::fuzz
