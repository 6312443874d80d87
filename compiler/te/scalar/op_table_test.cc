#include "compiler/te/scalar/op_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace fusion::te {
namespace {

using op_table::kRows;

template <typename T>
bool FormFitsArity(const OpRow& row) {
  const ValueFn<T>& fn = row.value.On<T>();
  if (!fn.Defined()) return true;
  const bool one = fn.unary != nullptr || fn.test != nullptr;
  return row.info.arity == (one ? 1 : 2);
}

TEST(OpTable, RowsAgreeWithThemselves) {
  std::set<std::string> names;
  for (const OpRow& row : kRows) {
    SCOPED_TRACE(row.info.name);
    EXPECT_TRUE(names.insert(row.info.name).second);
    if (row.op == Op::kSelect) continue;
    EXPECT_TRUE(FormFitsArity<double>(row) && FormFitsArity<int64_t>(row) && FormFitsArity<uint64_t>(row));
    // An operation computes on what its type rule admits, and on nothing else.
    EXPECT_EQ(row.value.floats.Defined(), IsDefinedOn(row, DType::kF32));
    EXPECT_EQ(row.value.signed_ints.Defined(), IsDefinedOn(row, DType::kI32) || IsDefinedOn(row, DType::kBool));
    EXPECT_EQ(row.value.unsigned_ints.Defined(), row.value.signed_ints.Defined());
    if (row.lanes & kFloatLanes) EXPECT_TRUE(IsDefinedOn(row, DType::kF32));
    if (row.lanes & kIntLanes) EXPECT_TRUE(IsDefinedOn(row, DType::kI32));
    if (row.lanes & kMaskLanes) EXPECT_TRUE(IsDefinedOn(row, DType::kBool));
  }
}

TEST(OpTable, CommutativeOperationsCommute) {
  for (const OpRow& row : kRows) {
    SCOPED_TRACE(row.info.name);
    if (row.info.arity != 2) continue;
    const auto holds = [&](auto fn, auto a, auto b) {
      if (fn.binary != nullptr) EXPECT_EQ(fn.binary(a, b), fn.binary(b, a));
      if (fn.compare != nullptr) EXPECT_EQ(fn.compare(a, b), fn.compare(b, a));
    };
    if (!row.info.commutative) continue;
    holds(row.value.floats, 2.5, -7.0);
    holds(row.value.signed_ints, int64_t{5}, int64_t{-7});
    holds(row.value.unsigned_ints, uint64_t{5}, uint64_t{12});
  }
}

// The range of each operation holds its value, for operands of which the ranges are points and short intervals.
TEST(OpTable, RangesHoldValues) {
  const double points[] = {-3, -1, -0.5, 0, 0.25, 1, 2, 40};
  int checked = 0;
  for (const OpRow& row : kRows) {
    const ValueFn<double>& fn = row.value.floats;
    if (row.range == nullptr || !fn.Defined()) continue;
    for (const double a : points) {
      for (const double b : points) {
        ValueRange x = ranges::Range(a - 0.125, a + 0.125, true), y = ranges::Range(b - 0.125, b + 0.125, true);
        const ValueRange known = row.range({.a = x, .b = y});
        const double value = fn.unary     ? fn.unary(a)
                             : fn.binary  ? fn.binary(a, b)
                             : fn.test    ? fn.test(a)
                             : fn.compare ? fn.compare(a, b)
                                          : 0;
        if (std::isnan(value)) {
          EXPECT_FALSE(known.number) << row.info.name << " of " << a << " and " << b;
          continue;
        }
        EXPECT_LE(known.lo, value) << row.info.name << " of " << a << " and " << b;
        EXPECT_GE(known.hi, value) << row.info.name << " of " << a << " and " << b;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST(OpValues, IntegersWrapAndDivideByZero) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(values::Add<int64_t>(std::numeric_limits<int64_t>::max(), 1), kLeast);
  EXPECT_EQ(values::Quotient<int64_t>(kLeast, -1), kLeast);
  EXPECT_EQ(values::Quotient<int64_t>(7, 0), 0);
  EXPECT_EQ(values::Remainder<int64_t>(kLeast, -1), 0);
  EXPECT_EQ(values::Modulo<int64_t>(-7, 3), 2);
  EXPECT_EQ(values::Remainder<int64_t>(-7, 3), -1);
  EXPECT_EQ(values::Quotient<uint64_t>(~uint64_t{0}, 2), ~uint64_t{0} >> 1);
  EXPECT_EQ(values::Power<int64_t>(-1, -3), -1);
  EXPECT_EQ(values::Power<uint64_t>(2, 10), 1024u);
  EXPECT_TRUE(std::signbit(values::Modulo(6.0, -3.0)));
}

}  // namespace
}  // namespace fusion::te
