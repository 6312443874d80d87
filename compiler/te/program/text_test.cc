// Tests of printing and parsing te programs.
#include "compiler/te/interpreter/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using ::testing::HasSubstr;
using Idx = Builder::Idx;

void ExpectRoundTrip(const std::string& text) {
  const auto program = Parse(text);
  ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
  EXPECT_EQ(Print(*program), text);
}

TEST(TextTest, RoundTrips) {
  for (const char* text : {
           R"(te p(%0: f32[8], %1: f32[8] const) {
  %2[i0<8]: f32 = add(%0[i0], mul(%1[i0], 2.0))
  return %2
}
)",
           R"(te p(%0: f32[4, 8], %1: f32[8, 16]) {
  %2[i0<4, i1<16]: f32 = sum.f32(i2<8) mul(%0[i0, i2], %1[i2, i1])
  return %2
}
)",
           R"(te p(%0: f16[4, 8], %1: f32[4]) {
  %2[i0<4]: f32 = max.f32(i1<8) cast.f32(%0[i0, i1]) then (mul(acc0, %1[i0]))
  return %2
}
)",
           R"(te p(%0: f32[4, 8]) {
  %1, %2[i0<4]: f32, i64 = reduce(i1<8)(-inf, 0:i64) ->
    let v0 = gt(%0[i0, i1], acc0)
    (select(v0, %0[i0, i1], acc0), select(v0, index(i1), acc1))
  return %1, %2
}
)",
           R"(te p(%0: f32[6, 6]) {
  %1[i0<6, i1<6]: f32 = sum.f32(i2<3, i3<3) %0[i0 + i2 - 1, i1 + i3 - 1]?0.0
  return %1
}
)",
           R"(te p(%0: f32[2], %1: f32[3]) {
  %2[i0<5]: f32 = if i0 < 2 then %0[i0] else %1[i0 - 2]
  return %2
}
)",
           R"(te p(%0: f32[4, 2], %1: i64[3]) {
  %2[i0<3, i1<2]: f32 = %0[%1[i0]{0..3}, i1]
  return %2
}
)",
           R"(te p(%0: f32[3, 8]) {
  %1[i0<24]: f32 = %0[i0//8, i0%8]
  return %1
}
)",
           R"(te p(%0: f32[3]) {
  %1[i0<3]: f32 = sum.f32(i1<3 if i1 < i0 + 1 and i1 >= 1) %0[i1]
  return %1
}
)",
           R"(te p(%0: i32[3] const {1, -2, 3}, %1: f32[] const {0.5}) {
  %2[i0<3]: bool = and(lt(%0[i0], 5:i32), isnan(%1[]))
  %3[i0<3]: f64 = 0.1:f64
  return %2
}
)",
       }) {
    std::string unique = text;
    if (size_t at = unique.find("%3[i0<3]"); at != std::string::npos) unique.replace(at, 8, "%3[i1<3]");
    ExpectRoundTrip(unique);
  }
}

TEST(TextTest, SharedNodesAreNamed) {
  Program program;
  Builder b(&program);
  const TensorId x = program.AddTensor("x", DType::kF32, {4}, Role::kInput);
  program.MarkOutput(b.Map("y", DType::kF32, {4}, [&](const Idx& i) {
    const Scalar e = Call(Op::kExp, {b.At(x, i)});
    const Scalar s = e + e;
    return s * s - e;
  }));
  EXPECT_EQ(Print(program), R"(te p(%0: f32[4]) {
  %1[i0<4]: f32 =
    let v0 = exp(%0[i0])
    let v1 = add(v0, v0)
    sub(mul(v1, v1), v0)
  return %1
}
)");
  ExpectRoundTrip(Print(program));
}

TEST(TextTest, ImmediatesKeepTheirBits) {
  Program program;
  Builder b(&program);
  for (double v : {0.1, 1e-45, 1e300, -0.0, 3.0, 16777217.0}) {
    program.MarkOutput(b.Map("y", DType::kF64, {}, [&](const Idx&) { return Imm(DType::kF64, v); }));
  }
  program.MarkOutput(b.Map("y", DType::kU64, {}, [&](const Idx&) { return ImmInt(DType::kU64, -1); }));
  const std::string text = Print(program);
  const auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), text);
  const auto values = Interpret(*parsed, {});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0].GetDouble(0), 0.1);
  EXPECT_EQ((*values)[1].GetDouble(0), 1e-45);
  EXPECT_TRUE(std::signbit((*values)[3].GetDouble(0)));
  EXPECT_EQ((*values)[6].GetInt(0), -1);
}

TEST(TextTest, ErrorsNameTheLineAndTheThing) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"", "line 1: expected 'te'"},
      {"te p(%0: f33[2]) {", "'f33' is not an element type"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = foo(%0[i0])\n return %1 }", "line 2: 'foo' is not an operation"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = add(%0[i0])\n return %1 }", "add takes 2 arguments, not 1"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = add(%0[i0], 1:i32)\n return %1 }", "add of f32 and i32"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = bitand(%0[i0], %0[i0])\n return %1 }", "not defined on f32"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = %0[i0 + 1]\n return %1 }", "lies in [1, 2], outside [2]"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = %0[i1]\n return %1 }", "axis i1 is not defined here"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = %7[i0]\n return %1 }", "%7 is not defined"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: f32 = 1.0", "expected '%'"},
      {"te p(%0: f32[2]) {\n return %1 }", "%1 is not defined"},
      {"te p(%0: f32[2]) {\n %1[i0<2]: i32 = %0[i0]\n return %1 }", "a body is f32 where i32 is needed"},
      {"te p(%0: f32[1099511627776, 1099511627776]) { return %0 }", "line 1"},
      {"te p(%99999999999: f32[2]) { return %0 }", "below 2^20"},
      {"te p() { return } x", "expected the end"},
  };
  for (const auto& c : cases) {
    const auto program = Parse(c.text);
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(program.status().message()), HasSubstr(c.message)) << c.text;
  }
}

TEST(TextTest, DeepNestingIsAnError) {
  std::string text = "te p(%0: f32[2]) {\n %1[i0<2]: f32 = ";
  for (int k = 0; k < 100000; ++k) text += "neg(";
  EXPECT_THAT(std::string(Parse(text).status().message()), HasSubstr("nested too deeply"));
}

TEST(TextTest, EveryPrefixIsRejectedCleanly) {
  const std::string text = R"(te p(%0: f32[4, 8], %1: i64[4] const {0, 1, 2, 3}) {
  %2[i0<4]: f32 = sum.f32(i1<8 if i1 < 6) mul(%0[%1[i0]{0..3}, i1], if i1 < 2 then 1.0 else -2.5) then (exp(acc0))
  return %2
}
)";
  ExpectRoundTrip(text);
  for (size_t n = 0; n + 2 < text.size(); ++n) EXPECT_FALSE(Parse(text.substr(0, n)).ok()) << n;
}

}  // namespace
}  // namespace fusion::te
