#include <onnx/onnx_pb.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "client/local/compare.h"
#include "client/local/sensitivity.h"
#include "client/local/tensor_files.h"
#include "client/local/tied_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/npy.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

Tensor F32(const std::vector<double>& values) {
  return Tensor::From(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

TEST(CompareTensors, RelativeToTheScaleOfTheWhole) {
  // 1e-5 beside values of size 1 is rounding, though it is everything where the reference is zero.
  auto close = CompareTensors(F32({1, -1, 1e-5}), F32({1, -1, 0}));
  ASSERT_TRUE(close.ok());
  EXPECT_TRUE(close->ok);
  EXPECT_NEAR(close->max_abs_err, 1e-5, 1e-9);
  EXPECT_FALSE(CompareTensors(F32({1, -1, 1e-2}), F32({1, -1, 0}))->ok);
  EXPECT_FALSE(CompareTensors(F32({1e-30}), F32({0}))->ok);
  EXPECT_TRUE(CompareTensors(F32({0, 0}), F32({0, 0}))->ok);
}

TEST(CompareTensors, NansAndInfinitiesMustAgree) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(CompareTensors(F32({nan, inf, -inf, 1}), F32({nan, inf, -inf, 1}))->ok);
  EXPECT_EQ(CompareTensors(F32({nan, inf, 1, 1}), F32({1, -inf, inf, 1}))->special_mismatches, 3);
  // Nothing but NaN on both sides is no agreement.
  EXPECT_FALSE(CompareTensors(F32({nan, inf}), F32({nan, inf}))->ok);
  EXPECT_TRUE(CompareTensors(F32({nan, inf}), F32({nan, inf}))->only_nan);
  EXPECT_TRUE(CompareTensors(F32({inf, -inf}), F32({inf, -inf}))->ok);
}

TEST(CompareTensors, IntegersAreExact) {
  const Tensor a = Tensor::From(DType::kI64, {2}, std::vector<int>{1, 2});
  const Tensor b = Tensor::From(DType::kI64, {2}, std::vector<int>{1, 3});
  EXPECT_TRUE(CompareTensors(a, a)->ok);
  EXPECT_FALSE(CompareTensors(a, b)->ok);
  EXPECT_FALSE(CompareTensors(a, F32({1, 2})).ok());
}

// Two detections whose scores tie, in either order; the third is its own.
struct Detections {
  Tensor boxes, labels, scores;
  std::vector<Tensor> all() const { return {boxes, labels, scores}; }
};

Detections ThreeDetections(bool swapped, double second_score) {
  const std::vector<double> first = {10, 20, 30, 40}, second = {50, 60, 70, 80};
  std::vector<double> boxes = swapped ? second : first;
  const std::vector<double>& other = swapped ? first : second;
  boxes.insert(boxes.end(), other.begin(), other.end());
  boxes.insert(boxes.end(), {1, 2, 3, 4});
  return {Tensor::From(DType::kF32, {3, 4}, boxes),
          Tensor::From(DType::kI64, {3}, swapped ? std::vector<int>{8, 7, 9} : std::vector<int>{7, 8, 9}),
          F32({0.9, second_score, 0.1})};
}

std::vector<Comparison> CompareAll(const std::vector<Tensor>& actual, const std::vector<Tensor>& reference) {
  std::vector<Comparison> compared;
  for (size_t i = 0; i < actual.size(); ++i) compared.push_back(*CompareTensors(actual[i], reference[i]));
  return compared;
}

TEST(TiedRows, TradePlacesWhereTheirScoresAgree) {
  const auto reference = ThreeDetections(false, 0.9).all(), actual = ThreeDetections(true, 0.9000001).all();
  const auto reordered = ReorderTiedRows(actual, reference, CompareAll(actual, reference));
  ASSERT_TRUE(reordered.has_value());
  EXPECT_EQ(reordered->moved_rows, (std::vector<int64_t>{2, 2, 2}));
  for (const Comparison& compared : CompareAll(reordered->actual, reference)) EXPECT_TRUE(compared.ok);
}

TEST(TiedRows, StayWhereScoresDifferOrRowsDo) {
  const auto apart = ThreeDetections(false, 0.8).all(), traded = ThreeDetections(true, 0.8).all();
  EXPECT_FALSE(ReorderTiedRows(traded, apart, CompareAll(traded, apart)).has_value());
  const auto reference = ThreeDetections(false, 0.9).all();
  auto wrong = ThreeDetections(true, 0.9).all();
  wrong[1] = Tensor::From(DType::kI64, {3}, std::vector<int>{7, 8, 9});  // a label that left its box
  EXPECT_FALSE(ReorderTiedRows(wrong, reference, CompareAll(wrong, reference)).has_value());
  // Without an output that sorts, an order is part of the result.
  EXPECT_FALSE(ReorderTiedRows({wrong[0]}, {reference[0]}, CompareAll({wrong[0]}, {reference[0]})).has_value());
}

TEST(Sensitivity, IsThatOfAnOutputToItsInputs) {
  const std::vector<Tensor> inputs = {F32({1, 2, 3, 4, 5, 6, 7, 8})};
  // Differences from a number near by lose what they have in common: 1e4 times as sensitive as a copy.
  const ModelRun run = [](const std::vector<Tensor>& x) -> absl::StatusOr<std::vector<Tensor>> {
    Tensor difference = F32(std::vector<double>(8));
    for (int64_t i = 0; i < 8; ++i) difference.SetDouble(i, x[0].GetDouble(i) - 0.9999 * static_cast<double>(i + 1));
    return std::vector<Tensor>{x[0], difference};
  };
  const auto outputs = run(inputs);
  ASSERT_TRUE(outputs.ok());
  const auto moved = Sensitivity(run, inputs, *outputs);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_GT((*moved)[0], 1e-8);
  EXPECT_LT((*moved)[0], 4e-7);
  EXPECT_GT((*moved)[1], 1e-4);
  EXPECT_LT((*moved)[1], 1e-2);
}

TEST(Sensitivity, AllowsWhatRoundingExplainsAndNoMore) {
  Comparison off = *CompareTensors(F32({1, 1.01}), F32({1, 1}));
  Allow(1e-4, &off);
  EXPECT_FALSE(off.ok);
  EXPECT_EQ(off.tolerance, ToleranceOf(DType::kF32));  // never less than without
  Allow(5e-3, &off);
  EXPECT_TRUE(off.ok);
  Comparison wrong = *CompareTensors(F32({1, 1.5}), F32({1, 1}));
  Allow(std::numeric_limits<double>::infinity(), &wrong);
  EXPECT_FALSE(wrong.ok);
  EXPECT_EQ(wrong.tolerance, kMostTolerance);
}

TEST(FileNameOf, IsNeverAPath) {
  EXPECT_EQ(FileNameOf("logits"), "logits");
  EXPECT_EQ(FileNameOf("../../etc/passwd"), "_.._.._etc_passwd");
  EXPECT_EQ(FileNameOf(""), "_");
  EXPECT_EQ(FileNameOf("*/ system(\"x\")\n"), "___system__x___");
}

class TensorFilesTest : public testing::Test {
 protected:
  void SetUp() override { manifest_.inputs = {{"a=b", DType::kF32, {2}, 0}, {"ids", DType::kI64, {3}, 1}}; }
  std::string Path(const std::string& name) { return testing::TempDir() + "/tensor_files_" + name; }
  Manifest manifest_;
};

TEST_F(TensorFilesTest, ReadsNpyAndProtoAndFillsTheRest) {
  ASSERT_TRUE(WriteNpyFile(Path("x.npy"), F32({1, 2})).ok());
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::INT64);
  proto.add_dims(3);
  for (int i = 0; i < 3; ++i) proto.add_int64_data(7 + i);
  std::ofstream(Path("ids.pb"), std::ios::binary) << proto.SerializeAsString();
  auto inputs = AssembleInputs(manifest_, {{"a=b=" + Path("x.npy"), "ids=" + Path("ids.pb")}, -1, 1});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].GetDouble(1), 2);
  EXPECT_EQ((*inputs)[1].GetInt(2), 9);

  auto random = AssembleInputs(manifest_, {{}, 5, 1});
  ASSERT_TRUE(random.ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE((*random)[1].GetInt(i), 0);
    EXPECT_LE((*random)[1].GetInt(i), 1);
  }
}

TEST_F(TensorFilesTest, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(std::string(AssembleInputs(manifest_, {}).status().message()), HasSubstr("'a=b'"));
  EXPECT_THAT(std::string(AssembleInputs(manifest_, {{"nope=x.npy"}, 1, 1}).status().message()), HasSubstr("'ids'"));
  ASSERT_TRUE(WriteNpyFile(Path("wrong.npy"), F32({1, 2, 3})).ok());
  const absl::Status wrong = AssembleInputs(manifest_, {{"a=b=" + Path("wrong.npy")}, 1, 1}).status();
  EXPECT_THAT(std::string(wrong.message()), testing::AllOf(HasSubstr("f32[3]"), HasSubstr("f32[2]")));
  std::ofstream(Path("bad.pb")) << "not a proto at all";
  EXPECT_FALSE(ReadTensorFile(Path("bad.pb")).ok());
}

}  // namespace
}  // namespace fusion
