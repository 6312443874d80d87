// DFT, STFT, HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix. A transform is a product with one constant
// matrix, or with two where its length has factors near its square root (Cooley and Tukey, 1965). Complex numbers are a
// last axis of two.
#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Index;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

constexpr int64_t kShortTransform = 64;  // transforms up to this length are not split
constexpr int64_t kMaxTableElements = int64_t{1} << 24;

absl::StatusOr<int64_t> ConstantInt(const OpContext& context, int input, const char* name) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, context.ConstantInts(input, name));
  if (values.size() != 1) return context.Error(absl::StrCat("input '", name, "' must hold one value"));
  return values[0];
}

absl::StatusOr<double> ConstantFloat(const OpContext& context, int input, const char* name) {
  const Tensor* tensor = context.Constant(input);
  if (tensor == nullptr) {
    return context.Unsupported(absl::StrCat("input '", name, "' is computed at run time; it must be a constant"));
  }
  if (tensor->num_elements() != 1) return context.Error(absl::StrCat("input '", name, "' must hold one value"));
  return tensor->GetDouble(0);
}

absl::StatusOr<DType> OutputType(const OpContext& context) {
  const auto dtype = DTypeFromOnnx(context.attrs.Int("output_datatype", 1));
  if (!dtype || *dtype == DType::kBool) return context.Unsupported("output_datatype is no supported number type");
  return *dtype;
}

// x: [.., terms, .., components], y: [.., outputs, .., 2 or 1]: y[k] = scale · Σ_n x[n] · e^(±2πi·k·n/length).
struct Transform {
  int axis = 0;
  int64_t terms = 0;    // extent of the input along the axis
  int64_t length = 0;   // length of the transform; terms beyond the input are 0
  int64_t outputs = 0;  // only the first `outputs` are computed
  bool inverse = false;
  bool to_real = false;  // x is the first half of a conjugate-symmetric spectrum; y has one component

  // Returns the least factor from the square root of `length` on, or `length` itself where it is short or has no such
  // factor.
  int64_t Inner() const {
    if (length <= kShortTransform || to_real) return length;
    for (int64_t n = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(length)))); n < length; ++n) {
      if (length % n == 0) return n;
    }
    return length;
  }
  int64_t Outer() const { return length / Inner(); }
  double Scale() const { return inverse ? 1.0 / static_cast<double>(length) : 1.0; }
};

absl::Status CheckTransform(const OpContext& context, const Transform& t) {
  if (t.length < 1) return context.Error(absl::StrCat("a transform of length ", t.length, " does not exist"));
  if (t.length <= kMaxTableElements && 4 * t.outputs * (t.Outer() == 1 ? t.length : t.Outer()) <= kMaxTableElements) {
    return absl::OkStatus();
  }
  return context.Unsupported(absl::StrCat("a transform of length ", t.length, " needs too large a table"));
}

// e^(2πi·numerator/denominator) with 0 ≤ numerator < denominator. Folded into the first eighth of a turn, so that
// quarters of a turn are exact and opposite turns differ by signs alone: what cancels in exact arithmetic cancels here,
// too.
std::complex<double> RootOfUnity(int64_t numerator, int64_t denominator) {
  const int64_t turn = 8 * denominator;  // in parts of which an eighth of a turn is a whole number
  int64_t at = 8 * numerator;
  const bool below = at > turn / 2;
  if (below) at = turn - at;
  const bool left = at > turn / 4;
  if (left) at = turn / 2 - at;
  const bool steep = at > turn / 8;
  if (steep) at = turn / 4 - at;
  const double angle = 2 * M_PI * static_cast<double>(at) / static_cast<double>(turn);
  double real = std::cos(angle), imaginary = std::sin(angle);
  if (steep) std::swap(real, imaginary);
  return {left ? -real : real, below ? -imaginary : imaginary};
}

// The factors e^(±2πi·k·n/length) · weight(n) as real matrices: [outputs, terms, components, parts].
te::TensorId ExponentialTable(te::Builder& b, DType dtype, const Shape& shape, int64_t length, bool inverse,
                              const std::function<double(int64_t n)>& weight) {
  Tensor table(dtype, shape);
  int64_t at = 0;
  for (int64_t k = 0; k < shape[0]; ++k) {
    for (int64_t n = 0; n < shape[1]; ++n) {
      const std::complex<double> root = RootOfUnity(k * n % length, length);
      const double real = weight(n) * root.real(), imaginary = weight(n) * (inverse ? 1 : -1) * root.imag();
      for (int64_t from = 0; from < shape[2]; ++from) {
        for (int64_t to = 0; to < shape[3]; ++to) {
          table.SetDouble(at++, from == to ? real : from == 0 ? imaginary : -imaginary);
        }
      }
    }
  }
  return b.Constant("exponential", std::move(table));
}

te::TensorId LowerTransform(te::Builder& b, te::TensorId x, const Transform& t, const ecg::ValueType& type) {
  const DType acc = ComputeType(type.dtype);
  const Shape in = b.info(x).shape;
  const int64_t components = in.back();
  const auto load = [&](te::TensorId tensor, const Idx& at) { return te::Cast(acc, b.At(tensor, at)); };
  const int64_t inner = t.Inner(), outer = t.Outer();
  if (outer == 1) {
    const int64_t terms = std::min(t.terms, t.to_real ? t.length / 2 + 1 : t.length);
    // The half spectrum stands for both halves: every term but the first and the middle one counts twice.
    const auto weight = [&](int64_t n) { return t.Scale() * (t.to_real && n != 0 && 2 * n != t.length ? 2 : 1); };
    const te::TensorId table =
        ExponentialTable(b, acc, {t.outputs, terms, components, type.shape.back()}, t.length, t.inverse, weight);
    return b.Reduce("dft", te::ReductionKind::kSum, type.dtype, acc, type.shape, {terms, components},
                    [&](const Idx& i, const Idx& r) {
                      Idx at = i;
                      at[t.axis] = r[0];
                      at.back() = r[1];
                      return load(x, at) * b.At(table, {i[t.axis], r[0], r[1], i.back()});
                    });
  }
  // n = outer·n1 + n2 and k = k1 + inner·k2:  y[k] = Σ_n2 e(k·n2 / length) · Σ_n1 e(k1·n1 / inner) · x[outer·n1 + n2]
  const auto one = [](int64_t) { return 1.0; };
  const auto scale = [&](int64_t) { return t.Scale(); };
  Shape partial = in;
  partial[t.axis] = inner;
  partial.insert(partial.begin() + t.axis + 1, outer);
  partial.back() = 2;
  const te::TensorId first = ExponentialTable(b, acc, {inner, inner, components, 2}, inner, t.inverse, one);
  const te::TensorId sums = b.Reduce(
      "dft.inner", te::ReductionKind::kSum, acc, acc, partial, {inner, components}, [&](const Idx& i, const Idx& r) {
        Idx at = i;
        at.erase(at.begin() + t.axis + 1);
        at[t.axis] = r[0] * outer + i[t.axis + 1];
        at.back() = r[1];
        const DType dtype = b.info(x).dtype;
        const Scalar value = te::Load(x, dtype, at, t.length > t.terms ? Imm(dtype, 0) : nullptr);
        return te::Cast(acc, value) * b.At(first, {i[t.axis], r[0], r[1], i.back()});
      });
  const te::TensorId second = ExponentialTable(b, acc, {t.outputs, outer, 2, 2}, t.length, t.inverse, scale);
  return b.Reduce("dft", te::ReductionKind::kSum, type.dtype, acc, type.shape, {outer, 2},
                  [&](const Idx& i, const Idx& r) {
                    Idx at = i;
                    at[t.axis] = te::Mod(i[t.axis], inner);
                    at.insert(at.begin() + t.axis + 1, r[0]);
                    at.back() = r[1];
                    return b.At(sums, at) * b.At(second, {i[t.axis], r[0], r[1], i.back()});
                  });
}

absl::Status CheckComponents(const OpContext& context, const Shape& shape) {
  if (!shape.empty() && (shape.back() == 1 || shape.back() == 2)) return absl::OkStatus();
  return context.Error(
      absl::StrCat("input ", ShapeToString(shape), " must have a last axis of 1 (real) or 2 (complex)"));
}

absl::StatusOr<Transform> DftOf(const OpContext& context) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  const Shape& in = context.ShapeOf(0);
  RETURN_IF_ERROR(CheckComponents(context, in));
  int64_t axis = -2;
  if (context.Has(2)) {
    ASSIGN_OR_RETURN(axis, ConstantInt(context, 2, "axis"));
  }
  Transform t;
  ASSIGN_OR_RETURN(t.axis, NormalizeAxis(context, axis, context.Rank(0)));
  if (t.axis == context.Rank(0) - 1) return context.Error("the last axis holds real and imaginary parts");
  t.inverse = context.attrs.Int("inverse") != 0;
  t.terms = in[t.axis];
  const bool onesided = context.attrs.Int("onesided") != 0;
  t.to_real = onesided && t.inverse;
  if (onesided && in.back() != (t.inverse ? 2 : 1)) {
    return context.Error(t.inverse ? "onesided=1 and inverse=1 need complex input" : "onesided=1 needs real input");
  }
  t.length = t.to_real ? 2 * (t.terms - 1) : t.terms;
  if (context.Has(1)) {
    ASSIGN_OR_RETURN(t.length, ConstantInt(context, 1, "dft_length"));
  }
  t.outputs = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  RETURN_IF_ERROR(CheckTransform(context, t));
  return t;
}

absl::StatusOr<Types> InferDft(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const Transform t, DftOf(context));
  Types types{context.Type(0)};
  types[0].shape[t.axis] = t.outputs;
  types[0].shape.back() = t.to_real ? 1 : 2;
  return types;
}

absl::Status LowerDft(LowerContext& context) {
  ASSIGN_OR_RETURN(const Transform t, DftOf(context));
  context.out = {LowerTransform(*context.builder, context.in[0], t, context.output_types[0])};
  return absl::OkStatus();
}

// DFT-17 had the axis as an attribute, 1 by default.
absl::Status NormalizeDft(ImportContext& import) {
  if (import.opset() >= 20) return absl::OkStatus();
  ecg::Node& node = import.node();
  const int64_t axis = node.attrs.Int("axis", 1);
  node.attrs.Erase("axis");
  node.inputs.resize(3, ecg::kNone);
  const ecg::ValueId id = import.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {axis}));
  import.node().inputs[2] = id;
  return absl::OkStatus();
}

// --- STFT. signal: [batch, samples, components], y: [batch, frames, bins, 2]
struct Frames {
  int64_t count = 0, step = 0;
  Transform transform;
};

absl::StatusOr<Frames> FramesOf(const OpContext& context) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  const Shape& signal = context.ShapeOf(0);
  if (signal.size() != 3) return context.Error(absl::StrCat("signal ", ShapeToString(signal), " must have three axes"));
  RETURN_IF_ERROR(CheckComponents(context, signal));
  Frames frames;
  ASSIGN_OR_RETURN(frames.step, ConstantInt(context, 1, "frame_step"));
  int64_t length = context.Has(2) && context.Rank(2) == 1 ? context.ShapeOf(2)[0] : signal[1];
  if (context.Has(3)) {
    ASSIGN_OR_RETURN(length, ConstantInt(context, 3, "frame_length"));
  }
  if (context.Has(2) && (context.ShapeOf(2) != Shape{length} || context.Type(2).dtype != context.Type(0).dtype)) {
    return context.Error(absl::StrCat("window ", ShapeToString(context.ShapeOf(2)), " must have the signal's type and ",
                                      length, " values"));
  }
  if (frames.step < 1 || length < 1 || length > signal[1]) {
    return context.Error(
        absl::StrCat("frames of ", length, " every ", frames.step, " do not fit ", signal[1], " samples"));
  }
  const bool onesided = context.attrs.Int("onesided", 1) != 0;
  if (onesided && signal[2] != 1) return context.Error("onesided=1 needs a real signal");
  frames.count = (signal[1] - length) / frames.step + 1;
  frames.transform = {.axis = 2, .terms = length, .length = length, .outputs = onesided ? length / 2 + 1 : length};
  RETURN_IF_ERROR(CheckTransform(context, frames.transform));
  return frames;
}

absl::StatusOr<Types> InferStft(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const Frames frames, FramesOf(context));
  return Types{{context.Type(0).dtype, {context.ShapeOf(0)[0], frames.count, frames.transform.outputs, 2}}};
}

absl::Status LowerStft(LowerContext& context) {
  ASSIGN_OR_RETURN(const Frames frames, FramesOf(context));
  te::Builder& b = *context.builder;
  const Shape& signal = context.ShapeOf(0);
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  const te::TensorId framed =
      b.Map("frames", acc, {signal[0], frames.count, frames.transform.length, signal[2]}, [&](const Idx& i) {
        const Scalar x = LoadCompute(b, context.in[0], {i[0], i[1] * frames.step + i[2], i[3]});
        return context.Has(2) ? x * LoadCompute(b, context.in[2], {i[2]}) : x;
      });
  context.out = {LowerTransform(b, framed, frames.transform, type)};
  return absl::OkStatus();
}

// --- Windows: Σ_j c_j · cos(2π·j·n / N), N = size, or size − 1 where not periodic.
absl::StatusOr<Types> InferWindow(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const DType dtype, OutputType(context));
  ASSIGN_OR_RETURN(const int64_t size, ConstantInt(context, 0, "size"));
  if (size < 0) return context.Error(absl::StrCat("size ", size, " is negative"));
  return Types{{dtype, {size}}};
}

absl::Status LowerWindow(LowerContext& context, const std::vector<double>& coefficients) {
  const ecg::ValueType& type = context.output_types[0];
  const int64_t period = context.attrs.Int("periodic", 1) != 0 ? type.shape[0] : type.shape[0] - 1;
  DefineMap(context, 0, [&](const Idx& i) {
    const Scalar turn = te::Cast(DType::kF64, te::FromIndex(i[0])) *
                        Imm(DType::kF64, 2 * M_PI / static_cast<double>(std::max<int64_t>(period, 1)));
    Scalar sum = Imm(DType::kF64, coefficients[0]);
    for (size_t j = 1; j < coefficients.size(); ++j) {
      sum = sum + Imm(DType::kF64, coefficients[j]) * Call(Op::kCos, {turn * Imm(DType::kF64, static_cast<double>(j))});
    }
    return te::Cast(type.dtype, sum);
  });
  return absl::OkStatus();
}

// --- MelWeightMatrix: [dft_length/2 + 1, num_mel_bins], triangles that are equally wide on the mel scale.
absl::StatusOr<Types> InferMel(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const DType dtype, OutputType(context));
  ASSIGN_OR_RETURN(const int64_t mels, ConstantInt(context, 0, "num_mel_bins"));
  ASSIGN_OR_RETURN(const int64_t length, ConstantInt(context, 1, "dft_length"));
  ASSIGN_OR_RETURN(const int64_t rate, ConstantInt(context, 2, "sample_rate"));
  for (const int i : {3, 4}) {
    ASSIGN_OR_RETURN(const double edge, ConstantFloat(context, i, i == 3 ? "lower_edge_hertz" : "upper_edge_hertz"));
    if (!(edge >= 0 && edge < 1e12)) return context.Error(absl::StrCat("a frequency of ", edge, " is out of range"));
  }
  if (mels < 1 || mels > (1 << 20) || length < 1 || length > (int64_t{1} << 40) || rate < 1) {
    return context.Error("num_mel_bins, dft_length and sample_rate must be positive and in range");
  }
  return Types{{dtype, {length / 2 + 1, mels}}};
}

absl::Status LowerMel(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const int64_t mels = type.shape[1];
  ASSIGN_OR_RETURN(const int64_t length, ConstantInt(context, 1, "dft_length"));
  ASSIGN_OR_RETURN(const int64_t rate, ConstantInt(context, 2, "sample_rate"));
  ASSIGN_OR_RETURN(const double lower, ConstantFloat(context, 3, "lower_edge_hertz"));
  ASSIGN_OR_RETURN(const double upper, ConstantFloat(context, 4, "upper_edge_hertz"));
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (to_mel(upper) - to_mel(lower)) / static_cast<double>(mels + 2);
  std::vector<int64_t> corners;  // triangle m rises from corner m to m + 1 and falls to m + 2
  for (int64_t m = 0; m < mels + 2; ++m) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(m) * step + to_mel(lower)) / 2595) - 1);
    corners.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  const te::TensorId table = b.Constant("corners", IntsTensor(corners));
  DefineMap(context, 0, [&](const Idx& i) {
    const Scalar bin = te::FromIndex(i[0]);
    const Scalar begin = b.At(table, {i[1]}), top = b.At(table, {i[1] + Index(1)}),
                 end = b.At(table, {i[1] + Index(2)});
    const auto both = [](const Scalar& p, const Scalar& q) { return Call(Op::kAnd, {p, q}); };
    const auto ratio = [](const Scalar& p, const Scalar& q) {
      return te::Cast(DType::kF64, p) / te::Cast(DType::kF64, te::Max(q, te::ImmInt(DType::kI64, 1)));
    };
    const Scalar zero = Imm(DType::kF64, 0);
    const Scalar rising =
        te::Select(both(Call(Op::kGe, {bin, begin}), Call(Op::kLt, {bin, top})), ratio(bin - begin, top - begin), zero);
    const Scalar falling =
        te::Select(both(Call(Op::kGt, {bin, top}), Call(Op::kLt, {bin, end})), ratio(end - bin, end - top), rising);
    return te::Cast(type.dtype, te::Select(Call(Op::kEq, {bin, top}), Imm(DType::kF64, 1), falling));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> SignalOps() {
  const auto transform_flops = [](int64_t length, const Types& outputs) {
    return 8 * std::sqrt(static_cast<double>(length)) * static_cast<double>(NumElements(outputs[0].shape));
  };
  OpDef dft;
  dft.name = "DFT";
  dft.max_inputs = 3;
  dft.roles = {InputRole::kData, InputRole::kScalar, InputRole::kScalar};
  dft.attrs = {{"inverse", AttrKind::kInt}, {"onesided", AttrKind::kInt}};
  dft.infer = InferDft;
  dft.lower = LowerDft;
  dft.normalize = NormalizeDft;
  dft.flops = [transform_flops](const OpContext& context, const Types& outputs) {
    const auto t = DftOf(context);
    return t.ok() ? transform_flops(t->length, outputs) : 0;
  };

  OpDef stft;
  stft.name = "STFT";
  stft.min_inputs = 2;
  stft.max_inputs = 4;
  stft.roles = {InputRole::kData, InputRole::kScalar, InputRole::kData, InputRole::kScalar};
  stft.attrs = {{"onesided", AttrKind::kInt}};
  stft.infer = InferStft;
  stft.lower = LowerStft;
  stft.flops = [transform_flops](const OpContext& context, const Types& outputs) {
    const auto frames = FramesOf(context);
    return frames.ok() ? transform_flops(frames->transform.length, outputs) : 0;
  };
  std::vector<OpDef> defs = {dft, stft};
  for (OpDef& def : defs) def.mapping = Always(MappingType::kManyToMany);

  const std::pair<const char*, std::vector<double>> windows[] = {
      {"HannWindow", {0.5, -0.5}}, {"HammingWindow", {25.0 / 46, -21.0 / 46}}, {"BlackmanWindow", {0.42, -0.5, 0.08}}};
  for (const auto& [name, coefficients] : windows) {
    OpDef window;
    window.name = name;
    window.roles = {InputRole::kScalar};
    window.attrs = {{"output_datatype", AttrKind::kInt}, {"periodic", AttrKind::kInt}};
    window.infer = InferWindow;
    window.lower = [c = coefficients](LowerContext& context) { return LowerWindow(context, c); };
    defs.push_back(window);
  }
  OpDef mel;
  mel.name = "MelWeightMatrix";
  mel.min_inputs = mel.max_inputs = 5;
  mel.roles = std::vector<InputRole>(5, InputRole::kScalar);
  mel.attrs = {{"output_datatype", AttrKind::kInt}};
  mel.infer = InferMel;
  mel.lower = LowerMel;
  defs.push_back(mel);
  for (size_t k = 2; k < defs.size(); ++k) {
    defs[k].mapping = Always(MappingType::kOneToMany);
    defs[k].flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
