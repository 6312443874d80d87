// Tests of routines through text, verification and the interpreter.
#include "compiler/te/routines/routine.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/transform.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> Values(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.GetDouble(i));
  return values;
}

std::vector<Tensor> RunText(const std::string& text, const std::vector<Tensor>& inputs) {
  const auto program = Parse(text).value();
  EXPECT_EQ(Print(program), text);
  EXPECT_EQ(Print(Canonicalize(program)), Print(Canonicalize(Canonicalize(program))));
  return Interpret(program, inputs).value();
}

Tensor F(Shape shape, const std::vector<double>& values) { return Tensor::From(DType::kF32, std::move(shape), values); }

TEST(Routine, TopKTakesTheLowerIndexOfEqualOnes) {
  const auto out = RunText(R"(te p(%0: f32[2, 5]) {
  %1, %2: f32[2, 3], i64[2, 3] = routine top_k(%0) {5, 1, 3, 1} tasks 2 scratch 140
  return %1, %2
}
)",
                           {F({2, 5}, {3, 7, 7, 1, 7, -1, -2, -3, -2, -5})});
  EXPECT_THAT(Values(out[0]), ElementsAre(7, 7, 7, -1, -2, -2));
  EXPECT_THAT(Values(out[1]), ElementsAre(1, 2, 4, 0, 1, 3));
}

TEST(Routine, TopKSmallestAlongAnOuterAxisOfHalves) {
  const auto out = RunText(R"(te p(%0: f16[4, 2]) {
  %1, %2: f16[2, 2], i64[2, 2] = routine top_k(%0) {4, 2, 2, 0} tasks 2 scratch 112
  return %2
}
)",
                           {Tensor::From<double>(DType::kF16, {4, 2}, {0.5, NAN, -1, 4, 2, 3, -1, -INFINITY})});
  EXPECT_THAT(Values(out[0]), ElementsAre(1, 3, 3, 2));  // NaN comes after everything else
}

TEST(Routine, BitCastCopiesInBlocks) {
  const auto out = RunText(R"(te p(%0: f32[3]) {
  %1: u32[3] = routine bit_cast(%0) {3, 2} tasks 2 scratch 0
  return %1
}
)",
                           {F({3}, {1, -0.0, 2})});
  EXPECT_THAT(Values(out[0]), ElementsAre(0x3f800000, 0x80000000, 0x40000000));
  EXPECT_THAT(std::string(Parse("te p(%0: f32[3]) {\n  %1: u16[3] = routine bit_cast(%0) {3, 2} tasks 2 scratch 0\n"
                                "  return %1\n}\n")
                              .status()
                              .message()),
              HasSubstr("routine bit_cast is f32>?, not f32>u16"));
}

TEST(Routine, NonZeroAndCompressCount) {
  const auto out = RunText(R"(te p(%0: i32[2, 3], %1: bool[2]) {
  %2, %3: i64[2, 6], i64[] = routine non_zero(%0) {6, 2, 2, 3} tasks 1 scratch 0
  %4, %5: i32[2, 2], i64[] = routine compress(%0, %1) {2, 3, 1, 2} tasks 1 scratch 0
  return %2, %3, %4, %5
}
)",
                           {Tensor::From<int64_t>(DType::kI32, {2, 3}, {0, 5, 0, -1, 2, 0}),
                            Tensor::From<int64_t>(DType::kBool, {2}, {0, 1})});
  EXPECT_THAT(Values(out[1]), ElementsAre(3));
  EXPECT_THAT(Values(out[0]), ElementsAre(0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0));
  EXPECT_THAT(Values(out[3]), ElementsAre(1));
  EXPECT_EQ(out[2].GetInt(0), 5);
  EXPECT_EQ(out[2].GetInt(2), 2);
}

TEST(Routine, ScattersTakeTheLastAndLeaveOutWhatIsOutside) {
  const auto out = RunText(R"(te p(%0: i32[2, 3], %1: i64[2, 2], %2: i32[2, 2], %3: i64[3, 1], %4: i32[3, 3]) {
  %5: i32[2, 3] = routine scatter_elements(%0, %1, %2) {2, 1, 0, 2, 3, 2, 2} tasks 1 scratch 0
  %6: i32[2, 3] = routine scatter_elements(%0, %1, %2) {2, 0, 0, 2, 3, 2, 2} tasks 1 scratch 0
  %7: i32[2, 3] = routine scatter_nd(%0, %3, %4) {3, 1, 3, 2, 0, 2} tasks 1 scratch 0
  return %5, %6, %7
}
)",
                           {Tensor::From<int64_t>(DType::kI32, {2, 3}, {0, 1, 2, 3, 4, 5}),
                            Tensor::From<int64_t>(DType::kI64, {2, 2}, {1, -1, 1, 3}),
                            Tensor::From<int64_t>(DType::kI32, {2, 2}, {10, 20, 30, 40}),
                            Tensor::From<int64_t>(DType::kI64, {3, 1}, {-1, 2, 1}),
                            Tensor::From<int64_t>(DType::kI32, {3, 3}, {6, 6, 6, 7, 7, 7, 8, 8, 9})});
  EXPECT_THAT(Values(out[0]), ElementsAre(0, 10, 20, 3, 30, 5));
  EXPECT_THAT(Values(out[1]), ElementsAre(0, 1, 2, 30, 20, 5));
  EXPECT_THAT(Values(out[2]), ElementsAre(0, 1, 2, 8, 8, 9));
}

// Updates address one slice three times, another once and a third never.
TEST(Routine, ScattersCombineInOrder) {
  const auto combined = [](const char* reduction, const char* type, const Tensor& data, const Tensor& updates) {
    std::string text = R"(te p(%0: T[3], %1: i64[4, 1], %2: T[4], %3: i64[4]) {
  %4: T[3] = routine scatter_nd(%0, %1, %2) {4, 1, 1, 3, R, 3} tasks 1 scratch 0
  %5: T[3] = routine scatter_elements(%0, %3, %2) {1, 0, R, 3, 4} tasks 1 scratch 0
  return %4, %5
}
)";
    for (const auto& [from, to] :
         {std::pair{" T[", absl::StrCat(" ", type, "[")}, {"R,", absl::StrCat(reduction, ",")}}) {
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, std::string(from).size(), to);
      }
    }
    const std::vector<int64_t> indices = {2, 0, -1, 2};
    const auto out = RunText(text, {data, Tensor::From<int64_t>(DType::kI64, {4, 1}, indices), updates,
                                    Tensor::From<int64_t>(DType::kI64, {4}, indices)});
    EXPECT_THAT(Values(out[0]), testing::Pointwise(testing::NanSensitiveDoubleEq(), Values(out[1])));
    return Values(out[0]);
  };
  const Tensor data = F({3}, {1, 2, 3}), updates = F({4}, {5, -7, 0.5, 4});
  EXPECT_THAT(combined("0", "f32", data, updates), ElementsAre(-7, 2, 4));
  EXPECT_THAT(combined("1", "f32", data, updates), ElementsAre(-6, 2, 12.5));
  EXPECT_THAT(combined("2", "f32", data, updates), ElementsAre(-7, 2, 30));
  EXPECT_THAT(combined("3", "f32", data, updates), ElementsAre(1, 2, 5));
  EXPECT_THAT(combined("4", "f32", data, updates), ElementsAre(-7, 2, 0.5));
  // The updates are applied in order, starting from the data: the updates alone would overflow. A half is rounded after
  // each step.
  EXPECT_THAT(combined("1", "f32", F({3}, {0, 0, -3e38}), F({4}, {3e38, 0, 3e38, -3e38})), ElementsAre(0, 0, 0));
  const auto half = [](const std::vector<double>& values) {
    return Tensor::From<double>(DType::kF16, {static_cast<int64_t>(values.size())}, values);
  };
  EXPECT_THAT(combined("1", "f16", half({0, 0, 2048}), half({1, 0, 1, 2})), ElementsAre(0, 0, 2050));
  const auto nan = combined("3", "f32", F({3}, {NAN, 0, 0}), F({4}, {1, 2, NAN, 3}));
  EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[2]));
  // Integers wrap.
  const auto ints = [](DType dtype, const std::vector<int64_t>& values) {
    return Tensor::From<int64_t>(dtype, {static_cast<int64_t>(values.size())}, values);
  };
  EXPECT_THAT(combined("1", "i32", ints(DType::kI32, {2147483647, 0, 0}), ints(DType::kI32, {0, 2, 0, 0})),
              ElementsAre(-2147483647, 0, 0));
  EXPECT_THAT(combined("2", "u16", ints(DType::kU16, {65535, 0, 0}), ints(DType::kU16, {0, 65535, 0, 0})),
              ElementsAre(1, 0, 0));
  EXPECT_THAT(combined("2", "i8", ints(DType::kI8, {100, 0, 1}), ints(DType::kI8, {3, 3, -1, 2})),
              ElementsAre(44, 0, -6));
}

TEST(Routine, UniqueIgnoresWhatIsNotValid) {
  const std::string text = R"(te p(%0: i64[7], %1: i64[]) {
  %2, %3, %4, %5, %6: i64[7], i64[7], i64[7], i64[7], i64[] = routine unique(%0, %1) {1, 7, 1, SORTED} tasks 1 scratch 448
  return %2, %3, %4, %5, %6
}
)";
  const std::vector<Tensor> inputs = {Tensor::From<int64_t>(DType::kI64, {7}, {2, 1, 1, 3, 4, 3, 9}),
                                      Tensor::From<int64_t>(DType::kI64, {}, {6})};
  auto with = [&](const char* sorted) {
    std::string copy = text;
    copy.replace(copy.find("SORTED"), 6, sorted);
    auto out = RunText(copy, inputs);
    EXPECT_EQ(out[4].GetInt(0), 4);
    std::vector<std::vector<double>> lists;
    for (int i = 0; i < 4; ++i) {
      lists.push_back(Values(out[i]));
      lists.back().resize(i == 2 ? 6 : 4);
    }
    return lists;
  };
  EXPECT_THAT(with("1"), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(1, 0, 3, 4), ElementsAre(1, 0, 0, 2, 3, 2),
                                     ElementsAre(2, 1, 2, 1)));
  EXPECT_THAT(with("0"), ElementsAre(ElementsAre(2, 1, 3, 4), ElementsAre(0, 1, 3, 4), ElementsAre(0, 1, 1, 2, 3, 2),
                                     ElementsAre(1, 2, 2, 1)));
}

// Returns values of a type of which many are equal: both zeros, NaNs, infinities and subnormals where the type has
// them, and the extremes of an integer type.
Tensor ManyEqual(DType dtype, Shape shape, uint32_t seed) {
  std::vector<double> some = {0, 1, 2, 3, 17, 100};
  if (IsSigned(dtype) || IsFloat(dtype)) some.insert(some.end(), {-1, -2, -100});
  if (IsFloat(dtype)) {
    some.insert(some.end(), {-0.0, NAN, -NAN, INFINITY, -INFINITY, 6e-8, -6e-8});
    if (dtype != DType::kF16) some.insert(some.end(), {1e-40, -1e-40, 3e38, -3e38});
  }
  if (dtype == DType::kI32) some.insert(some.end(), {2147483647.0, -2147483648.0});
  if (dtype == DType::kU32) some.push_back(4294967295.0);
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    tensor.SetDouble(i, some[(seed >> 16) % some.size()]);
  }
  return tensor;
}

bool Before(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

constexpr DType kOrdered[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16,
                              DType::kI32, DType::kI64, DType::kU8,  DType::kU16,  DType::kU32, DType::kU64};

std::vector<int64_t> SortedBy(const std::vector<double>& x, bool falling) {
  std::vector<int64_t> order(x.size());
  for (size_t i = 0; i < x.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return falling ? Before(x[b], x[a]) : Before(x[a], x[b]); });
  return order;
}

// Covers every way in which the routine finds the best: the least of all, groups, few and many candidates, all
// elements.
TEST(Routine, TopKIsTheStartOfAStableSort) {
  for (const DType dtype : kOrdered) {
    for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {5, 1}, {5, 5}, {70, 2}, {300, 7}, {300, 40}, {300, 300}, {3000, 30}}) {
      for (const bool largest : {false, true}) {
        const int64_t inner = n == 70 ? 3 : 1;
        const Tensor x = ManyEqual(dtype, {2, n, inner}, static_cast<uint32_t>(n + k));
        const char* type = DTypeName(dtype);
        const auto out =
            RunText(absl::StrCat("te p(%0: ", type, "[2, ", n, ", ", inner, "]) {\n  %1, %2: ", type, "[2, ", k, ", ",
                                 inner, "], i64[2, ", k, ", ", inner, "] = routine top_k(%0) {", n, ", ", inner, ", ",
                                 k, ", ", largest ? 1 : 0, "} tasks ", 2 * inner, " scratch ",
                                 KeysBytes(dtype, n) + KeyedBytes(dtype, n), "\n  return %1, %2\n}\n"),
                    {x});
        for (int64_t row = 0; row < 2 * inner; ++row) {
          std::vector<double> values;
          const int64_t from = row / inner * n * inner + row % inner;
          for (int64_t i = 0; i < n; ++i) values.push_back(x.GetDouble(from + i * inner));
          const std::vector<int64_t> order = SortedBy(values, largest);
          for (int64_t j = 0; j < k; ++j) {
            const int64_t at = row / inner * k * inner + j * inner + row % inner;
            ASSERT_EQ(out[1].GetInt(at), order[j]) << type << " " << n << " " << k << " " << largest << " row " << row;
            ASSERT_EQ(std::signbit(out[0].GetDouble(at)), std::signbit(values[order[j]]));
          }
        }
      }
    }
  }
}

// The routine forms 48 groups, one per column. Here all small elements stand in one group, or every element is a
// candidate.
TEST(Routine, TopKOfUnevenGroups) {
  for (const int pattern : {0, 1, 2, 3}) {
    std::vector<double> x(2000);
    for (int64_t i = 0; i < 2000; ++i) {
      x[i] = pattern == 0   ? (i % 48 == 5 ? -static_cast<double>(i) : static_cast<double>(i))
             : pattern == 1 ? 7
             : pattern == 2 ? static_cast<double>(-i)
                            : static_cast<double>(i);
    }
    const auto out = RunText(absl::StrCat("te p(%0: f32[2000]) {\n  %1, %2: f32[11], i64[11] = routine top_k(%0) "
                                          "{2000, 1, 11, 0} tasks 1 scratch 40000\n  return %1, %2\n}\n"),
                             {F({2000}, x)});
    const std::vector<int64_t> order = SortedBy(x, false);
    for (int64_t j = 0; j < 11; ++j) EXPECT_EQ(out[1].GetInt(j), order[j]) << pattern;
  }
}

TEST(Routine, UniqueOfEveryType) {
  for (const DType dtype : kOrdered) {
    for (const int64_t n : {20, 500}) {
      const Tensor x = ManyEqual(dtype, {n}, 3);
      const char* type = DTypeName(dtype);
      const auto out = RunText(
          absl::StrCat("te p(%0: ", type, "[", n, "], %1: i64[]) {\n  %2, %3, %4, %5, %6: ", type, "[", n, "], i64[", n,
                       "], i64[", n, "], i64[", n, "], i64[] = routine unique(%0, %1) {1, ", n,
                       ", 1, 1} tasks 1 scratch ", 24 * n + KeyedBytes(dtype, n), "\n  return %2, %3, %4, %5, %6\n}\n"),
          {x, Tensor::From<int64_t>(DType::kI64, {}, {n})});
      const std::vector<double> values = Values(x);
      int64_t group = -1, before = -1;
      std::vector<int64_t> counts;
      for (const int64_t i : SortedBy(values, false)) {
        if (before < 0 || Before(values[before], values[i])) {
          EXPECT_EQ(out[1].GetInt(++group), i) << type;  // its first occurrence
          counts.push_back(0);
        }
        EXPECT_EQ(out[2].GetInt(i), group);
        ++counts.back();
        before = i;
      }
      EXPECT_EQ(out[4].GetInt(0), group + 1) << type;
      for (int64_t g = 0; g <= group; ++g) EXPECT_EQ(out[3].GetInt(g), counts[g]);
    }
  }
}

// There are many more boxes than the routine looks at first, of which a few suffice or nearly all are needed.
TEST(Routine, NonMaxSuppressionTakesBoxByBox) {
  constexpr int64_t n = 400;
  for (const float threshold : {0.05f, 0.4f}) {
    for (const int64_t most : {int64_t{3}, int64_t{150}}) {
      std::vector<double> boxes, scores;
      uint32_t seed = 1;
      const auto random = [&](int below) {
        seed = seed * 1664525u + 1013904223u;
        return static_cast<double>((seed >> 16) % below);
      };
      for (int64_t i = 0; i < n; ++i) {
        const double x = random(60), y = random(60);
        boxes.insert(boxes.end(), {x, y, x + random(40) - 10, y + random(40)});  // swapped corners, empty boxes
        scores.push_back(random(50) / 50);                                       // many equal
      }
      const auto f32 = [](double value) { return F({1}, {value}); };
      const auto out = RunText(
          absl::StrCat("te p(%0: f32[1, 400, 4], %1: f32[1, 1, 400], %2: i64[1], %3: f32[1], %4: f32[1], %5: i64[1]) "
                       "{\n  %6, %7: i64[",
                       most, ", 3], i64[] = routine non_max_suppression(%0, %1, %2, %3, %4, %5) {1, 1, 400, ", most,
                       ", 0, 1} tasks 1 scratch 24000\n  return %6, %7\n}\n"),
          {F({1, n, 4}, boxes), F({1, 1, n}, scores), Tensor::From<int64_t>(DType::kI64, {1}, {most}), f32(threshold),
           f32(0.1), Tensor::From<int64_t>(DType::kI64, {1}, {n - 1})});
      scores.pop_back();  // the last box is not valid
      std::vector<int64_t> taken;
      const auto area = [&](int64_t i) {
        return std::abs(boxes[4 * i + 2] - boxes[4 * i]) * std::abs(boxes[4 * i + 3] - boxes[4 * i + 1]);
      };
      const auto overlap = [&](int64_t a, int64_t b) {
        double common = 1;
        for (int d = 0; d < 2; ++d) {
          const auto [a0, a1] = std::minmax(boxes[4 * a + d], boxes[4 * a + d + 2]);
          const auto [b0, b1] = std::minmax(boxes[4 * b + d], boxes[4 * b + d + 2]);
          common *= std::max(0.0, std::min(a1, b1) - std::max(a0, b0));
        }
        return common == 0 ? 0 : common / (area(a) + area(b) - common);
      };
      for (const int64_t i : SortedBy(scores, true)) {
        if (!(static_cast<float>(scores[i]) > 0.1f) || static_cast<int64_t>(taken.size()) == most) continue;
        const bool free = std::all_of(taken.begin(), taken.end(),
                                      [&](int64_t t) { return !(static_cast<float>(overlap(t, i)) > threshold); });
        if (free) taken.push_back(i);
      }
      ASSERT_EQ(out[1].GetInt(0), static_cast<int64_t>(taken.size())) << threshold << " " << most;
      for (size_t t = 0; t < taken.size(); ++t) EXPECT_EQ(out[0].GetInt(3 * t + 2), taken[t]);
    }
  }
}

TEST(Routine, SourceNamesWhatItDefines) {
  EXPECT_EQ(RoutineSource({}), "");
  EXPECT_THAT(RoutineSource({"top_k"}), HasSubstr("void top_k("));
  EXPECT_EQ(RoutineInstance("top_k", DType::kBF16), "routines::top_k<routines::bf16>");
}

TEST(Routine, WrongTypesAreRefused) {
  const auto program = Parse(R"(te p(%0: f32[5]) {
  %1, %2: f32[3], i32[3] = routine top_k(%0) {5, 1, 3, 1} tasks 1 scratch 24
  return %1
})");
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("routine top_k is f32>f32,i64, not f32>f32,i32"));
  EXPECT_THAT(
      std::string(Parse("te p(%0: f32[5]) {\n %1: f32[5] = routine sort(%0) {} tasks 1 scratch 0\n return %1\n}")
                      .status()
                      .message()),
      HasSubstr("there is no routine 'sort'"));
}

}  // namespace
}  // namespace fusion::te
