#include "tests/fuzz/graphs/fitting.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::fuzz {
namespace {

FittingSpec Any(DType dtype, Shape shape) { return {{dtype, std::move(shape)}, "", {}, false}; }
FittingSpec Positive(Shape shape) { return {{DType::kF32, std::move(shape)}, "_positive", {}, false}; }
FittingSpec Below(DType dtype, Shape shape, int64_t limit) {
  return {{dtype, std::move(shape)}, absl::StrCat("_below", limit), {}, false};
}
FittingSpec Constant(Tensor value) { return {{value.dtype(), value.shape()}, "", std::move(value), false}; }
FittingSpec Ints(const std::vector<int64_t>& values, DType dtype = DType::kI64) {
  return Constant(Tensor::From(dtype, {static_cast<int64_t>(values.size())}, values));
}
FittingSpec Scalar(DType dtype, double value) { return Constant(Tensor::From<double>(dtype, {}, {value})); }
FittingSpec Absent() { return {{}, "", {}, true}; }

DType Byte(Drawing* d) { return d->Chance(0.5) ? DType::kU8 : DType::kI8; }

// Draws a constant or computed scale with one element, or with one per channel.
FittingSpec Scale(Drawing* d, const Shape& shape) {
  if (d->Chance(0.3)) return Positive(shape);
  static constexpr double kScales[] = {0.125, 0.5, 1, 0.1, 0.0625, 0.37};
  Tensor scale(DType::kF32, shape);
  for (int64_t i = 0; i < scale.num_elements(); ++i) scale.SetDouble(i, kScales[d->Below(std::size(kScales))]);
  return Constant(scale);
}

FittingSpec ZeroPoint(Drawing* d, DType dtype, const Shape& shape) {
  Tensor zero(dtype, shape);
  const bool none = d->Chance(0.3);
  for (int64_t i = 0; i < zero.num_elements(); ++i) {
    zero.SetInt(i, none ? 0 : IsSigned(dtype) ? d->Between(-20, 20) : d->Between(0, 140));
  }
  return Constant(zero);
}

Shape PerChannel(Drawing* d, int64_t channels) { return d->Chance(0.5) ? Shape{} : Shape{channels}; }

// Draws the shapes of two operands of a matrix product.
std::pair<Shape, Shape> Factors(Drawing* d) {
  const int64_t m = d->Between(1, 9), k = d->Between(1, 40), n = d->Between(1, 33);
  Shape a = {m, k}, b = {k, n};
  if (d->Chance(0.3)) a.insert(a.begin(), d->Between(1, 3));
  if (d->Chance(0.15) && a.size() == 3) b.insert(b.begin(), a[0]);
  return {a, b};
}

struct Window {
  Shape x, w;
  ecg::Attributes attrs;
};

Window Convolution(Drawing* d) {
  const int spatial = d->Chance(0.75) ? 2 : d->Chance(0.7) ? 1 : 3;
  const int64_t group = d->Chance(0.7) ? 1 : d->Between(2, 3), per_group = d->Between(1, 6);
  Window window;
  window.x = {d->Between(1, 2), group * per_group};
  window.w = {group * d->Between(1, 6), per_group};
  std::vector<int64_t> pads, strides, dilations;
  for (int s = 0; s < spatial; ++s) {
    const int64_t kernel = d->Between(1, 3);
    window.w.push_back(kernel);
    window.x.push_back(kernel + d->Between(0, spatial == 3 ? 3 : 6));
    strides.push_back(d->Between(1, 2));
    dilations.push_back(1);
  }
  for (int s = 0; s < 2 * spatial; ++s) pads.push_back(d->Below(2));
  window.attrs.Set("group", group);
  window.attrs.Set("pads", pads);
  if (d->Chance(0.4)) window.attrs.Set("strides", strides);
  window.attrs.Set("dilations", dilations);
  window.attrs.Set("kernel_shape", std::vector<int64_t>(window.w.begin() + 2, window.w.end()));
  window.attrs.Set("auto_pad", std::string("NOTSET"));
  return window;
}

Fitting MatMulInteger(Drawing* d) {
  const auto [a, b] = Factors(d);
  const DType ta = Byte(d), tb = Byte(d);
  Fitting fit;
  fit.operands = {Any(ta, a), Any(tb, b)};
  if (d->Chance(0.7)) fit.operands.push_back(d->Chance(0.2) ? Absent() : ZeroPoint(d, ta, {}));
  if (fit.operands.size() == 3 && (fit.operands[2].absent || d->Chance(0.7))) {
    fit.operands.push_back(ZeroPoint(d, tb, PerChannel(d, b.back())));
  }
  return fit;
}

Fitting ConvInteger(Drawing* d) {
  Window window = Convolution(d);
  const DType tx = Byte(d), tw = Byte(d);
  Fitting fit{{Any(tx, window.x), Any(tw, window.w)}, window.attrs};
  if (d->Chance(0.7)) fit.operands.push_back(ZeroPoint(d, tx, {}));
  if (fit.operands.size() == 3 && d->Chance(0.6)) {
    fit.operands.push_back(ZeroPoint(d, tw, PerChannel(d, window.w[0])));
  }
  return fit;
}

Fitting QLinearMatMul(Drawing* d) {
  const auto [a, b] = Factors(d);
  const DType ta = Byte(d), tb = Byte(d), ty = Byte(d);
  const Shape column = b.size() == 2 ? PerChannel(d, b.back()) : Shape{};
  return {{Any(ta, a), Scale(d, {}), ZeroPoint(d, ta, {}), Any(tb, b), Scale(d, column), ZeroPoint(d, tb, column),
           Scale(d, {}), ZeroPoint(d, ty, {})},
          {}};
}

Fitting QLinearConv(Drawing* d) {
  Window window = Convolution(d);
  const DType tx = Byte(d), tw = Byte(d), ty = Byte(d);
  const Shape channel = PerChannel(d, window.w[0]);
  Fitting fit{{Any(tx, window.x), Scale(d, {}), ZeroPoint(d, tx, {}), Any(tw, window.w), Scale(d, channel),
               ZeroPoint(d, tw, channel), Scale(d, {}), ZeroPoint(d, ty, {})},
              window.attrs};
  if (d->Chance(0.5)) fit.operands.push_back(Any(DType::kI32, {window.w[0]}));
  return fit;
}

Shape SomeShape(Drawing* d, int least_rank) {
  Shape shape = d->AnyShape();
  while (static_cast<int>(shape.size()) < least_rank) shape.push_back(d->Between(1, 5));
  d->Limit(&shape);
  return shape;
}

Fitting Quantize(Drawing* d, bool to_bytes) {
  const Shape x = SomeShape(d, 1);
  const int64_t axis = d->Below(static_cast<int64_t>(x.size()));
  const Shape scale = PerChannel(d, x[axis]);
  const DType narrow = Byte(d);
  Fitting fit;
  fit.operands = {Any(to_bytes ? DType::kF32 : narrow, x), Scale(d, scale)};
  if (d->Chance(0.8)) {
    fit.operands.push_back(ZeroPoint(d, narrow, scale));
  } else if (!to_bytes && d->Chance(0.3)) {
    fit.operands[0] = Any(DType::kI32, x);
  }
  fit.attrs.Set("axis", axis);
  return fit;
}

Fitting BatchNormalization(Drawing* d) {
  const Shape x = SomeShape(d, 2), channel = {x[1]};
  return {{Any(DType::kF32, x), Any(DType::kF32, channel), Any(DType::kF32, channel), Any(DType::kF32, channel),
           Positive(channel)},
          {}};
}

Fitting Col2Im(Drawing* d) {
  const int64_t kh = d->Between(1, 3), kw = d->Between(1, 3), h = kh + d->Below(5), w = kw + d->Below(5);
  return {{Any(DType::kF32, {d->Between(1, 2), d->Between(1, 3) * kh * kw, (h - kh + 1) * (w - kw + 1)}), Ints({h, w}),
           Ints({kh, kw})},
          {}};
}

Fitting DeformConv(Drawing* d) {
  const int64_t n = d->Between(1, 2), c = d->Between(1, 4), m = d->Between(1, 4), k = d->Between(1, 3);
  const int64_t h = k + d->Below(4), w = k + d->Below(4), oh = h - k + 1, ow = w - k + 1;
  Fitting fit{
      {Any(DType::kF32, {n, c, h, w}), Any(DType::kF32, {m, c, k, k}), Any(DType::kF32, {n, 2 * k * k, oh, ow})}, {}};
  if (d->Chance(0.6)) fit.operands.push_back(d->Chance(0.3) ? Absent() : Any(DType::kF32, {m}));
  if (fit.operands.size() == 4) fit.operands.push_back(Any(DType::kF32, {n, k * k, oh, ow}));
  return fit;
}

Fitting RoiAlign(Drawing* d) {
  const int64_t n = d->Between(1, 3), rois = d->Between(1, 5);
  Fitting fit{{Any(DType::kF32, {n, d->Between(1, 3), d->Between(2, 8), d->Between(2, 8)}), Any(DType::kF32, {rois, 4}),
               Below(DType::kI64, {rois}, n)},
              {}};
  fit.attrs.Set("output_height", d->Between(1, 3));
  fit.attrs.Set("output_width", d->Between(1, 3));
  fit.attrs.Set("sampling_ratio", int64_t{d->Below(3)});
  return fit;
}

Fitting AffineGrid(Drawing* d) {
  const int64_t n = d->Between(1, 2);
  return {{Any(DType::kF32, {n, 2, 3}), Ints({n, d->Between(1, 3), d->Between(1, 6), d->Between(1, 6)})}, {}};
}

Fitting Stft(Drawing* d) {
  const int64_t frame = d->Between(2, 8);
  return {{Any(DType::kF32, {d->Between(1, 2), frame + d->Below(20), 1}), Scalar(DType::kI64, d->Between(1, 4)),
           Any(DType::kF32, {frame})},
          {}};
}

Fitting NonMaxSuppression(Drawing* d) {
  const int64_t batch = d->Between(1, 2), boxes = d->Between(1, 20), classes = d->Between(1, 3);
  Fitting fit{{Any(DType::kF32, {batch, boxes, 4}), Any(DType::kF32, {batch, classes, boxes})}, {}};
  fit.operands.push_back(Scalar(DType::kI64, d->Between(1, 6)));
  fit.operands.push_back(Scalar(DType::kF32, 0.25 * d->Below(4)));
  if (d->Chance(0.5)) fit.operands.push_back(Scalar(DType::kF32, 0.5 * d->Below(3)));
  fit.attrs.Set("center_point_box", int64_t{d->Below(2)});
  return fit;
}

Fitting TopK(Drawing* d) {
  const Shape x = SomeShape(d, 1);
  const int64_t axis = d->Below(static_cast<int64_t>(x.size()));
  Fitting fit;
  fit.operands = {Any(d->DrawType(), x)};
  fit.operands.push_back(d->Chance(0.6) ? Ints({d->Between(0, x[axis])}) : Below(DType::kI64, {1}, x[axis] + 1));
  fit.attrs.Set("axis", axis);
  fit.attrs.Set("largest", int64_t{d->Below(2)});
  fit.attrs.Set("sorted", int64_t{1});
  return fit;
}

Fitting NonZero(Drawing* d) { return {{Any(d->DrawType(), SomeShape(d, 1))}, {}}; }

Fitting Unique(Drawing* d) {
  const Shape x = SomeShape(d, 1);
  Fitting fit{{Any(d->DrawType(), x)}, {}};
  if (d->Chance(0.5)) fit.attrs.Set("axis", int64_t{d->Below(static_cast<int64_t>(x.size()))});
  fit.attrs.Set("sorted", int64_t{d->Below(2)});
  return fit;
}

Fitting Compress(Drawing* d) {
  const Shape x = SomeShape(d, 1);
  const int64_t axis = d->Below(static_cast<int64_t>(x.size()));
  Fitting fit;
  const bool flat = d->Chance(0.3);
  fit.operands = {Any(d->DrawType(), x),
                  Any(DType::kBool, {d->Between(1, std::max<int64_t>(1, flat ? NumElements(x) : x[axis]))})};
  if (!flat) fit.attrs.Set("axis", axis);
  return fit;
}

// `gates`: 4 for LSTM, 3 for GRU, 1 for RNN.
Fitting Recurrence(Drawing* d, int64_t gates) {
  const int64_t steps = d->Between(1, 7), batch = d->Between(1, 3), width = d->Between(1, 6), hidden = d->Between(1, 5);
  const bool both = d->Chance(0.3), backwards = d->Chance(0.3);
  const int64_t directions = both ? 2 : 1;
  Fitting fit{{Any(DType::kF32, {steps, batch, width}), Any(DType::kF32, {directions, gates * hidden, width}),
               Any(DType::kF32, {directions, gates * hidden, hidden})},
              {}};
  if (d->Chance(0.7)) fit.operands.push_back(Any(DType::kF32, {directions, 2 * gates * hidden}));
  if (fit.operands.size() == 4 && d->Chance(0.5)) {
    fit.operands.push_back(d->Chance(0.5) ? Absent() : Below(DType::kI32, {batch}, steps + 1));
    fit.operands.push_back(Any(DType::kF32, {directions, batch, hidden}));
  }
  fit.attrs.Set("hidden_size", hidden);
  fit.attrs.Set("direction", std::string(both ? "bidirectional" : backwards ? "reverse" : "forward"));
  return fit;
}

using Maker = std::function<Fitting(Drawing*)>;

// Data, constant indices that address a box of it in order, counted from either end, and updates. One index in eight
// boxes is another one, so that it is no box.
Fitting Scatter(Drawing* d, bool nd) {
  const Shape data = SomeShape(d, 1);
  const auto rank = static_cast<int64_t>(data.size());
  const int64_t axis = d->Below(rank), depth = nd ? d->Between(1, rank) : 1;
  Shape updates = data, begins(data.size(), 0);
  for (int64_t k = 0; k < rank; ++k) {
    const bool counts = nd ? k < depth : k == axis;
    if (!counts && (nd || d->Chance(0.8))) continue;
    updates[k] = std::min<int64_t>(data[k], d->Between(1, std::max<int64_t>(1, data[k])));
    if (counts) begins[k] = d->Below(data[k] - updates[k] + 1);
  }
  Shape shape = updates;
  if (nd) shape.resize(static_cast<size_t>(depth)), shape.push_back(depth);
  Tensor indices(DType::kI64, shape);
  const bool from_end = d->Chance(0.3);
  for (int64_t e = 0; e < indices.num_elements(); ++e) {
    const int64_t k = nd ? e % depth : axis;
    int64_t inner = nd ? depth : 1;
    for (size_t dim = k + 1; dim < (nd ? static_cast<size_t>(depth) : shape.size()); ++dim) inner *= shape[dim];
    indices.SetInt(e, begins[k] + e / inner % updates[k] - (from_end ? data[k] : 0));
  }
  if (indices.num_elements() > 0 && d->Chance(0.125)) indices.SetInt(d->Below(indices.num_elements()), 0);
  Fitting fitting{{Any(DType::kF32, data), Constant(indices), Any(DType::kF32, updates)}, {}};
  if (!nd) fitting.attrs.Set("axis", axis);
  if (d->Chance(0.2)) fitting.attrs.Set("reduction", d->OneOf<std::string>({"add", "mul", "max", "min"}));
  return fitting;
}

const std::map<std::string, Maker>& Makers() {
  static const auto* makers = new std::map<std::string, Maker>{
      {"MatMulInteger", MatMulInteger},
      {"ConvInteger", ConvInteger},
      {"QLinearMatMul", QLinearMatMul},
      {"QLinearConv", QLinearConv},
      {"QuantizeLinear", [](Drawing* d) { return Quantize(d, true); }},
      {"DequantizeLinear", [](Drawing* d) { return Quantize(d, false); }},
      {"DynamicQuantizeLinear",
       [](Drawing* d) {
         return Fitting{{Any(DType::kF32, SomeShape(d, 0))}, {}};
       }},
      {"BatchNormalization", BatchNormalization},
      {"Col2Im", Col2Im},
      {"DeformConv", DeformConv},
      {"RoiAlign", RoiAlign},
      {"AffineGrid", AffineGrid},
      {"STFT", Stft},
      {"NonMaxSuppression", NonMaxSuppression},
      {"TopK", TopK},
      {"ScatterElements", [](Drawing* d) { return Scatter(d, false); }},
      {"ScatterND", [](Drawing* d) { return Scatter(d, true); }},
      {"NonZero", NonZero},
      {"Unique", Unique},
      {"Compress", Compress},
      {"LSTM", [](Drawing* d) { return Recurrence(d, 4); }},
      {"GRU", [](Drawing* d) { return Recurrence(d, 3); }},
      {"RNN", [](Drawing* d) { return Recurrence(d, 1); }},
  };
  return *makers;
}

}  // namespace

std::optional<Fitting> FittingOperands(const std::string& op, Drawing* draw) {
  const auto maker = Makers().find(op);
  if (maker == Makers().end()) return std::nullopt;
  return maker->second(draw);
}

const std::vector<std::string>& DataDependentOps() {
  static const auto* ops =
      new std::vector<std::string>{"NonZero", "NonZero", "Compress", "TopK", "Unique", "NonMaxSuppression"};
  return *ops;
}

}  // namespace fusion::fuzz
