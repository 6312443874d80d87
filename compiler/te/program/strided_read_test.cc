#include "compiler/te/program/strided_read.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/interpreter.h"

namespace fusion::te {
namespace {

// The read that stands for the pieces of the only expression of a program: its indices as text; "": none does.
std::string ReadOf(const std::string& text) {
  const absl::StatusOr<Program> program = Parse(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return "";
  Program changed = *program;
  Te& te = changed.tes[0];
  const Scalar read = AsStridedRead(te.body[0], te.axes);
  if (read == nullptr) return "";
  te.body[0] = read;
  EXPECT_TRUE(Verify(changed).ok()) << Verify(changed);
  // The same elements are read everywhere.
  Tensor x(DType::kF32, changed.tensors[changed.inputs[0]].shape);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.SetDouble(i, static_cast<double>(i + 1));
  const auto before = Interpret(*program, {x}), after = Interpret(changed, {x});
  EXPECT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  for (int64_t i = 0; i < (*before)[0].num_elements(); ++i) {
    EXPECT_EQ((*before)[0].GetDouble(i), (*after)[0].GetDouble(i)) << i << "\n" << text;
  }
  std::string indices;
  for (const Index& index : read->indices) absl::StrAppend(&indices, indices.empty() ? "" : ", ", ToString(index));
  return indices;
}

std::string Map(const std::string& shape, const std::string& axes, const std::string& body) {
  return absl::StrCat("te p(%0: f32[", shape, "]) {\n  %1[", axes, "]: f32 = ", body, "\n  return %1\n}\n");
}

TEST(StridedRead, OfShiftedSlices) {
  EXPECT_EQ(ReadOf(Map("6", "i0<3, i1<4", "if i0 < 1 then %0[i1] else if i0 < 2 then %0[i1 + 1] else %0[i1 + 2]")),
            "i0 + i1");
}

TEST(StridedRead, OfEverySecondElementInRowsAndColumns) {
  EXPECT_EQ(ReadOf(Map("3, 8, 8", "i0<12, i1<4, i2<4",
                       "if i0 < 6 then if i0 < 3 then %0[i0, 2*i1, 2*i2] else %0[i0 - 3, 2*i1, 2*i2 + 1] "
                       "else if i0 < 9 then %0[i0 - 6, 2*i1 + 1, 2*i2] else %0[i0 - 9, 2*i1 + 1, 2*i2 + 1]")),
            "i0%3, 2*i1 + i0//6, 2*i2 + i0//3%2");
}

TEST(StridedRead, OfPiecesThatGoBackOrStayInPlace) {
  EXPECT_EQ(ReadOf(Map("8", "i0<6", "if i0 < 2 then %0[i0 + 6] else if i0 < 4 then %0[i0 + 1] else %0[i0 - 4]")),
            "-3*i0//2 + i0%2 + 6");
  EXPECT_EQ(ReadOf(Map("2", "i0<6", "if i0 < 2 then %0[i0] else if i0 < 4 then %0[i0 - 2] else %0[i0 - 4]")), "i0%2");
}

TEST(StridedRead, IsNoneOfTwoPieces) {
  EXPECT_EQ(ReadOf(Map("8", "i0<4", "if i0 < 2 then %0[i0] else %0[i0 + 1]")), "");
}

TEST(StridedRead, IsNoneWhereSomethingIsUneven) {
  // The last piece is shorter; one begins elsewhere; one walks backwards; one is padded; one is computed.
  EXPECT_EQ(ReadOf(Map("8", "i0<5", "if i0 < 2 then %0[i0] else if i0 < 4 then %0[i0 + 1] else %0[i0 + 2]")), "");
  EXPECT_EQ(ReadOf(Map("9", "i0<6", "if i0 < 2 then %0[i0] else if i0 < 4 then %0[i0 + 1] else %0[i0 + 3]")), "");
  EXPECT_EQ(ReadOf(Map("8", "i0<6", "if i0 < 2 then %0[i0] else if i0 < 4 then %0[-1*i0 + 6] else %0[i0 + 2]")), "");
  EXPECT_EQ(ReadOf(Map("8", "i0<6", "if i0 < 2 then %0[i0] else if i0 < 4 then %0[i0 - 3]?0 else %0[i0 - 4]")), "");
  EXPECT_EQ(ReadOf(Map("8", "i0<6", "if i0 < 2 then %0[i0] else if i0 < 4 then neg(%0[i0 + 1]) else %0[i0 + 2]")), "");
}

// Pieces at places that two or three digits of their number say, in any steps; and the same with one place changed.
TEST(StridedRead, OfDrawnPieces) {
  std::mt19937 random(3);
  const auto draw = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  int reads = 0;
  for (int n = 0; n < 100; ++n) {
    const int counts[] = {draw(1, 4), draw(1, 4), draw(1, 3)}, length = draw(1, 3);
    const int pieces = counts[0] * counts[1] * counts[2];
    int steps[3][3];
    for (auto& level : steps) {
      for (int& step : level) step = draw(-2, 2);
    }
    const int changed = draw(0, 3) == 0 ? draw(0, pieces - 1) : -1;
    std::string body;
    for (int p = 0; p < pieces; ++p) {
      const int digits[] = {p % counts[0], p / counts[0] % counts[1], p / counts[0] / counts[1]};
      int at[] = {30, 30, 30};
      for (int l = 0; l < 3; ++l) {
        for (int d = 0; d < 3; ++d) at[d] += digits[l] * steps[l][d];
      }
      if (p == changed) ++at[1];
      if (p + 1 < pieces) absl::StrAppend(&body, "if i0 < ", (p + 1) * length, " then ");
      const int shift = at[0] - p * length;
      absl::StrAppend(&body, "%0[i0 ", shift < 0 ? "- " : "+ ", std::abs(shift), ", i1 + ", at[1], ", ", at[2], "]");
      if (p + 1 < pieces) absl::StrAppend(&body, " else ");
    }
    const std::string read = ReadOf(Map("64, 64, 64", absl::StrCat("i0<", pieces * length, ", i1<2"), body));
    if (pieces < kLeastPieces) {
      EXPECT_EQ(read, "");
    } else if (changed < 0) {
      EXPECT_NE(read, "") << body;
      ++reads;
    }
  }
  EXPECT_GT(reads, 40);
}

}  // namespace
}  // namespace fusion::te
