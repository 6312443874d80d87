#include "compiler/te/scalar/neutral.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "compiler/te/scalar/immediate.h"
#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

Scalar Variable(DType dtype) {
  ScalarNode node;
  node.kind = ScalarKind::kLoad;
  node.dtype = dtype;
  return std::make_shared<const ScalarNode>(node);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<double> kFloats = {0.0, -0.0, 1.0, -1.0, 0.5, -3.25, 1e300, kInfinity, -kInfinity, std::nan("")};
const std::vector<int64_t> kInts = {0, 1, -1, 7, std::numeric_limits<int64_t>::min()};

bool SameBits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// Wherever a call of a variable and an immediate is said to equal one operand, it does so for every value.
TEST(Neutral, CallsThatEqualAnOperandDoForEveryValue) {
  const Scalar x = Variable(DType::kF32), n = Variable(DType::kI64);
  int floats = 0, ints = 0;
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) {
    const OpRow& row = RowOf(op);
    for (const bool immediate_first : {false, true}) {
      for (const double c : kFloats) {
        const Scalar imm = Imm(DType::kF32, c);
        const Scalar same = row.neutral(immediate_first ? std::vector<Scalar>{imm, x} : std::vector<Scalar>{x, imm});
        if (same == nullptr) continue;
        ASSERT_EQ(same, x) << row.info.name << " " << c;
        ++floats;
        for (const double value : kFloats) {
          const double result = immediate_first ? row.value.floats.binary(c, value) : row.value.floats.binary(value, c);
          EXPECT_TRUE(SameBits(result, value)) << row.info.name << " " << c << " and " << value << " give " << result;
        }
      }
      for (const int64_t c : kInts) {
        const Scalar imm = ImmInt(DType::kI64, c);
        const Scalar same = row.neutral(immediate_first ? std::vector<Scalar>{imm, n} : std::vector<Scalar>{n, imm});
        if (same == nullptr) continue;
        ++ints;
        for (const int64_t value : kInts) {
          const int64_t result =
              immediate_first ? row.value.signed_ints.binary(c, value) : row.value.signed_ints.binary(value, c);
          EXPECT_EQ(result, same == n ? value : c) << row.info.name << " " << c << " and " << value;
        }
      }
    }
  }
  EXPECT_EQ(floats, 6);  // x + -0, -0 + x, x - 0, x * 1, 1 * x, x / 1
  EXPECT_EQ(ints, 8);    // the same and x * 0, 0 * x
}

TEST(Neutral, Truths) {
  const Scalar p = Variable(DType::kBool), q = Variable(DType::kBool);
  const Scalar no = ImmInt(DType::kBool, 0), yes = ImmInt(DType::kBool, 1);
  EXPECT_EQ(neutral::OfAnd({p, yes}), p);
  EXPECT_EQ(neutral::OfAnd({no, p}), no);
  EXPECT_EQ(neutral::OfAnd({p, p}), p);
  EXPECT_EQ(neutral::OfAnd({p, q}), nullptr);
  EXPECT_EQ(neutral::OfOr({p, no}), p);
  EXPECT_EQ(neutral::OfOr({p, yes}), yes);
  EXPECT_EQ(neutral::OfOr({p, q}), nullptr);
  EXPECT_EQ(neutral::OfNot({p}), nullptr);
}

TEST(Neutral, Selections) {
  const Scalar p = Variable(DType::kBool), a = Variable(DType::kF32), b = Variable(DType::kF32);
  EXPECT_EQ(neutral::OfSelect({ImmInt(DType::kBool, 1), a, b}), a);
  EXPECT_EQ(neutral::OfSelect({ImmInt(DType::kBool, 0), a, b}), b);
  EXPECT_EQ(neutral::OfSelect({p, a, a}), a);
  EXPECT_EQ(neutral::OfSelect({p, a, b}), nullptr);
}

}  // namespace
}  // namespace fusion::te
