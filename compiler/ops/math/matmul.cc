// MatMul, Gemm, Einsum: each is one reduction that multiplies and sums. The rest behind the sum (alpha, bias) is a map
// of its own, so that every anchor has the same form.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/broadcast.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Imm;
using te::ReductionKind;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

// --- MatMul. a: [B.., M, K], b: [B.., K, N]; a vector counts as [1, K] on the left and [K, 1] on the right.
Shape Batch(const Shape& shape) { return shape.size() <= 2 ? Shape{} : Shape(shape.begin(), shape.end() - 2); }
int64_t DepthOfA(const OpContext& context) { return context.ShapeOf(0).back(); }

absl::StatusOr<Types> InferMatMul(const OpContext& context, int) {
  const Shape &a = context.ShapeOf(0), &b = context.ShapeOf(1);
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  if (a.empty() || b.empty()) return context.Error("a scalar cannot be multiplied; use Mul");
  const int64_t depth = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (a.back() != depth) {
    return context.Error(absl::StrCat("shapes ", ShapeToString(a), " and ", ShapeToString(b), " do not multiply: K is ",
                                      a.back(), " and ", depth));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context, {Batch(a), Batch(b)}));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return Types{{context.Type(0).dtype, std::move(shape)}};
}

absl::Status LowerMatMul(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  const bool a_is_matrix = context.Rank(0) > 1, b_is_matrix = context.Rank(1) > 1;
  context.out[0] = b.Reduce("MatMul", ReductionKind::kSum, type.dtype, acc, type.shape, {DepthOfA(context)},
                            [&](const Idx& i, const Idx& k) {
                              const Idx batch(i.begin(), i.end() - a_is_matrix - b_is_matrix);
                              Idx at_a = BroadcastIndex(Batch(context.ShapeOf(0)), batch);
                              if (a_is_matrix) at_a.push_back(i[i.size() - 1 - b_is_matrix]);
                              at_a.push_back(k[0]);
                              Idx at_b = BroadcastIndex(Batch(context.ShapeOf(1)), batch);
                              at_b.push_back(k[0]);
                              if (b_is_matrix) at_b.push_back(i.back());
                              return LoadCompute(b, context.in[0], at_a) * LoadCompute(b, context.in[1], at_b);
                            });
  return absl::OkStatus();
}

double FlopsMatMul(const OpContext& context, const Types& outputs) {
  return 2.0 * NumElements(outputs[0].shape) * DepthOfA(context);
}

// --- Gemm. y = alpha * a' * b' + beta * c, a': [M, K], b': [K, N], c broadcast to [M, N].
int64_t DepthOfGemm(const OpContext& context) { return context.ShapeOf(0)[context.attrs.Int("transA") != 0 ? 0 : 1]; }

absl::StatusOr<Types> InferGemm(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckSameType(context, 0, 3));
  const Shape &a = context.ShapeOf(0), &b = context.ShapeOf(1);
  if (a.size() != 2 || b.size() != 2) {
    return context.Error(absl::StrCat("A ", ShapeToString(a), " and B ", ShapeToString(b), " must be matrices"));
  }
  const bool trans_a = context.attrs.Int("transA") != 0, trans_b = context.attrs.Int("transB") != 0;
  if (a[trans_a ? 0 : 1] != b[trans_b ? 1 : 0]) {
    return context.Error(absl::StrCat("shapes ", ShapeToString(a), trans_a ? " (transposed)" : "", " and ",
                                      ShapeToString(b), trans_b ? " (transposed)" : "", " do not multiply"));
  }
  const Shape shape{a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]};
  if (context.Has(2)) {
    ASSIGN_OR_RETURN(const Shape with_c, BroadcastShapes(context, {shape, context.ShapeOf(2)}));
    if (with_c != shape) {
      return context.Error(
          absl::StrCat("C ", ShapeToString(context.ShapeOf(2)), " does not broadcast to ", ShapeToString(shape)));
    }
  }
  return Types{{context.Type(0).dtype, shape}};
}

absl::Status LowerGemm(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  const bool trans_a = context.attrs.Int("transA") != 0, trans_b = context.attrs.Int("transB") != 0;
  const double alpha = context.attrs.Float("alpha", 1.0), beta = context.attrs.Float("beta", 1.0);
  const bool has_c = context.Has(2) && beta != 0;
  const bool plain = alpha == 1 && !has_c;
  const te::TensorId product =
      b.Reduce("Gemm", ReductionKind::kSum, plain ? type.dtype : acc, acc, type.shape, {DepthOfGemm(context)},
               [&](const Idx& i, const Idx& k) {
                 const Idx at_a = trans_a ? Idx{k[0], i[0]} : Idx{i[0], k[0]};
                 const Idx at_b = trans_b ? Idx{i[1], k[0]} : Idx{k[0], i[1]};
                 return LoadCompute(b, context.in[0], at_a) * LoadCompute(b, context.in[1], at_b);
               });
  if (plain) {
    context.out[0] = product;
    return absl::OkStatus();
  }
  context.out[0] = b.Map("epilogue", type.dtype, type.shape, [&](const Idx& i) {
    Scalar y = b.At(product, i);
    if (alpha != 1) y = y * Imm(acc, alpha);
    if (has_c) {
      Scalar c = LoadCompute(b, context.in[2], BroadcastIndex(context.ShapeOf(2), i));
      if (beta != 1) c = c * Imm(acc, beta);
      y = y + c;
    }
    return te::Cast(type.dtype, y);
  });
  return absl::OkStatus();
}

double FlopsGemm(const OpContext& context, const Types& outputs) {
  const double elements = NumElements(outputs[0].shape);
  return elements * (2.0 * DepthOfGemm(context) + (context.Has(2) ? 1 : 0));
}

// --- Einsum. Labels are letters; the axes of an ellipsis are labelled '0', '1', … from the right.
struct Equation {
  std::vector<std::string> inputs;  // one label per dimension
  std::string output;
  std::string summed;  // labels that do not occur in the output, in order of first appearance
  std::map<char, int64_t> extents;
};

std::string ExpandEllipsis(const std::string& term, int axes) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string labels;
  for (int d = axes; d-- > 0;) labels.push_back(static_cast<char>('0' + d));
  return term.substr(0, dots) + labels + term.substr(dots + 3);
}

absl::StatusOr<Equation> ParseEquation(const OpContext& context) {
  std::string text = context.attrs.String("equation");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const auto malformed = [&] { return context.Error(absl::StrCat("malformed equation '", text, "'")); };
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(c);
    }
  }
  if (terms.size() != context.inputs.size()) return malformed();

  Equation equation;
  int ellipsis_axes = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    int axes = 0;
    if (terms[k].find("...") != std::string::npos) {
      axes = context.Rank(static_cast<int>(k)) - static_cast<int>(terms[k].size() - 3);
      if (axes < 0 || axes > 10) return malformed();
    }
    ellipsis_axes = std::max(ellipsis_axes, axes);
    const std::string labels = ExpandEllipsis(terms[k], axes);
    if (static_cast<int>(labels.size()) != context.Rank(static_cast<int>(k))) {
      return context.Error(absl::StrCat("term '", terms[k], "' does not fit input ", k, " of shape ",
                                        ShapeToString(context.ShapeOf(static_cast<int>(k)))));
    }
    for (size_t d = 0; d < labels.size(); ++d) {
      const char label = labels[d];
      if (!std::isalnum(static_cast<unsigned char>(label))) return malformed();
      const int64_t extent = context.ShapeOf(static_cast<int>(k))[d];
      int64_t& known = equation.extents.emplace(label, extent).first->second;
      if (known == 1) known = extent;
      if (extent != known && extent != 1) {
        return context.Error(absl::StrCat("'", std::string(1, label), "' is both ", known, " and ", extent));
      }
    }
    equation.inputs.push_back(labels);
  }
  if (arrow == std::string::npos) {
    // Without an explicit output it is the ellipsis, followed by the labels that occur once, in alphabetic order.
    std::string all;
    for (const std::string& term : terms) all += term;
    equation.output = ExpandEllipsis("...", ellipsis_axes);
    for (const auto& [label, extent] : equation.extents) {
      if (std::isalpha(static_cast<unsigned char>(label)) && std::count(all.begin(), all.end(), label) == 1) {
        equation.output.push_back(label);
      }
    }
  } else {
    equation.output = ExpandEllipsis(text.substr(arrow + 2), ellipsis_axes);
  }
  for (char label : equation.output) {
    if (equation.extents.count(label) == 0 || std::count(equation.output.begin(), equation.output.end(), label) != 1) {
      return malformed();
    }
  }
  for (const std::string& labels : equation.inputs) {
    for (char label : labels) {
      if (equation.output.find(label) == std::string::npos && equation.summed.find(label) == std::string::npos) {
        equation.summed.push_back(label);
      }
    }
  }
  return equation;
}

Shape ExtentsOf(const Equation& equation, const std::string& labels) {
  Shape shape;
  for (char label : labels) shape.push_back(equation.extents.at(label));
  return shape;
}

absl::StatusOr<Types> InferEinsum(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckSameType(context, 0, static_cast<int>(context.inputs.size())));
  ASSIGN_OR_RETURN(const Equation equation, ParseEquation(context));
  return Types{{context.Type(0).dtype, ExtentsOf(equation, equation.output)}};
}

absl::Status LowerEinsum(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const Equation equation, ParseEquation(context));
  const ecg::ValueType& type = context.output_types[0];
  const auto product = [&](const Idx& i, const Idx& r) {
    std::map<char, te::Index> at;
    for (size_t d = 0; d < i.size(); ++d) at[equation.output[d]] = i[d];
    for (size_t d = 0; d < r.size(); ++d) at[equation.summed[d]] = r[d];
    Scalar result;
    for (size_t k = 0; k < equation.inputs.size(); ++k) {
      Idx index;
      for (char label : equation.inputs[k]) index.push_back(at[label]);
      const Scalar x = LoadCompute(b, context.in[k], BroadcastIndex(context.ShapeOf(static_cast<int>(k)), index));
      result = result == nullptr ? x : result * x;
    }
    return result;
  };
  if (equation.summed.empty()) {
    context.out[0] =
        b.Map("Einsum", type.dtype, type.shape, [&](const Idx& i) { return te::Cast(type.dtype, product(i, {})); });
  } else {
    context.out[0] = b.Reduce("Einsum", ReductionKind::kSum, type.dtype, ComputeType(type.dtype), type.shape,
                              ExtentsOf(equation, equation.summed), product);
  }
  return absl::OkStatus();
}

double FlopsEinsum(const OpContext& context, const Types& outputs) {
  const auto equation = ParseEquation(context);
  if (!equation.ok()) return 0;
  const double points =
      static_cast<double>(NumElements(outputs[0].shape)) * NumElements(ExtentsOf(*equation, equation->summed));
  return points * static_cast<double>(context.inputs.size());
}

}  // namespace

std::vector<OpDef> MatMulOps() {
  // A product distributes over sums and is associative: (A + B) C = A C + B C, (A B) C = A (B C).
  constexpr MathProperties kRing{.associative = true, .distributive = true};
  OpDef matmul;
  matmul.name = "MatMul";
  matmul.min_inputs = matmul.max_inputs = 2;
  matmul.math = kRing;
  matmul.mapping = Always(MappingType::kManyToMany);
  matmul.infer = InferMatMul;
  matmul.flops = FlopsMatMul;
  matmul.lower = LowerMatMul;

  OpDef gemm;
  gemm.name = "Gemm";
  gemm.min_inputs = 2;
  gemm.max_inputs = 3;
  gemm.attrs = {
      {"alpha", AttrKind::kFloat}, {"beta", AttrKind::kFloat}, {"transA", AttrKind::kInt}, {"transB", AttrKind::kInt}};
  gemm.math = kRing;
  gemm.mapping = Always(MappingType::kManyToMany);
  gemm.infer = InferGemm;
  gemm.flops = FlopsGemm;
  gemm.lower = LowerGemm;
  gemm.normalize = [](ImportContext& context) {
    if (context.opset() < 7) context.node().attrs.Erase("broadcast");  // C always broadcasts since opset 7
    return absl::OkStatus();
  };

  OpDef einsum;
  einsum.name = "Einsum";
  einsum.max_inputs = -1;
  einsum.attrs = {{"equation",
                   AttrKind::kString,
                   true,
                   {},
                   {"ij,jk->ik", "bij,bjk->bik", "bij,bkj->bik", "bhid,bhjd->bhij", "ij,ij->", "i,j->ij", "ij->ji",
                    "ij->i", "...ij,...jk->...ik", "ii->i", "ijk,kl,l->ij", "bij->b"}}};
  einsum.math = {.distributive = true};
  einsum.mapping = Always(MappingType::kManyToMany);
  einsum.infer = InferEinsum;
  einsum.flops = FlopsEinsum;
  einsum.lower = LowerEinsum;
  return {matmul, gemm, einsum};
}

}  // namespace fusion::ops
