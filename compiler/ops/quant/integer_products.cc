// MatMulInteger and ConvInteger: Σ (a − a_zero_point)·(b − b_zero_point) over 8-bit integers, summed modulo 2^32.
// QLinearMatMul and QLinearConv are such a product, followed by a scale and a QuantizeLinear.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/broadcast.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/window.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

// A vector lane computes four 8-bit products where it computes one f32 product.
constexpr double kNarrowShare = 0.25;

double ProductFlops(const OpContext& context, double products) {
  const int zero_points = (context.Has(2) ? 1 : 0) + (context.Has(3) ? 1 : 0);
  return kNarrowShare * (2 + zero_points) * products;
}

bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// Checks that inputs 0 and 1 are 8-bit integers and that 2 and 3, their optional zero points, have the same type.
absl::Status CheckBytes(const OpContext& context) {
  for (int i = 0; i < 2; ++i) {
    if (!IsByte(context.Type(i).dtype)) {
      return context.Error(
          absl::StrCat("input ", i, " is ", DTypeName(context.Type(i).dtype), "; i8 or u8 is required"));
    }
    if (context.Has(i + 2) && context.Type(i + 2).dtype != context.Type(i).dtype) {
      return context.Error(absl::StrCat("input ", i, " is ", DTypeName(context.Type(i).dtype), ", its zero point ",
                                        DTypeName(context.Type(i + 2).dtype)));
    }
  }
  return absl::OkStatus();
}

// Returns the element minus its zero point, as i32.
Scalar Difference(const Scalar& element, const Scalar& zero_point) {
  const Scalar x = te::Cast(DType::kI32, element);
  return zero_point == nullptr ? x : x - te::Cast(DType::kI32, zero_point);
}

// Matrix products follow numpy.matmul: a vector is a row on the left and a column on the right.
Shape Batch(const Shape& shape) { return shape.size() < 2 ? Shape{} : Shape(shape.begin(), shape.end() - 2); }

absl::Status CheckZeroPoint(const OpContext& context, int input, const Shape& along, int64_t length) {
  if (!context.Has(input)) return absl::OkStatus();
  const Shape& shape = context.ShapeOf(input);
  if (NumElements(shape) == 1 || shape == Shape{length} || shape == along) return absl::OkStatus();
  return context.Error(absl::StrCat("zero point ", input, " has shape ", ShapeToString(shape), "; a scalar, [", length,
                                    "] or ", ShapeToString(along), " is required"));
}

absl::StatusOr<Types> InferMatMulInteger(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckBytes(context));
  const Shape &a = context.ShapeOf(0), &b = context.ShapeOf(1);
  if (a.empty() || b.empty() || a.back() != b[b.size() < 2 ? 0 : b.size() - 2]) {
    return context.Error(absl::StrCat("shapes ", ShapeToString(a), " and ", ShapeToString(b), " do not multiply"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context, {Batch(a), Batch(b)}));
  Shape per_row = a, per_column = b;
  if (a.size() >= 2) {
    shape.push_back(a[a.size() - 2]);
    per_row.back() = 1;
    RETURN_IF_ERROR(CheckZeroPoint(context, 2, per_row, a[a.size() - 2]));
  } else {
    RETURN_IF_ERROR(CheckZeroPoint(context, 2, {1}, 1));
  }
  if (b.size() >= 2) {
    shape.push_back(b.back());
    per_column[b.size() - 2] = 1;
    RETURN_IF_ERROR(CheckZeroPoint(context, 3, per_column, b.back()));
  } else {
    RETURN_IF_ERROR(CheckZeroPoint(context, 3, {1}, 1));
  }
  return Types{{DType::kI32, std::move(shape)}};
}

absl::Status LowerMatMulInteger(LowerContext& context) {
  te::Builder& builder = *context.builder;
  const Shape& shape = context.output_types[0].shape;
  const Shape &a = context.ShapeOf(0), &b = context.ShapeOf(1);
  const size_t columns = b.size() < 2 ? 0 : 1, rows = a.size() < 2 ? 0 : 1;
  // A zero point of shape [length] applies along `at`; any other is laid out as its operand.
  const auto zero_point = [&](int input, const Index& at, const Idx& operand) -> Scalar {
    if (!context.Has(input)) return nullptr;
    const Shape& zero_shape = context.ShapeOf(input);
    if (NumElements(zero_shape) == 1) return builder.At(context.in[input], Idx(zero_shape.size(), Index(0)));
    return builder.At(context.in[input], zero_shape.size() == 1 ? Idx{at} : BroadcastIndex(zero_shape, operand));
  };
  context.out[0] = builder.Reduce(context.op, te::ReductionKind::kSum, DType::kI32, DType::kI32, shape, {a.back()},
                                  [&](const Idx& i, const Idx& k) {
                                    const Idx batch(i.begin(), i.end() - static_cast<int64_t>(rows + columns));
                                    const Index row = rows != 0 ? i[i.size() - rows - columns] : Index(0);
                                    const Index column = columns != 0 ? i.back() : Index(0);
                                    Idx at_a = BroadcastIndex(Batch(a), batch), at_b = BroadcastIndex(Batch(b), batch);
                                    if (rows != 0) at_a.push_back(row);
                                    at_a.push_back(k[0]);
                                    at_b.push_back(k[0]);
                                    if (columns != 0) at_b.push_back(column);
                                    return Difference(builder.At(context.in[0], at_a), zero_point(2, row, at_a)) *
                                           Difference(builder.At(context.in[1], at_b), zero_point(3, column, at_b));
                                  });
  return absl::OkStatus();
}

// Convolutions. x: [N, C, D…], w: [M, C/g, K…]. Positions outside x hold its zero point.
absl::StatusOr<Types> InferConvInteger(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckBytes(context));
  const Shape &x = context.ShapeOf(0), &w = context.ShapeOf(1);
  const int64_t group = context.attrs.Int("group", 1);
  if (x.size() < 3 || w.size() != x.size()) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), " and w ", ShapeToString(w), " do not fit"));
  }
  if (group < 1 || w[1] * group != x[1] || w[0] % group != 0) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), ", w ", ShapeToString(w), " and group=", group,
                                      " do not fit: C must be group times w's second extent, M a multiple of group"));
  }
  const Shape kernel(w.begin() + 2, w.end());
  if (context.attrs.Ints("kernel_shape", kernel) != kernel) {
    return context.Error(absl::StrCat("kernel_shape differs from w ", ShapeToString(w)));
  }
  RETURN_IF_ERROR(CheckZeroPoint(context, 2, {1}, 1));
  RETURN_IF_ERROR(CheckZeroPoint(context, 3, {w[0]}, w[0]));
  ASSIGN_OR_RETURN(const Window window, MakeWindow(context, kernel));
  Shape out = {x[0], w[0]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  return Types{{DType::kI32, std::move(out)}};
}

absl::Status LowerConvInteger(LowerContext& context) {
  te::Builder& b = *context.builder;
  const Shape &x = context.ShapeOf(0), &w = context.ShapeOf(1);
  const Shape& shape = context.output_types[0].shape;
  if (NumElements(shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Window window, MakeWindow(context, Shape(w.begin() + 2, w.end())));
  const bool padded = window.ReadsOutside();
  const auto scalar_at = [&](int input) {
    return b.At(context.in[input], Idx(context.ShapeOf(input).size(), Index(0)));
  };
  // A padded load gives the zero point if that is a constant. Otherwise the zero point is subtracted first, and the
  // padding is zeros.
  const Tensor* known = context.Constant(2);
  const bool subtract_first = padded && context.Has(2) && known == nullptr;
  te::TensorId from = context.in[0];
  Scalar outside = te::ImmInt(context.Type(0).dtype, known != nullptr ? known->GetInt(0) : 0);
  if (subtract_first) {
    from = b.Map("x", DType::kI32, x, [&](const Idx& i) { return Difference(b.At(context.in[0], i), scalar_at(2)); });
    outside = te::ImmInt(DType::kI32, 0);
  }
  const int64_t per_group = w[0] / context.attrs.Int("group", 1);
  const Shape taps(w.begin() + 1, w.end());
  context.out[0] = b.Reduce(
      context.op, te::ReductionKind::kSum, DType::kI32, DType::kI32, shape, taps, [&](const Idx& i, const Idx& r) {
        const Idx k = DropUnit(r, taps);
        Idx at = {i[0], FloorDiv(i[1], per_group) * w[1] + k[0]};
        const Idx place = window.At({i.begin() + 2, i.end()}, {k.begin() + 1, k.end()});
        at.insert(at.end(), place.begin(), place.end());
        Idx weight = {i[1]};
        weight.insert(weight.end(), k.begin(), k.end());
        Scalar w_zero;
        if (context.Has(3)) w_zero = NumElements(context.ShapeOf(3)) == 1 ? scalar_at(3) : b.At(context.in[3], {i[1]});
        return Difference(LoadWindow(b, from, at, padded, outside),
                          context.Has(2) && !subtract_first ? scalar_at(2) : nullptr) *
               Difference(b.At(context.in[1], weight), w_zero);
      });
  return absl::OkStatus();
}

// QLinear…(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point, bias?): the integer product,
// scaled by a_scale·b_scale/y_scale and quantized. `along_a(scale)` and `along_b(scale)` reshape 1-D scales to the
// product's axes.
using Reshaper = std::function<absl::StatusOr<ecg::ValueId>(ImportContext&, ecg::ValueId id, const ecg::Value& value)>;

absl::StatusOr<ecg::ValueId> Reshaped(ImportContext& context, ecg::ValueId id, const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(const auto out, context.AddNode("Reshape", {id, context.AddConstant(IntsTensor(shape))}, {}));
  return out[0];
}

absl::Status NormalizeQLinear(ImportContext& context, const char* product_op, const Reshaper& along_a,
                              const Reshaper& along_b) {
  const ecg::Node node = context.node();
  for (int i = 0; i < 8; ++i) {
    if (context.input(i) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(node.op, " '", node.name, "': input ", i, " is missing"));
    }
  }
  ASSIGN_OR_RETURN(
      auto product,
      context.AddNode(product_op, {node.inputs[0], node.inputs[3], node.inputs[2], node.inputs[5]}, node.attrs));
  if (context.input(8) != nullptr) {
    ASSIGN_OR_RETURN(const ecg::ValueId bias, along_b(context, node.inputs[8], *context.input(8)));
    ASSIGN_OR_RETURN(product, context.AddNode("Add", {product[0], bias}, {}));
  }
  ecg::Attributes to_f32;
  to_f32.Set("to", int64_t{1});
  const auto scale = [&](int input, const Reshaper& along) -> absl::StatusOr<ecg::ValueId> {
    ASSIGN_OR_RETURN(ecg::ValueId id, along(context, node.inputs[input], *context.input(input)));
    if (context.input(input)->type.dtype == DType::kF32) return id;
    ASSIGN_OR_RETURN(const auto cast, context.AddNode("Cast", {id}, to_f32));
    return cast[0];
  };
  ASSIGN_OR_RETURN(const ecg::ValueId a_scale, scale(1, along_a));
  ASSIGN_OR_RETURN(const ecg::ValueId b_scale, scale(4, along_b));
  ASSIGN_OR_RETURN(const ecg::ValueId y_scale, scale(6, along_a));
  ASSIGN_OR_RETURN(const auto both, context.AddNode("Mul", {a_scale, b_scale}, {}));
  ASSIGN_OR_RETURN(const auto ratio, context.AddNode("Div", {both[0], y_scale}, {}));
  ASSIGN_OR_RETURN(const auto real, context.AddNode("Cast", {product[0]}, to_f32));
  ASSIGN_OR_RETURN(const auto scaled, context.AddNode("Mul", {real[0], ratio[0]}, {}));
  // QuantizeLinear wants one scale per zero point.
  const Shape zero_shape = context.input(7)->type.shape;
  const ecg::ValueId one = context.AddConstant(
      Tensor::From<double>(DType::kF32, zero_shape, std::vector<double>(NumElements(zero_shape), 1.0)));
  ecg::Attributes quantize_attrs;
  if (NumElements(zero_shape) > 1) quantize_attrs.Set("axis", int64_t{-2});
  ASSIGN_OR_RETURN(const auto y, context.AddNode("QuantizeLinear", {scaled[0], one, node.inputs[7]}, quantize_attrs));
  context.ReplaceWith({y[0]});
  return absl::OkStatus();
}

absl::Status NormalizeQLinearMatMul(ImportContext& context) {
  const auto per_row = [](ImportContext& c, ecg::ValueId id, const ecg::Value& value) -> absl::StatusOr<ecg::ValueId> {
    return value.type.shape.size() == 1 && value.type.shape[0] != 1 ? Reshaped(c, id, {-1, 1}) : id;
  };
  const auto per_column = [](ImportContext&, ecg::ValueId id, const ecg::Value&) -> absl::StatusOr<ecg::ValueId> {
    return id;
  };
  return NormalizeQLinear(context, "MatMulInteger", per_row, per_column);
}

absl::Status NormalizeQLinearConv(ImportContext& context) {
  const size_t rank = context.input(0) == nullptr ? 0 : context.input(0)->type.shape.size();
  const auto same = [](ImportContext&, ecg::ValueId id, const ecg::Value&) -> absl::StatusOr<ecg::ValueId> {
    return id;
  };
  const auto per_channel = [rank](ImportContext& c, ecg::ValueId id,
                                  const ecg::Value& value) -> absl::StatusOr<ecg::ValueId> {
    if (NumElements(value.type.shape) == 1 && value.type.shape.empty()) return id;
    std::vector<int64_t> shape(rank < 2 ? 1 : rank - 1, 1);
    shape[0] = -1;
    return Reshaped(c, id, shape);
  };
  return NormalizeQLinear(context, "ConvInteger", same, per_channel);
}

}  // namespace

std::vector<OpDef> IntProductOps() {
  OpDef matmul;
  matmul.name = "MatMulInteger";
  matmul.min_inputs = 2;
  matmul.max_inputs = 4;
  matmul.mapping = Always(MappingType::kManyToMany);
  matmul.infer = InferMatMulInteger;
  matmul.lower = LowerMatMulInteger;
  matmul.flops = [](const OpContext& context, const Types& outputs) {
    return ProductFlops(context, static_cast<double>(NumElements(outputs[0].shape)) * context.ShapeOf(0).back());
  };

  OpDef conv = matmul;
  conv.name = "ConvInteger";
  conv.attrs = {{"auto_pad", AttrKind::kString},   {"dilations", AttrKind::kInts}, {"group", AttrKind::kInt},
                {"kernel_shape", AttrKind::kInts}, {"pads", AttrKind::kInts},      {"strides", AttrKind::kInts}};
  conv.infer = InferConvInteger;
  conv.lower = LowerConvInteger;
  conv.flops = [](const OpContext& context, const Types& outputs) {
    const Shape& w = context.ShapeOf(1);
    return ProductFlops(context, static_cast<double>(NumElements(outputs[0].shape)) *
                                     static_cast<double>(NumElements({w.begin() + 1, w.end()})));
  };

  OpDef qlinear_matmul;
  qlinear_matmul.name = "QLinearMatMul";
  qlinear_matmul.min_inputs = qlinear_matmul.max_inputs = 8;
  qlinear_matmul.normalize = NormalizeQLinearMatMul;

  OpDef qlinear_conv = qlinear_matmul;
  qlinear_conv.name = "QLinearConv";
  qlinear_conv.max_inputs = 9;
  qlinear_conv.attrs = conv.attrs;
  qlinear_conv.normalize = NormalizeQLinearConv;
  return {matmul, conv, qlinear_matmul, qlinear_conv};
}

}  // namespace fusion::ops
