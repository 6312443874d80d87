#include "runtime/devices/dsa_sim/execute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace fusion::dsa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHead[] = R"(program p for small {
    buffer x ddr 0 f32[6] input
    buffer a lb 0.0 0 f32[6]
    buffer r lb 0.0 64 f32[6]
    buffer h lb 0.0 128 f16[6]
    buffer y ddr 64 f32[2] output
    0: load a[0 + 6:1] = x[0 + 6:1]
)";

absl::StatusOr<Values> RunLines(const std::string& lines, const Values& inputs = {{"x", {1, -2, 3, -4, 5, -6}}}) {
  const auto program = Parse(absl::StrCat(kHead, lines, "\n}\n"));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return Execute(*program, inputs);
}

TEST(Execute, TransfersPermute) {
  EXPECT_THAT(RunLines("1: store y[0 + 2:1] = a[5 + 2:-3]")->at("y"), ElementsAre(-6, 3));
}

TEST(Execute, VectorOperationsAndReductions) {
  EXPECT_THAT(
      RunLines("1: vector vme 0.0 add r[0 + 2:1] = a[0 + 2:1], a[4 + 2:0]\n2: store y[0 + 2:1] = r[0 + 2:1]")->at("y"),
      ElementsAre(6, 3));
  EXPECT_THAT(RunLines("1: vector vme 0.0 sum r[0 + 2:1] = a[0 + 2:3, 3:1]\n2: store y[0 + 2:1] = r[0 + 2:1]")->at("y"),
              ElementsAre(2, -5));
  EXPECT_THAT(
      RunLines("1: vector vme 0.0 maximum r[0 + 2:1] = a[0 + 2:1, 3:2]\n2: store y[0 + 2:1] = r[0 + 2:1]")->at("y"),
      ElementsAre(5, -2));
  EXPECT_THAT(RunLines("1: vector vme 0.0 sum r[0 + 2:1] = a[0 + 2:1, 1:1]\n2: store y[0 + 2:1] = r[0 + 2:1]")->at("y"),
              ElementsAre(1, -2));
  EXPECT_THAT(RunLines("1: vector vme 0.0 fill r[0 + 2:1] = 2.5\n2: store y[0 + 2:1] = r[0 + 2:1]")->at("y"),
              ElementsAre(2.5, 2.5));
}

TEST(Execute, AProductAddsToWhatIsThere) {
  // [1 -2 3] · [-4 5 -6]ᵀ = -4 - 10 - 18 = -32.
  const char* const text = R"(1: vector vme 0.0 fill r[0 + 2:1] = 100
    2: matrix mme 0.0 r[0 + 1:1, 1:1] = a[0 + 1:3, 3:1] * a[3 + 3:1, 1:1]
    3: matrix mme 0.0 r[1 + 1:1, 1:1] += a[0 + 1:3, 3:1] * a[3 + 3:1, 1:1]
    4: store y[0 + 2:1] = r[0 + 2:1])";
  EXPECT_THAT(RunLines(text)->at("y"), ElementsAre(-32, 68));
}

// Returns the sum of each operand's values, and what it was asked, as one result of as many elements as it has.
class Recorder : public Evaluator {
 public:
  absl::StatusOr<std::vector<std::vector<float>>> Evaluate(const EvaluationRequest& request) override {
    request_ = request;
    float sum = value_;
    for (const std::vector<float>& values : request.values) {
      for (const float value : values) sum += value;
    }
    std::vector<std::vector<float>> results;
    for (const TensorBox& box : request.results) results.emplace_back(box.extents[0], sum);
    return results;
  }
  bool MakesIntegers(int, size_t) const override { return integers_; }
  EvaluationRequest request_;
  bool integers_ = false;
  float value_ = 0;  // what the sum begins with
};

TEST(Execute, TheEvaluatorComputesExpressions) {
  const auto program = Parse(R"(program p for small {
    expression e
    end
    buffer x ddr 0 f32[6] input
    buffer a lb 0.0 0 f32[6]
    buffer r lb 0.0 64 f32[6]
    buffer y ddr 64 f32[4] output
    0: load a[0 + 6:1] = x[0 + 6:1]
    1: vector vme 0.0 fill r[0 + 6:1] = 1
    2: matrix mme 0.0 expr e work 4 reduce 1 3 r[0 + 2:1] at (7) += a[1 + 2:3, 1:1] at (5, 6) as 2
    3: store y[0 + 4:1] = r[0 + 4:1]
})");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const Values inputs = {{"x", {1, -2, 3, -4, 5, -6}}};
  Recorder recorder;
  const auto values = Execute(*program, inputs, &recorder);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_THAT(values->at("y"), ElementsAre(4, 4, 1, 1));  // 1 + (-2 + 5)
  EXPECT_THAT(recorder.request_.operands[0].origin, ElementsAre(5, 6));
  EXPECT_THAT(recorder.request_.operands[0].extents, ElementsAre(2, 1));
  EXPECT_THAT(recorder.request_.inputs, ElementsAre(2));
  EXPECT_EQ(recorder.request_.reduce_end, 3);
  EXPECT_THAT(std::string(Execute(*program, inputs).status().message()), HasSubstr("there is no evaluator"));
}

TEST(Execute, ANegativeZeroStaysOne) {
  const auto program = Parse(R"(program p for small {
    expression e
    end
    buffer x ddr 0 f32[1] input
    buffer a lb 0.0 0 f32[2]
    buffer y ddr 64 f32[1] output
    0: load a[0 + 1:1] = x[0 + 1:1]
    1: vector vme 0.0 expr e work 1 a[1 + 1:1] at (0) = a[0 + 1:1] at (0) as 0
    2: store y[0 + 1:1] = a[1 + 1:1]
})");
  ASSERT_TRUE(program.ok()) << program.status().message();
  Recorder recorder;
  recorder.value_ = -0.0F;
  const auto values = Execute(*program, {{"x", {-0.0F}}}, &recorder);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_TRUE(std::signbit(values->at("y")[0]));
}

TEST(Execute, SumsOfIntegersStayExact) {
  const auto program = Parse(R"(program p for small {
    expression e
    end
    buffer x ddr 0 f32[2] input
    buffer a lb 0.0 0 f32[2]
    buffer y ddr 64 f32[1] output
    0: load a[0 + 2:1] = x[0 + 2:1]
    1: matrix mme 0.0 expr e work 1 outputs (3) a[0 + 1:1] at (0) += a[1 + 1:1] at (0) as 0
    2: store y[0 + 1:1] = a[0 + 1:1]
})");
  ASSERT_TRUE(program.ok()) << program.status().message();
  Recorder recorder;
  const Values odd = {{"x", {16777216, 1}}}, even = {{"x", {16777216, 2}}};
  EXPECT_THAT(Execute(*program, odd, &recorder)->at("y"), ElementsAre(16777216));  // a float rounds
  EXPECT_THAT(recorder.request_.outputs, ElementsAre(3));
  recorder.integers_ = true;
  EXPECT_EQ(Execute(*program, odd, &recorder).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Execute(*program, even, &recorder)->at("y"), ElementsAre(16777218));
}

TEST(Execute, NarrowBuffersRound) {
  const Values inputs = {{"x", {2049, 1.0f / 3, 0, 0, 0, 0}}};
  const char* const text = R"(1: vector vme 0.0 copy h[0 + 2:1] = a[0 + 2:1]
    2: vector vme 0.0 copy r[0 + 2:1] = h[0 + 2:1]
    3: store y[0 + 2:1] = r[0 + 2:1])";
  EXPECT_THAT(RunLines(text, inputs)->at("y"), ElementsAre(2048, HalfToFloat(FloatToHalf(1.0f / 3))));
}

TEST(Execute, RefusesInputsThatDoNotFit) {
  EXPECT_THAT(std::string(RunLines("", {}).status().message()), HasSubstr("the input x is missing"));
  EXPECT_THAT(std::string(RunLines("", {{"x", {1}}}).status().message()),
              HasSubstr("has 1 values; the program takes 6"));
  EXPECT_THAT(std::string(RunLines("", {{"x", {1, 2, 3, 4, 5, 6}}, {"z", {}}}).status().message()),
              HasSubstr("that the program does not have"));
}

}  // namespace
}  // namespace fusion::dsa
