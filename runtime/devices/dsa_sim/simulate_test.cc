#include "runtime/devices/dsa_sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

// A padded 3×3 convolution with relu and a product over its channels, on the two cores of a cluster:
//   x: [6, 5, 4] (rows, columns, channels)   →   relu(conv3x3) : [6, 5, 3]   →   · w2 [3, 2] : [6, 5, 2]
// Each core computes three rows. It loads its rows and a halo into an image with a border of zeros; a tap of the window
// is one product. Core 1 sends its result to core 0, which stores both.
constexpr int kRows = 6, kColumns = 5, kIn = 4, kMid = 3, kOut = 2, kPadded = kColumns + 2, kPart = kRows / 2;

std::string ConvolutionText() {
  std::string text = R"(program convolution for small {
  buffer x ddr 0 f32[120] input
  buffer w ddr 480 f32[108] input
  buffer w2 ddr 912 f32[6] input
  buffer y ddr 1024 f32[60] output
  buffer g gb 0 0 f32[114]
)";
  int next = 0;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) {
    lines.push_back(absl::StrCat("  ", next, ": ", line, "\n"));
    return next++;
  };
  for (int core = 0; core < 2; ++core) {
    // The padded image takes 5 · 7 · 4 · 4 = 560 bytes, a tap's weights 48, the results 180 and 120.
    absl::StrAppend(&text, "  buffer p", core, " lb 0.", core, " 0 f32[140]\n  buffer t", core, " lb 0.", core,
                    " 560 f32[12]\n  buffer m", core, " lb 0.", core, " 608 f32[45]\n  buffer r", core, " lb 0.", core,
                    " 788 f32[30]\n");
  }
  text += "  buffer r2 lb 0.0 908 f32[29]\n";
  const int weights = add("load g[0 + 108:1] = w[0 + 108:1]");
  const int weights2 = add("load g[108 + 6:1] = w2[0 + 6:1]");
  std::vector<int> done;
  for (int core = 0; core < 2; ++core) {
    const auto on = [&](const std::string& name) { return absl::StrCat(name, core); };
    const int zero = add(absl::StrCat("vector vme 0.", core, " fill ", on("p"), "[0 + 140:1] = 0"));
    // Rows 0 to 3 of x are rows 1 to 4 of core 0's image; rows 2 to 5 are rows 0 to 3 of core 1's.
    const int load =
        add(absl::StrCat("load ", on("p"), "[", (core == 0 ? kPadded * kIn : 0) + kIn, " + 4:", kPadded * kIn,
                         ", 20:1] = x[", core == 0 ? 0 : 2 * kColumns * kIn, " + 80:1] after ", zero));
    int product = add(absl::StrCat("vector vme 0.", core, " fill ", on("m"), "[0 + 45:1] = 0 after ", load));
    for (int tap = 0; tap < 9; ++tap) {
      const int move =
          add(absl::StrCat("move ", on("t"), "[0 + 12:1] = g[", tap * 12, " + 12:1] after ", weights, ", ", product));
      product = add(absl::StrCat("matrix mme 0.", core, " ", on("m"), "[0 + 3:15, 5:3, 3:1] += ", on("p"), "[",
                                 (tap / 3 * kPadded + tap % 3) * kIn, " + 3:28, 5:4, 4:1] * ", on("t"),
                                 "[0 + 4:3, 3:1] after ", move));
    }
    const int relu = add(
        absl::StrCat("vector vme 0.", core, " relu ", on("m"), "[0 + 45:1] = ", on("m"), "[0 + 45:1] after ", product));
    const int move = add(absl::StrCat("move ", on("t"), "[0 + 6:1] = g[108 + 6:1] after ", weights2, ", ", product));
    done.push_back(add(absl::StrCat("matrix mme 0.", core, " ", on("r"), "[0 + 15:2, 2:1] = ", on("m"),
                                    "[0 + 15:3, 3:1] * ", on("t"), "[0 + 3:2, 2:1] after ", relu, ", ", move)));
  }
  add(absl::StrCat("redistribute r2[0 + 29:1] = r1[0 + 29:1] after ", done[1]));
  add("sync 0");
  add("store y[0 + 30:1] = r0[0 + 30:1]");
  add("store y[30 + 29:1] = r2[0 + 29:1]");
  add("store y[59] = r1[29]");
  for (const std::string& line : lines) text += line;
  return text + "}\n";
}

std::vector<float> Random(std::mt19937* random, int count) {
  std::vector<float> values;
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int i = 0; i < count; ++i) values.push_back(uniform(*random));
  return values;
}

std::vector<double> Reference(const Values& in) {
  const std::vector<float>&x = in.at("x"), &w = in.at("w"), &w2 = in.at("w2");
  std::vector<double> y(kRows * kColumns * kOut);
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      for (int mid = 0; mid < kMid; ++mid) {
        double sum = 0;
        for (int tap = 0; tap < 9; ++tap) {
          const int r = row + tap / 3 - 1, c = column + tap % 3 - 1;
          if (r < 0 || r >= kRows || c < 0 || c >= kColumns) continue;
          for (int i = 0; i < kIn; ++i)
            sum += double{x[(r * kColumns + c) * kIn + i]} * w[(tap * kIn + i) * kMid + mid];
        }
        for (int o = 0; o < kOut; ++o)
          y[(row * kColumns + column) * kOut + o] += std::max(sum, 0.0) * w2[mid * kOut + o];
      }
    }
  }
  return y;
}

TEST(Simulate, AConvolutionOnTwoCoresComputesItsNumbers) {
  const auto program = Parse(ConvolutionText());
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(Print(*program), ConvolutionText());
  std::mt19937 random(7);
  const Values inputs = {{"x", Random(&random, 120)}, {"w", Random(&random, 108)}, {"w2", Random(&random, 6)}};
  const auto simulation = Simulate(SmallMachine(), *program, inputs);
  ASSERT_TRUE(simulation.ok()) << simulation.status().message();
  const std::vector<double> expected = Reference(inputs);
  const std::vector<float>& y = simulation->outputs.at("y");
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5) << i;
  // The cores work side by side: less than the sum of both, at least the multiply-adds of one.
  const Timing& timing = simulation->timing;
  EXPECT_GT(timing.cycles, 9 * (2 + 15 * kMid * kIn / 4));
  EXPECT_LT(timing.cycles, 1.5 * timing.units.at("mme").busy_cycles + 700);
  EXPECT_EQ(timing.redistributed_bytes, 116);
}

TEST(Simulate, RefusesWhatTheChecksRefuse) {
  const Machine machine = SmallMachine();
  const auto run = [&](const std::string& lines) {
    return Simulate(machine, *Parse(absl::StrCat("program p for small {\n", lines, "\n}\n")), {}).status();
  };
  EXPECT_EQ(run("buffer a lb 0.0 0 f32[512]").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run("buffer a lb 0.0 0 f32[4]\nbuffer g gb 0 0 f32[4]\n0: move g[0 + 4:1] = a[0 + 4:1]").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Simulate(machine, *Parse("program p for goya {\n}\n"), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Simulate, AProgramWithoutOneOfItsDependencesRaces) {
  // Each `after` of the convolution is needed: without it the program is refused.
  const Program program = *Parse(ConvolutionText());
  int refused = 0, total = 0;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].after.empty()) continue;
    Program without = program;
    without.instructions[i].after.clear();
    ++total;
    refused += Simulate(SmallMachine(), without, {{"x", {}}}).status().code() == absl::StatusCode::kFailedPrecondition;
  }
  EXPECT_EQ(refused, total);
  EXPECT_GT(total, 40);
}

}  // namespace
}  // namespace fusion::dsa
