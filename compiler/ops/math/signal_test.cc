// Compares transforms with their definition, and windows and the mel matrix with values worked out by hand.
#include <algorithm>
#include <cmath>
#include <complex>

#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Complex = std::complex<double>;

// Returns Σ_n x[n]·e^(sign·2πi·k·n/length) for k = 0 … outputs − 1, real and imaginary parts in turn.
std::vector<double> DirectDft(const std::vector<Complex>& x, int64_t length, int64_t outputs, int sign) {
  std::vector<double> y;
  for (int64_t k = 0; k < outputs; ++k) {
    Complex sum = 0;
    for (int64_t n = 0; n < std::min<int64_t>(length, static_cast<int64_t>(x.size())); ++n) {
      sum +=
          x[n] * std::polar(1.0, sign * 2 * M_PI * static_cast<double>(k * n % length) / static_cast<double>(length));
    }
    y.push_back(sum.real());
    y.push_back(sum.imag());
  }
  return y;
}

std::vector<Complex> Signal(const Tensor& x, bool complex) {
  std::vector<Complex> signal;
  const int64_t step = complex ? 2 : 1;
  for (int64_t i = 0; i < x.num_elements(); i += step) {
    signal.emplace_back(x.GetDouble(i), complex ? x.GetDouble(i + 1) : 0);
  }
  return signal;
}

TEST(Dft, EveryLength) {
  // The lengths are short ones, primes, and products of two or many factors; the signal is also cut and padded with
  // zeros.
  for (const int64_t length : {1, 2, 7, 64, 65, 67, 96, 120}) {
    for (const int64_t samples : {length, length + 3, std::max<int64_t>(length - 3, 1)}) {
      const Tensor x = Wave({1, samples, 1}, 0.7);
      const auto y = RunOp({"DFT", {x, I64({}, {length})}, {}, {1}});
      EXPECT_THAT(Values(y), Pointwise(DoubleNear(1e-4), DirectDft(Signal(x, false), length, length, -1)))
          << length << " of " << samples;
    }
  }
}

TEST(Dft, InverseOfComplexAlongAnyAxis) {
  const Tensor x = Wave({80, 2}, 0.3);
  const OpCase inverse{"DFT", {x, Absent(), I64({}, {0})}, {{"inverse", int64_t{1}}}, {2}};
  std::vector<double> expected = DirectDft(Signal(x, true), 80, 80, 1);
  for (double& value : expected) value /= 80;
  EXPECT_THAT(Values(RunOp(inverse)), Pointwise(DoubleNear(1e-5), expected));
}

TEST(Dft, OneSided) {
  const Tensor x = Wave({1, 66, 1}, 0.9);
  const OpCase forward{"DFT", {x}, {{"onesided", int64_t{1}}}};
  EXPECT_EQ(TypeOf(forward)->shape, (Shape{1, 34, 2}));
  const std::vector<double> spectrum = Values(RunOp(forward));
  EXPECT_THAT(spectrum, Pointwise(DoubleNear(1e-4), DirectDft(Signal(x, false), 66, 34, -1)));
  const OpCase back{"DFT", {F32({1, 34, 2}, spectrum)}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}};
  EXPECT_EQ(TypeOf(back)->shape, (Shape{1, 66, 1}));
  std::vector<double> samples;
  for (int64_t i = 0; i < 66; ++i) samples.push_back(x.GetDouble(i));
  EXPECT_THAT(Values(RunOp(back)), Pointwise(DoubleNear(1e-5), samples));
  EXPECT_THAT(std::string(RunOp({"DFT", {Wave({1, 4, 2}, 1)}, {{"onesided", int64_t{1}}}}).status().message()),
              HasSubstr("onesided=1 needs real input"));
}

// Factors of quarters of a turn are 0 and ±1, so that of integers there is no rounding.
TEST(Dft, QuartersOfATurnAreExact) {
  const auto y = RunOp({"DFT", {F32({1, 8, 1}, {3, 0, 0, 0, 5, 0, 0, 0})}, {}, {1}});
  EXPECT_THAT(Values(y), ElementsAre(8, 0, -2, 0, 8, 0, -2, 0, 8, 0, -2, 0, 8, 0, -2, 0));
}

TEST(Stft, FramesTimesWindow) {
  const Tensor x = Wave({1, 20, 1}, 0.4), window = Wave({8}, 0.2);
  const auto y = RunOp({"STFT", {x, I64({}, {6}), window}, {}, {1}});
  std::vector<double> expected;
  for (int64_t frame = 0; frame < 3; ++frame) {
    std::vector<Complex> part;
    for (int64_t n = 0; n < 8; ++n) part.emplace_back(x.GetDouble(frame * 6 + n) * window.GetDouble(n));
    const std::vector<double> bins = DirectDft(part, 8, 5, -1);
    expected.insert(expected.end(), bins.begin(), bins.end());
  }
  EXPECT_THAT(Values(y), Pointwise(DoubleNear(1e-5), expected));
}

TEST(Windows, PeriodicAndSymmetric) {
  const auto run = [](const char* op, int64_t periodic) {
    return Values(RunOp({op, {I64({}, {4})}, {{"periodic", periodic}}, {0}}));
  };
  EXPECT_THAT(run("HannWindow", 1), Pointwise(DoubleNear(1e-7), std::vector<double>{0, 0.5, 1, 0.5}));
  EXPECT_THAT(run("HannWindow", 0), Pointwise(DoubleNear(1e-7), std::vector<double>{0, 0.75, 0.75, 0}));
  EXPECT_THAT(run("HammingWindow", 1),
              Pointwise(DoubleNear(1e-7), std::vector<double>{4.0 / 46, 25.0 / 46, 1, 25.0 / 46}));
  EXPECT_THAT(run("BlackmanWindow", 1), Pointwise(DoubleNear(1e-7), std::vector<double>{0, 0.34, 1, 0.34}));
  EXPECT_THAT(Values(RunOp({"HannWindow", {I64({}, {0})}, {}, {0}})), ElementsAre());
}

TEST(MelWeightMatrix, TrianglesRiseAndFall) {
  const auto y = RunOp({"MelWeightMatrix",
                        {I64({}, {8}), I64({}, {16}), I64({}, {8192}), F32({}, {0}), F32({}, {4096})},
                        {},
                        {0, 1, 2, 3, 4}});
  const std::vector<double> values = Values(y);
  // Bins 0 … 8 of the last three triangles, from the example in ONNX's specification.
  for (const auto& [mel, rows] : std::vector<std::pair<int, std::vector<double>>>{
           {5, {0, 0, 0, 1, 0, 0, 0, 0, 0}}, {6, {0, 0, 0, 0, 1, 0, 0, 0, 0}}, {7, {0, 0, 0, 0, 0, 1, 0, 0, 0}}}) {
    for (int bin = 0; bin < 9; ++bin) EXPECT_EQ(values[bin * 8 + mel], rows[bin]) << mel << " " << bin;
  }
}

}  // namespace
}  // namespace fusion::ops
