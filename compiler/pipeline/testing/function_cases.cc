#include "compiler/pipeline/testing/function_cases.h"

#include <cmath>
#include <limits>
#include <string>

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Tensor Floats(const Shape& shape, const std::vector<double>& values) {
  return Tensor::From<double>(DType::kF32, shape, values);
}

// A function with bounded results. The inverse of a result distinguishes a negative zero from a positive one, and a
// small result from zero.
FusionCase Function(const std::string& op, const std::vector<double>& values) {
  G g;
  const V y = g.Op(op, {g.In(Floats({static_cast<int64_t>(values.size())}, values))});
  g.Out(y);
  g.Out(g.Op("Sign", {g.Op("Reciprocal", {y})}));
  return FusionCase(op + " of special values", g);
}

// A function whose results reach the ends of the floats. Results and their inverses are cut to a range in which the
// largest does not hide the others, and large results are scaled.
FusionCase UnboundedFunction(const std::string& op, const std::vector<double>& values) {
  G g;
  const V y = g.Op(op, {g.In(Floats({static_cast<int64_t>(values.size())}, values))}),
          inverse = g.Op("Reciprocal", {y});
  for (const V part : {y, inverse}) g.Out(g.Op("Clip", {part, g.Scalar(-8), g.Scalar(8)}));
  g.Out(g.Op("Sign", {inverse}));
  g.Out(g.Op("IsInf", {y}));
  g.Out(g.Op("Mul", {y, g.Scalar(0x1p-127)}));
  return FusionCase(op + " of special values", g);
}

std::vector<double> Angles() {
  std::vector<double> angles = {0.0, -0.0, kInf, -kInf, kNan, 3e38, -3e38, 1048576, 1048575.9375, -1048576, 1e7, 1e-20};
  for (int i = -20; i <= 20; ++i) {
    angles.push_back(i * M_PI_4);
    angles.push_back(i * 60000.0 * M_PI_2);
    angles.push_back(std::ldexp(1.2345, 6 * i));
  }
  return angles;
}

// Exponentials at both ends of the floats: the last that is finite, the last that is normal, and what lies around and
// beyond them. The results are scaled, so that the largest does not hide the smallest.
FusionCase EndsOfExponentials() {
  const float finite = 88.7228317f, normal = -87.3365402f;
  std::vector<double> values = {kInf, -kInf, kNan, 0.0, -0.0, 89, 1e30, -104.5, -1e30};
  for (int i = 0; i < 24; ++i) {
    values.push_back(finite - i * 7.62939453125e-6);  // a unit in the last place each
    values.push_back(normal + i * 7.62939453125e-6);
    values.push_back(finite - i * 5e-5);
    values.push_back(normal + i * 5e-4);
  }
  for (int i = 1; i < 8; ++i) values.push_back(finite + i * 7.62939453125e-6);
  G g;
  const V x = g.In(Floats({static_cast<int64_t>(values.size())}, values)), y = g.Op("Exp", {x});
  g.Out(g.Op("IsInf", {y}));
  g.Out(g.Op("Mul", {y, g.Scalar(0x1p-126)}));
  g.Out(g.Op("Min", {g.Op("Mul", {y, g.Scalar(0x1p126)}), g.Scalar(4)}));
  // Operands that lie inside one end have forms of their own.
  for (const double most : {0, 88}) {
    const V inside = g.Op("Exp", {g.Op("Min", {x, g.Scalar(most)})});
    g.Out(g.Op("Mul", {inside, g.Scalar(most == 0 ? 1 : 0x1p-126)}));
    g.Out(g.Op("Min", {g.Op("Mul", {inside, g.Scalar(0x1p126)}), g.Scalar(4)}));
  }
  const V inside = g.Op("Exp", {g.Op("Max", {x, g.Scalar(-86)})});
  g.Out(g.Op("IsInf", {inside}));
  g.Out(g.Op("Mul", {inside, g.Scalar(0x1p-126)}));
  g.Out(g.Op("Min", {g.Op("Mul", {inside, g.Scalar(0x1p124)}), g.Scalar(4)}));
  for (const char* op : {"Sigmoid", "Softplus", "Elu", "Selu", "Mish"}) {
    const V result = g.Op(op, {x});
    g.Out(g.Op("IsInf", {result}));
    g.Out(g.Op("Clip", {result, g.Scalar(-8), g.Scalar(8)}));
  }
  return FusionCase("exponentials at the ends of the floats", g);
}

// Where hyperbolic functions and their inverses change their form, where they end, and what lies between.
std::vector<double> HyperbolicOperands() {
  std::vector<double> values = {0.0,    -0.0,       kInf,      -kInf,      kNan, 1e-20,
                                -1e-20, 0.99999994, 1.0000001, -1.0000001, 1e4,  3e38};
  const float finite = 89.4159851f;  // the last whose hyperbolic sine and cosine are floats
  for (int i = -8; i <= 8; ++i) values.push_back((i % 2 == 0 ? 1 : -1) * (finite + i * 7.62939453125e-6));
  for (const double edge : {0.5, 1.0, 1.5, 88.7228317, 1e6}) {
    for (int i = -3; i <= 3; ++i) {
      values.push_back(edge * (1 + std::ldexp(i, -23)));
      values.push_back(-values.back());
    }
  }
  for (int i = -60; i <= 60; ++i) {
    values.push_back(i * 0.05);
    values.push_back(std::ldexp(1.2345, 2 * i));
    values.push_back(1 + std::ldexp(1.2345, i / 2));
  }
  return values;
}

// A function that is 1 from `from` on, and never more: what a graph computes of the difference stays a number.
FusionCase Saturating(const std::string& op, double from) {
  std::vector<double> far = {from, 20, 1e4, 1e30, 3e38, kInf, -from, -20, -1e30, -kInf}, near;
  for (int i = 0; i < 2048; ++i) near.push_back((i % 2 == 0 ? 1 : -1) * (0.7 * from + 0.4 * from * i / 2048));
  G g;
  const V one = g.Scalar(1), y = g.Op("Abs", {g.Op(op, {g.In(Floats({10}, far))})});
  g.Out(g.Op("Log", {g.Op("Sub", {one, y})}));
  g.Out(g.Op("Greater", {g.Op("Abs", {g.Op(op, {g.In(Floats({2048}, near))})}), one}));
  return FusionCase(op + " far out", g);
}

// The logarithm of a softplus, which is small and not 0 far below.
FusionCase SmallSoftplus() {
  std::vector<double> values = {kInf, kNan, 0.0, -0.0, 88, 1e-20, -1e-20};
  for (int i = 0; i < 200; ++i) values.push_back(4 - i * 0.45);
  G g;
  g.Out(g.Op("Log", {g.Op("Softplus", {g.In(Floats({static_cast<int64_t>(values.size())}, values))})}));
  return FusionCase("logarithms of softplus", g);
}

// Every pair of the two lists as the operands of a binary operator. Finite results must be small, since the largest one
// bounds the error of all.
FusionCase Pairs(const std::string& op, const std::vector<double>& left, const std::vector<double>& right,
                 const G::Attrs& attrs = {}) {
  G g;
  const V x = g.In(Floats({static_cast<int64_t>(left.size()), 1}, left));
  const V y = g.Op(op, {x, g.In(Floats({static_cast<int64_t>(right.size())}, right))}, attrs);
  g.Out(y);
  g.Out(g.Op("Sign", {g.Op("Reciprocal", {y})}));
  return FusionCase(op + " of special pairs", g);
}

}  // namespace

std::vector<FusionCase> FunctionCases() {
  std::vector<FusionCase> cases = {Function("Sin", Angles()), Function("Cos", Angles()), EndsOfExponentials(),
                                   Saturating("Tanh", 9.2),   Saturating("Erf", 4),      SmallSoftplus()};
  std::vector<double> sines = {0.0, -0.0, 0.5, -0.5, 1, -1, 1.0000001, -1.5, kInf, -kInf, kNan, 1e-30};
  for (int i = -40; i <= 40; ++i) sines.push_back(std::sin(i * 0.04));
  cases.push_back(Function("Asin", sines));
  cases.push_back(Function("Acos", sines));
  cases.push_back(UnboundedFunction("Tan", Angles()));
  for (const char* op : {"Sinh", "Cosh", "Asinh", "Acosh", "Atanh"}) {
    cases.push_back(UnboundedFunction(op, HyperbolicOperands()));
  }
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    G g;  // a root is -0 where its operand is, so that one over a root may lie below zero
    const V x = g.In(Tensor::From<double>(
        dtype, {19},
        {0.0, -0.0, 4, -1, kInf, -kInf, kNan, 2, -0.0, -0.0, -0.0, 9, 0.0, -0.0, -0.0, 0.25, -0.0, 1e-30, -0.0}));
    const V root = g.Op("Sqrt", {x}), inverse = g.Op("Reciprocal", {root});
    g.Out(root);
    g.Out(g.Op("Sign", {inverse}));
    const V zero = g.Scalar(0, dtype);
    g.Out(g.Op("Less", {inverse, zero}));
    g.Out(g.Op("Less", {g.Op("Div", {g.Scalar(-3, dtype), g.Op("Add", {root, root})}), zero}));
    g.Out(g.Op("GreaterOrEqual", {inverse, zero}));
    g.Out(g.Op("Where", {g.Op("Less", {inverse, zero}), g.Scalar(2, dtype), g.Scalar(5, dtype)}));
    cases.push_back(FusionCase(std::string("roots of zeros ") + DTypeName(dtype), g));
  }
  const std::vector<double> bases = {0.0, -0.0, 1,   -1,   kInf, -kInf,     kNan,
                                     1.5, -1.5, 0.3, -0.3, -2,   0.9999999, 1.0000001};
  const std::vector<double> exponents = {0.0, -0.0, 1,     -1,    kInf,    -kInf,     kNan,     2,        -2,
                                         3,   -3,   0.5,   -0.5,  2.5,     1e30,      -1e30,    16777216, 16777215,
                                         4,   -5,   -2.25, 1e-30, 0.33333, -16777215, 8388607.5};
  cases.push_back(Pairs("Pow", bases, exponents));
  {
    G g;  // the powers that have special code
    const V x = g.In(Floats({18}, {0.0, -0.0, kInf, -kInf, kNan, 2, -2, 0.25, -0.25, 1, -1, 3, 4, 5, 6, 7, 8, 9}));
    for (const double e : {2.0, 3.0, 0.5}) {
      const V y = g.Op("Pow", {x, g.Scalar(e)});
      g.Out(y);
      g.Out(g.Op("Sign", {g.Op("Reciprocal", {y})}));
    }
    cases.push_back(FusionCase("Pow by constants", g));
  }
  const G::Attrs as_c = {{"fmod", int64_t{1}}};
  cases.push_back(Pairs("Mod", {0.0, -0.0, 1, -1, kInf, -kInf, kNan, 5.5, -5.5, 3e9, -3e9, 1e20, 3, -3},
                        {1, -1, 0.0, -0.0, kNan, 0.3, -0.3, 3, -3, 5.5, 1e-3, 7, -2.5, 0.125, 11, 1.1, -6, 60, 0.7},
                        as_c));
  cases.push_back(Pairs("Mod", {0.0, -0.0, 1, kInf, kNan, 5.5, -5.5}, {kInf, -kInf, 1e19, -3e38, kNan, 0.0}, as_c));
  {
    G g;  // an operand that is NaN in the text of the kernel
    const V x = g.In(Floats({19}, {0.0, -0.0, 1, -1, kInf, -kInf, kNan, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
    const V nan = g.Scalar(kNan), two = g.Scalar(2);
    for (const std::string op : {"Max", "Min"}) {
      g.Out(g.Op(op, {x, nan}));
      g.Out(g.Op(op, {nan, x}));
      g.Out(g.Op(op, {x, two, nan}));
    }
    g.Out(g.Op("Clip", {x, nan, two}));
    g.Out(g.Op("Clip", {x, two, nan}));
    cases.push_back(FusionCase("extremes beside NaN", g));
  }
  {
    // A value within the range of 64-bit integers keeps its low bits. Beyond the range it saturates, and NaN becomes 0.
    G g;
    const V x =
        g.In(Floats({24}, {0.0,          -0.0,          kInf,          -kInf,        kNan,         2147483648.0,
                           2147483520.0, -2147483648.0, -2147483904.0, 4294967296.0, 4294967808.0, -4294967808.0,
                           6e9,          -6e9,          1e18,          -1e18,        9.3e18,       -9.3e18,
                           1e30,         -1e30,         255.9,         256,          70000,        -70000}));
    for (const int64_t to : {6, 5, 3, 4, 2}) g.Out(g.Op("Cast", {x}, {{"to", to}}));
    cases.push_back(FusionCase("casts out of range", g));
  }
  return cases;
}

}  // namespace fusion::testing
