#include "compiler/pipeline/testing/window_chains.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

}  // namespace

V Conv(G* g, V x, const Shape& w, Ints pads, Ints strides, Ints dilations, int64_t group) {
  return g->Op("Conv", {x, g->Weight(w), g->Weight({w[0]})},
               {{"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", group}});
}

V Depthwise(G* g, V x, int64_t channels, int64_t taps, int64_t stride) {
  const int64_t pad = taps / 2;
  return Conv(g, x, {channels, 1, taps, taps}, {pad, pad, pad, pad}, {stride, stride}, {1, 1}, channels);
}

V Relu(G* g, V x) { return g->Op("Relu", {x}); }

FusionCase Case(const std::string& name, G* g, V result) {
  g->Out(result);
  return {name, *g};
}

FusionCase TwoConvolutions(const Shape& x, int64_t middle, int64_t last, Ints strides) {
  G g;
  const V first = Relu(&g, Conv(&g, g.In(x), {middle, x[1], 3, 3}));
  return Case(absl::StrCat("conv ", x[1], " ", middle, " ", last, " of ", x[2], "x", x[3], " / ", strides[0]), &g,
              Conv(&g, first, {last, middle, 3, 3}, kPad1, strides));
}

FusionCase DepthwiseAndPointwise(int64_t taps, int64_t stride) {
  G g;
  const V first = Relu(&g, Depthwise(&g, g.In({1, 32, 14, 14}), 32, taps, stride));
  return Case(absl::StrCat("depthwise ", taps, " / ", stride), &g, Conv(&g, first, {24, 32, 1, 1}, Ints(4, 0)));
}

FusionCase InvertedResidual(int64_t stride) {
  G g;
  const V x = g.In({1, 16, 14, 14});
  const V wide = Relu(&g, Conv(&g, x, {48, 16, 1, 1}, Ints(4, 0)));
  const V narrow = Conv(&g, Relu(&g, Depthwise(&g, wide, 48, 3, stride)), {16, 48, 1, 1}, Ints(4, 0));
  return Case(absl::StrCat("inverted residual / ", stride), &g, stride == 1 ? g.Op("Add", {narrow, x}) : narrow);
}

FusionCase PoolingBehindConvolution(const std::string& pool, int64_t stride) {
  G g;
  const V first = Conv(&g, g.In({1, 8, 15, 14}), {16, 8, 3, 3});
  return Case(absl::StrCat(pool, " / ", stride), &g,
              g.Op(pool, {first}, {{"kernel_shape", Ints{3, 3}}, {"pads", kPad1}, {"strides", Ints{stride, stride}}}));
}

FusionCase ConvolutionBehindPooling() {
  G g;
  const V pooled = g.Op("MaxPool", {g.In({1, 16, 14, 14})},
                        {{"kernel_shape", Ints{3, 3}}, {"pads", kPad1}, {"strides", Ints{2, 2}}});
  return Case("pool, conv", &g, Conv(&g, pooled, {16, 16, 3, 3}));
}

std::vector<FusionCase> ReadAgain() {
  std::vector<FusionCase> cases;
  {
    G g;
    const V x = g.In({1, 16, 12, 14});
    const V second = Conv(&g, Relu(&g, Conv(&g, x, {16, 16, 3, 3})), {16, 16, 3, 3});
    cases.push_back(Case("residual block", &g, Relu(&g, g.Op("Add", {second, x}))));
  }
  {
    G g;
    const V first = Relu(&g, Conv(&g, g.In({1, 8, 12, 14}), {16, 8, 3, 3}));
    const V second = Relu(&g, Conv(&g, first, {16, 16, 3, 3}));
    const V third = Conv(&g, second, {16, 16, 3, 3});
    cases.push_back(Case("read again two windows later", &g, g.Op("Add", {third, first})));
  }
  return cases;
}

FusionCase DrawChain(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::vector<int64_t> from) { return from[random() % from.size()]; };
  G g;
  Shape shape = {draw({1, 1, 2}), draw({1, 5, 16, 20}), draw({1, 2, 7, 13, 24}), draw({1, 3, 11, 16, 33})};
  V x = g.In(shape);
  std::string name = absl::StrCat("chain ", seed, ":");
  for (int64_t windows = draw({2, 2, 3, 4}); windows > 0; --windows) {
    const int64_t kind = draw({0, 0, 0, 1, 1, 2, 3, 4});
    const Ints kernel = {draw({1, 2, 3, 3, 5}), draw({1, 2, 3, 3, 5})};
    const Ints strides = {draw({1, 1, 1, 2, 3}), draw({1, 1, 1, 2})};
    const bool pool = kind == 2 || kind == 3;
    const Ints dilations = pool ? Ints{1, 1} : Ints{draw({1, 1, 2, 4}), draw({1, 1, 2})};
    Ints pads(4);
    for (size_t p = 0; p < 4; ++p) pads[p] = draw(pool ? Ints{0, kernel[p % 2] / 2} : Ints{0, 1, 1, kernel[p % 2], 6});
    if (kind == 4 && strides[0] * (shape[2] - 1) + dilations[0] * (kernel[0] - 1) + 1 <= pads[0] + pads[2]) continue;
    if (kind == 4 && strides[1] * (shape[3] - 1) + dilations[1] * (kernel[1] - 1) + 1 <= pads[1] + pads[3]) continue;
    bool fits = true;
    for (size_t d = 0; d < 2; ++d) {
      fits = fits && shape[2 + d] + pads[d] + pads[2 + d] >= dilations[d] * (kernel[d] - 1) + 1;
    }
    if (!fits && kind != 4) continue;
    const int64_t channels = shape[1], results = kind == 1 ? channels : draw({1, 8, 16, 24});
    G::Attrs attrs = {{"pads", pads}, {"strides", strides}};
    if (pool) {
      attrs.push_back({"kernel_shape", kernel});
      x = g.Op(kind == 2 ? "MaxPool" : "AveragePool", {x}, attrs);
    } else {
      attrs.push_back({"dilations", dilations});
      if (kind == 1) attrs.push_back({"group", channels});
      const Shape filter = kind == 4 ? Shape{channels, results, kernel[0], kernel[1]}
                                     : Shape{results, kind == 1 ? 1 : channels, kernel[0], kernel[1]};
      x = g.Op(kind == 4 ? "ConvTranspose" : "Conv", {x, g.Weight(filter), g.Weight({results})}, attrs);
    }
    absl::StrAppend(&name, " ", kind);
    if (draw({0, 1}) == 1) x = Relu(&g, x);
    shape = g.graph().value(x).type.shape;
    if (shape[2] * shape[3] > 4000) break;
  }
  return Case(name, &g, Relu(&g, x));
}

}  // namespace fusion::testing
