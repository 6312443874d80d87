// Tests of the unary, binary and cast families.
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Pointwise;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MATCHER_P(Near, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance * (1 + std::abs(std::get<1>(arg)));
}

std::vector<double> Unary(const std::string& op, const std::vector<double>& x,
                          const std::vector<std::pair<std::string, ecg::Attribute>>& attrs = {}) {
  return Values(RunOp({op, {F32({static_cast<int64_t>(x.size())}, x)}, attrs}));
}

TEST(BitCast, KeepsEveryBit) {
  const auto bits = [](DType to, const Tensor& x) {
    return RunOp({"BitCast", {x}, {{"to", OnnxNumber(to)}}}).value()[0];
  };
  const Tensor floats = F32({4}, {1, -2, -0.0, kInf});
  const Tensor ints = bits(DType::kI32, floats);
  EXPECT_THAT(Elements(ints), ElementsAre(0x3f800000, -0x40000000, std::numeric_limits<int32_t>::min(), 0x7f800000));
  EXPECT_EQ(std::memcmp(bits(DType::kF32, ints).data(), floats.data(), 16), 0);
  // A signalling NaN with a payload, which arithmetic would make quiet.
  const Tensor nan = Tensor::From<int64_t>(DType::kU32, {1}, {0x7f812345});
  EXPECT_THAT(Elements(bits(DType::kU32, bits(DType::kF32, nan))), ElementsAre(0x7f812345));
  EXPECT_THAT(Elements(bits(DType::kBF16, Tensor::From<double>(DType::kF16, {1}, {1}))), ElementsAre(0.0078125));
  EXPECT_THAT(Elements(bits(DType::kI8, Tensor::From<int64_t>(DType::kU8, {2}, {200, 7}))), ElementsAre(-56, 7));
  EXPECT_EQ(bits(DType::kI32, F32({2, 0}, {})).shape(), Shape({2, 0}));
  EXPECT_THAT(std::string(TypeOf({"BitCast", {floats}, {{"to", OnnxNumber(DType::kI64)}}}).status().message()),
              HasSubstr("f32 and i64 differ in width"));
}

TEST(BitShift, SignedIntegersKeepTheirSign) {
  const auto shift = [](const std::string& direction, DType dtype, const std::vector<double>& x,
                        const std::vector<double>& amount) {
    const int64_t n = static_cast<int64_t>(x.size());
    const Tensor a = Tensor::From<double>(dtype, {n}, x), b = Tensor::From<double>(dtype, {n}, amount);
    return Values(RunOp({"BitShift", {a, b}, {{"direction", direction}}}));
  };
  EXPECT_THAT(shift("RIGHT", DType::kI8, {-8, -8, -8, 8, 8, 8}, {1, 8, -1, 1, 8, -1}),
              ElementsAre(-4, -1, -1, 4, 0, 0));
  EXPECT_THAT(shift("RIGHT", DType::kI32, {-8, -8, 8}, {31, 32, 40}), ElementsAre(-1, -1, 0));
  EXPECT_THAT(shift("LEFT", DType::kI8, {-1, 64, 3, 3}, {1, 1, 8, -1}), ElementsAre(-2, -128, 0, 0));
  EXPECT_THAT(shift("RIGHT", DType::kU8, {200, 200}, {1, 8}), ElementsAre(100, 0));
}

TEST(Unary, ActivationsByDefinition) {
  const std::vector<double> x{-3, -0.5, 0, 0.5, 3};
  const auto expect = [&](const std::string& op, double (*f)(double),
                          const std::vector<std::pair<std::string, ecg::Attribute>>& attrs = {}) {
    std::vector<double> y;
    for (double v : x) y.push_back(f(v));
    EXPECT_THAT(Unary(op, x, attrs), Pointwise(Near(1e-6), y)) << op;
  };
  expect("Relu", [](double v) { return v > 0 ? v : 0; });
  expect("Swish", [](double v) { return v / (1 + std::exp(-v)); });
  expect("Swish", [](double v) { return v / (1 + std::exp(-1.5 * v)); }, {{"alpha", 1.5}});
  expect("Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); });
  expect("Softplus", [](double v) { return std::log1p(std::exp(v)); });
  expect("Gelu", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  expect("HardSwish", [](double v) { return v * std::min(1.0, std::max(0.0, v / 6 + 0.5)); });
  expect("Elu", [](double v) { return v < 0 ? 2 * (std::exp(v) - 1) : v; }, {{"alpha", 2.0}});
  expect("LeakyRelu", [](double v) { return v < 0 ? 0.1 * v : v; }, {{"alpha", 0.1}});
  expect("Mish", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  expect("Round", [](double v) { return std::nearbyint(v); });
}

TEST(Unary, ReluKeepsNanAndSoftplusDoesNotOverflow) {
  EXPECT_THAT(Unary("Relu", {kNan})[0], IsNan());
  EXPECT_THAT(Unary("Softplus", {1000.0, -1000.0}), ElementsAre(1000, 0));
  EXPECT_THAT(Unary("IsInf", {kInf, -kInf, 1, kNan}, {{"detect_negative", int64_t{0}}}), ElementsAre(1, 0, 0, 0));
}

TEST(Unary, SoftplusIsExactWhereItIsSmall) {
  for (const double v : {-1.0, -5.0, -9.0, -16.0, -17.0, -20.0, -60.0, -80.0, 1.0, 5.0}) {
    EXPECT_NEAR(Unary("Softplus", {v})[0] / std::log1p(std::exp(v)), 1, 3e-7) << v;
  }
}

TEST(Unary, MishFarOut) {
  EXPECT_THAT(Unary("Mish", {kNan})[0], IsNan());
  EXPECT_THAT(Unary("Mish", {kInf, 1000.0, 90.0, 20.0}), ElementsAre(kInf, 1000, 90, 20));
  for (const double v : {-5.0, -20.0, -60.0, -80.0}) {  // relative tolerance where the result is close to v · e^v
    const double mish = v * std::tanh(std::log1p(std::exp(v)));
    EXPECT_NEAR(Unary("Mish", {v})[0] / mish, 1, 3e-6) << v;
  }
}

TEST(Unary, TypesAreCheckedByName) {
  const auto result = RunOp({"Exp", {I64({1}, {1})}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("Exp 'n': input 0 of type i64"));
  const auto attribute = RunOp({"Relu", {F32({1}, {1})}, {{"alpha", 1.0}}});
  EXPECT_THAT(std::string(attribute.status().message()), HasSubstr("unknown attribute 'alpha'"));
}

TEST(Unary, RoundedIsOneWhereFloatsAreComputed) {
  const auto message = [](const char* op, DType dtype, const ecg::Attribute& rounded) {
    const Tensor x(dtype, {2});
    return std::string(RunOp({op, {x, x}, {{"rounded", rounded}}}).status().message());
  };
  EXPECT_EQ(message("Mul", DType::kF32, int64_t{1}), "");
  EXPECT_EQ(message("Mul", DType::kF64, int64_t{1}), "");
  EXPECT_THAT(message("Mul", DType::kF32, int64_t{2}), HasSubstr("Mul 'n': attribute 'rounded' is 1, or absent"));
  EXPECT_THAT(message("Mul", DType::kF32, 1.0), HasSubstr("attribute 'rounded' is 1, or absent"));
  for (const DType dtype : {DType::kI32, DType::kF16}) {
    EXPECT_THAT(message("Mul", dtype, int64_t{1}), HasSubstr("'rounded' rounds results of f32 and f64"));
  }
  EXPECT_THAT(message("Less", DType::kF32, int64_t{1}), HasSubstr("'rounded' rounds results of f32 and f64"));
}

TEST(Unary, HalfRoundsOnceAtTheEnd) {
  const Tensor x = Tensor::From<double>(DType::kF16, {1}, {3.0});
  EXPECT_EQ(Values(RunOp({"Exp", {x}}))[0], HalfToFloat(FloatToHalf(static_cast<float>(std::exp(3.0)))));
}

TEST(Binary, BroadcastsBothWays) {
  const OpCase add{"Add", {F32({2, 1}, {10, 20}), F32({3}, {1, 2, 3})}};
  EXPECT_THAT(Values(RunOp(add)), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_EQ(MappingOf(add), MappingType::kOneToMany);
  EXPECT_EQ(MappingOf({"Add", {F32({3}, {1, 2, 3}), F32({3}, {1, 2, 3})}}), MappingType::kOneToOne);
  EXPECT_EQ(MappingOf({"Add", {F32({3}, {1, 2, 3}), F32({}, {1})}, {}, {1}}), MappingType::kOneToOne);
}

TEST(Binary, DisagreeingShapesNameBoth) {
  const auto result = RunOp({"Add", {F32({2}, {1, 2}), F32({3}, {1, 2, 3})}});
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("Add 'n': shapes [2] and [3] do not broadcast"));
}

TEST(Binary, IntegerDivisionAndModulo) {
  const auto run = [](const char* op, const std::vector<std::pair<std::string, ecg::Attribute>>& attrs = {}) {
    return Values(RunOp({op, {I64({4}, {-7, 7, -7, 7}), I64({4}, {2, 2, -2, -2})}, attrs}));
  };
  EXPECT_THAT(run("Div"), ElementsAre(-3, 3, 3, -3));
  EXPECT_THAT(run("Mod"), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(run("Mod", {{"fmod", int64_t{1}}}), ElementsAre(-1, 1, -1, 1));
}

TEST(Binary, VariadicChains) {
  const std::vector<Tensor> x{F32({2}, {1, 5}), F32({2}, {4, 2}), F32({1}, {3})};
  EXPECT_THAT(Values(RunOp({"Max", x})), ElementsAre(4, 5));
  EXPECT_THAT(Values(RunOp({"Min", x})), ElementsAre(1, 2));
  EXPECT_THAT(Values(RunOp({"Sum", x})), ElementsAre(8, 10));
  EXPECT_THAT(Values(RunOp({"Mean", {x[0], x[1]}})), ElementsAre(2.5, 3.5));
  EXPECT_THAT(Values(RunOp({"Max", {x[0]}})), ElementsAre(1, 5));
}

TEST(Binary, PowOfConstantExponentsAndMixedTypes) {
  for (double exponent : {2.0, 3.0, 0.5, -0.5, -1.0, 1.7}) {
    const OpCase pow{"Pow", {F32({2}, {2, 9}), F32({}, {exponent})}, {}, {1}};
    EXPECT_THAT(Values(RunOp(pow)), Pointwise(Near(1e-6), {std::pow(2, exponent), std::pow(9, exponent)}));
  }
  EXPECT_THAT(Values(RunOp({"Pow", {I64({2}, {2, -3}), F32({}, {3})}})), ElementsAre(8, -27));
  // IEEE's pow defines these results; a square root would give -0 and NaN.
  for (const double exponent : {0.5, -0.5}) {
    const std::vector<double> roots = Values(RunOp({"Pow", {F32({2}, {-0.0, -kInf}), F32({}, {exponent})}, {}, {1}}));
    EXPECT_THAT(roots, ElementsAre(exponent > 0 ? 0 : kInf, exponent > 0 ? kInf : 0));
    EXPECT_FALSE(std::signbit(roots[0]) || std::signbit(roots[1]));
  }
  EXPECT_EQ(TypeOf({"Pow", {I64({2}, {2, 3}), F32({}, {3})}})->dtype, DType::kI64);
}

TEST(Binary, ComparisonsGiveBool) {
  const OpCase less{"LessOrEqual", {F32({3}, {1, 2, kNan}), F32({3}, {2, 2, 2})}};
  EXPECT_THAT(Values(RunOp(less)), ElementsAre(1, 1, 0));
  EXPECT_EQ(TypeOf(less)->dtype, DType::kBool);
}

TEST(Binary, WhereClipPRelu) {
  const Tensor condition = Tensor::From<int>(DType::kBool, {2}, {1, 0});
  EXPECT_THAT(Values(RunOp({"Where", {condition, F32({}, {1}), F32({2, 1}, {5, 6})}})), ElementsAre(1, 5, 1, 6));
  const Tensor x = F32({3}, {-2, 0.5, 9});
  EXPECT_THAT(Values(RunOp({"Clip", {x, F32({}, {-1}), F32({}, {6})}, {}, {1, 2}})), ElementsAre(-1, 0.5, 6));
  EXPECT_THAT(Values(RunOp({"Clip", {x, Absent(), F32({}, {6})}})), ElementsAre(-2, 0.5, 6));
  EXPECT_THAT(Values(RunOp({"PRelu", {F32({2, 2}, {-1, 1, -1, 1}), F32({2, 1}, {0.5, 0.25})}})),
              ElementsAre(-0.5, 1, -0.25, 1));
}

TEST(Cast, TruncatesAndTests) {
  EXPECT_THAT(Values(RunOp({"Cast", {F32({2}, {2.7, -2.7})}, {{"to", int64_t{7}}}})), ElementsAre(2, -2));
  EXPECT_THAT(Values(RunOp({"Cast", {F32({2}, {0.5, 0})}, {{"to", int64_t{9}}}})), ElementsAre(1, 0));
  EXPECT_EQ(RunOp({"Cast", {F32({1}, {0})}, {{"to", int64_t{8}}}}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Schema, NamesWhatDoesNotFit) {
  const auto message = [](const OpCase& op_case) { return std::string(TypeOf(op_case).status().message()); };
  EXPECT_THAT(message({"Gelu", {F32({1}, {0})}, {{"approximate", std::string("cubic")}}}),
              HasSubstr("attribute 'approximate' is 'cubic', one of none, tanh is required"));
  const Tensor x = Tensor::From<int64_t>(DType::kU8, {2}, {1, 2});
  EXPECT_THAT(message({"DequantizeLinear", {x, x}}), HasSubstr("input 1 of type u8 is not allowed"));
  EXPECT_THAT(message({"DequantizeLinear", {x, F32({}, {0.5}), x}}),
              HasSubstr("zero point [2] and scale [] must have one shape"));
  EXPECT_THAT(message({"Einsum", {x, Absent()}, {{"equation", std::string("i,->i")}}}),
              HasSubstr("input 1 is missing"));
  EXPECT_THAT(message({"GatherElements", {x, x}}), HasSubstr("input 'indices' has type u8, i32 or i64 is required"));
}

}  // namespace
}  // namespace fusion::ops
