#include "compiler/schedule/rewrite/minimal_filtering.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "compiler/te/interpreter/interpreter.h"

namespace fusion {
namespace {

std::vector<float> Values(const Tensor& tensor) {
  const float* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.num_elements()};
}

Tensor Random(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) static_cast<float*>(tensor.mutable_data())[i] = uniform(random);
  return tensor;
}

// Lavin and Gray, equation 7.
TEST(MinimalFiltering, MatricesOfTwoByThree) {
  const FilterMatrices f = MakeFilterMatrices(2, 3);
  EXPECT_EQ(Values(f.filter), (std::vector<float>{-1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1}));
  EXPECT_EQ(Values(f.out), (std::vector<float>{1, 1, 1, 0, 0, 1, -1, 1}));
  EXPECT_EQ(Values(f.in), (std::vector<float>{-1, 0, 1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, -1, 0, 1}));
}

TEST(MinimalFiltering, MatricesFilter) {
  for (const auto& [m, r] : std::vector<std::pair<int64_t, int64_t>>{{2, 3}, {4, 3}, {3, 2}, {2, 5}, {6, 3}}) {
    const FilterMatrices f = MakeFilterMatrices(m, r);
    const int64_t n = m + r - 1;
    const std::vector<float> d = Values(Random({n}, 1)), g = Values(Random({r}, 2));
    const std::vector<float> in = Values(f.in), filter = Values(f.filter), out = Values(f.out);
    std::vector<double> product(n, 0);
    for (int64_t j = 0; j < n; ++j) {
      double moved = 0, taps = 0;
      for (int64_t i = 0; i < n; ++i) moved += static_cast<double>(in[j * n + i]) * d[i];
      for (int64_t k = 0; k < r; ++k) taps += static_cast<double>(filter[j * r + k]) * g[k];
      product[j] = moved * taps;
    }
    for (int64_t i = 0; i < m; ++i) {
      double expected = 0, actual = 0;
      for (int64_t k = 0; k < r; ++k) expected += static_cast<double>(d[i + k]) * g[k];
      for (int64_t j = 0; j < n; ++j) actual += out[i * n + j] * product[j];
      EXPECT_NEAR(actual, expected, 1e-4) << "F(" << m << ", " << r << ") " << i;
    }
  }
}

TEST(MinimalFiltering, ErrorsGrow) {
  EXPECT_NEAR(ErrorGrowth(MakeFilterMatrices(2, 3)), 1.29, 0.01);
  EXPECT_NEAR(ErrorGrowth(MakeFilterMatrices(4, 3)), 3.23, 0.01);
  EXPECT_NEAR(ErrorGrowth(MakeFilterMatrices(6, 3)), 6.80, 0.01);
}

te::Program Parsed(const std::string& text) {
  absl::StatusOr<te::Program> program = te::Parse(text);
  return std::move(program).value();
}

// The results of the program before and after the replacement, in the interpreter. `edit` changes the program's first
// input.
struct BothResults {
  std::vector<float> plain, filtered;
  std::vector<float> recovered;  // by the plain sums that stand beside the filtered program
};
void RunBoth(
    const std::string& text, int64_t outputs, size_t expressions, BothResults* results,
    const std::function<void(Tensor*)>& edit = [](Tensor*) {},
    const std::function<void(Tensor*)>& edit_filter = [](Tensor*) {}) {
  const te::Program program = Parsed(text);
  const std::optional<FilteredProgram> filtered = FilterMinimally(program, outputs);
  ASSERT_TRUE(filtered.has_value()) << text;
  EXPECT_EQ(filtered->program.tes.size(), expressions);
  EXPECT_EQ(filtered->result, program.outputs[0]);
  EXPECT_TRUE(te::Verify(filtered->program, te::BoundsProof::kInherited).ok())
      << te::Verify(filtered->program, te::BoundsProof::kInherited);
  const auto value = [&](te::TensorId tensor) {
    Tensor drawn = Random(program.tensors[tensor].shape, tensor);
    if (tensor == program.inputs[0]) edit(&drawn);
    if (tensor == program.inputs[1]) edit_filter(&drawn);
    return drawn;
  };
  std::vector<Tensor> inputs, moved;
  for (const te::TensorId tensor : program.inputs) inputs.push_back(value(tensor));
  for (const te::TensorId tensor : filtered->program.inputs) {
    const te::TensorInfo& info = filtered->program.tensors[tensor];
    moved.push_back(info.constant                ? Tensor()
                    : tensor == filtered->filter ? movement::Transformed(filtered->transform, value(filtered->source))
                                                 : value(tensor));
  }
  const absl::StatusOr<std::vector<Tensor>> expected = te::Interpret(program, inputs);
  const absl::StatusOr<std::vector<Tensor>> actual = te::Interpret(filtered->program, moved);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  te::Program plain = filtered->program;
  plain.tes[plain.DefiningTe(filtered->result)] = filtered->plain.te;
  const absl::StatusOr<std::vector<Tensor>> recovered = te::Interpret(plain, moved);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  *results = {Values((*expected)[0]), Values((*actual)[0]), Values((*recovered)[0])};
  ASSERT_EQ(results->plain.size(), results->filtered.size());
}

// The program before and after the replacement give the same results.
void ExpectSame(const std::string& text, int64_t outputs, size_t expressions) {
  BothResults both;
  RunBoth(text, outputs, expressions, &both);
  for (size_t i = 0; i < both.plain.size(); ++i) {
    EXPECT_NEAR(both.plain[i], both.filtered[i], 2e-4) << i;
    EXPECT_NEAR(both.plain[i], both.recovered[i], 2e-5) << i;
  }
}

TEST(MinimalFiltering, Images) {
  constexpr char kText[] = R"(te p(%0: f32[2, 16, 8, 12], %1: f32[16, 16, 3, 3] const, %2: f32[2, 16, 8, 12]) {
  %3[i0<2, i1<16, i2<8, i3<12]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6]) then (max(add(acc0, %2[i0, i1, i2, i3]), 0.0))
  return %3
})";
  ExpectSame(kText, 2, 5);
  ExpectSame(kText, 4, 5);
}

// A result of filtering that is finite is right, whatever its tile has read. So a look at the results finds every tile
// that an infinity or a NaN has spoiled (docs/decisions/0078-what-is-not-finite-stays-in-its-place.md).
TEST(MinimalFiltering, WhatIsSpoiledIsNotFinite) {
  constexpr char kText[] = R"(te p(%0: f32[1, 16, 8, 12], %1: f32[16, 16, 3, 3] const) {
  %2[i0<1, i1<16, i2<8, i3<12]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])
  return %2
})";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t outputs : {2, 4}) {
    size_t spoiled = 0, finite = 0;
    for (const float special : {kInfinity, -kInfinity, std::nanf(""), 3e38f}) {
      for (int64_t at = 0; at < 96; at += 7) {  // an element of the first channel
        BothResults both;
        RunBoth(kText, outputs, 5, &both, [&](Tensor* x) { x->SetDouble(at, special); });
        for (size_t i = 0; i < both.plain.size(); ++i) {
          if (std::isfinite(both.filtered[i])) {
            const float largest = std::isfinite(special) ? 3e38f : 1;
            EXPECT_NEAR(both.plain[i], both.filtered[i], 2e-4 * largest) << special << " " << i;
            ++finite;
          } else if (std::isfinite(both.plain[i])) {
            ++spoiled;
          }
        }
      }
    }
    EXPECT_GT(spoiled, 0u) << "the case that the decision is about";
    EXPECT_GT(finite, 0u);
  }
}

// The sums over recovered taps have the kind of the plain ones, also where a tap is 0 and meets an infinity. The taps
// are at least a thousandth: those below the rounding of the filter's largest count as 0.
TEST(MinimalFiltering, PlainSumsOverRecoveredTapsHaveTheSameKind) {
  constexpr char kImage[] = R"(te p(%0: f32[1, 16, 8, 12], %1: f32[16, 16, 3, 3] const) {
  %2[i0<1, i1<16, i2<8, i3<12]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])
  return %2
})";
  constexpr char kRow[] = R"(te p(%0: f32[1, 16, 24], %1: f32[16, 16, 3] const) {
  %2[i0<1, i1<16, i2<24]: f32 = sum.f32(i4<16, i5<3) mul(%0[i0, i4, i2 + i5 - 1]?0.0, %1[i1, i4, i5])
  return %2
})";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto zero_taps = [](Tensor* filter) {
    for (int64_t i = 0; i < filter->num_elements(); ++i) {
      const double tap = filter->GetDouble(i);
      filter->SetDouble(i, i % 3 == 1 || std::fabs(tap) < 1e-3 ? 0 : tap);
    }
  };
  for (const auto& [text, expressions] : std::vector<std::pair<const char*, size_t>>{{kImage, 5}, {kRow, 3}}) {
    for (const int64_t outputs : {2, 4}) {
      int nan = 0, infinite = 0;
      for (int64_t at = 0; at < 24; ++at) {
        BothResults both;
        const auto spoil = [&](Tensor* x) {
          x->SetDouble(at, at % 2 == 0 ? kInfinity : -kInfinity);
          x->SetDouble(at + 30, kInfinity);
        };
        RunBoth(text, outputs, expressions, &both, spoil, zero_taps);
        for (size_t i = 0; i < both.plain.size(); ++i) {
          const float wanted = both.plain[i], actual = both.recovered[i];
          nan += std::isnan(wanted), infinite += std::isinf(wanted);
          if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(actual)) << at << " " << i;
          else if (std::isinf(wanted)) EXPECT_EQ(actual, wanted) << at << " " << i;
          else EXPECT_NEAR(actual, wanted, 2e-5) << at << " " << i;
        }
      }
      EXPECT_GT(nan, 0);
      EXPECT_GT(infinite, 0);
    }
  }
}

TEST(MinimalFiltering, TilesPastTheEnd) {
  constexpr char kPadded[] = R"(te p(%0: f32[1, 16, 7, 14], %1: f32[16, 16, 3, 3] const) {
  %2[i0<1, i1<16, i2<7, i3<14]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])
  return %2
})";
  ExpectSame(kPadded, 2, 5);
  ExpectSame(kPadded, 4, 5);
  // The input has no elements behind its last row.
  ExpectSame(R"(te p(%0: f32[1, 16, 8, 15], %1: f32[16, 16, 3, 3] const) {
  %2[i0<1, i1<16, i2<6, i3<13]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5, i3 + i6], %1[i1, i4, i5, i6])
  return %2
})",
             4, 5);
}

TEST(MinimalFiltering, RowsGroupsAndVolumes) {
  ExpectSame(R"(te p(%0: f32[16, 14], %1: f32[20, 16, 3] const) {
  %2[i0<20, i1<12]: f32 = sum.f32(i2<16, i3<3) mul(%0[i2, i1 + i3], %1[i0, i2, i3])
  return %2
})",
             4, 3);
  ExpectSame(R"(te p(%0: f32[1, 32, 8, 4], %1: f32[32, 16, 3, 3] const) {
  %2[i0<1, i1<32, i2<8, i3<4]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, 16*(i1//16) + i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])
  return %2
})",
             4, 5);
  ExpectSame(R"(te p(%0: f32[1, 16, 5, 4, 8], %1: f32[16, 16, 3, 3, 3] const) {
  %2[i0<1, i1<16, i7<5, i2<4, i3<8]: f32 = sum.f32(i4<16, i8<3, i5<3, i6<3) mul(%0[i0, i4, i7 + i8 - 1, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i8, i5, i6])
  return %2
})",
             2, 5);
}

TEST(MinimalFiltering, LeavesTheRestAlone) {
  const auto refuses = [](const std::string& text, int64_t outputs) {
    EXPECT_FALSE(FilterMinimally(Parsed(text), outputs).has_value()) << text;
  };
  // The errors grow too much over two axes, though not over one.
  refuses(R"(te p(%0: f32[1, 16, 12, 12], %1: f32[16, 16, 3, 3] const) {
  %2[i0<1, i1<16, i2<12, i3<12]: f32 = sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])
  return %2
})",
          6);
  // Refused: a stride; an extent of which the second tile would leave most unused; a filter that is no constant; too
  // few channels.
  refuses(R"(te p(%0: f32[16, 26], %1: f32[20, 16, 3] const) {
  %2[i0<20, i1<12]: f32 = sum.f32(i2<16, i3<3) mul(%0[i2, 2*i1 + i3], %1[i0, i2, i3])
  return %2
})",
          4);
  refuses(R"(te p(%0: f32[16, 7], %1: f32[20, 16, 3] const) {
  %2[i0<20, i1<5]: f32 = sum.f32(i2<16, i3<3) mul(%0[i2, i1 + i3], %1[i0, i2, i3])
  return %2
})",
          4);
  refuses(R"(te p(%0: f32[16, 14], %1: f32[20, 16, 3]) {
  %2[i0<20, i1<12]: f32 = sum.f32(i2<16, i3<3) mul(%0[i2, i1 + i3], %1[i0, i2, i3])
  return %2
})",
          4);
  refuses(R"(te p(%0: f32[8, 14], %1: f32[20, 8, 3] const) {
  %2[i0<20, i1<12]: f32 = sum.f32(i2<8, i3<3) mul(%0[i2, i1 + i3], %1[i0, i2, i3])
  return %2
})",
          4);
}

}  // namespace
}  // namespace fusion
