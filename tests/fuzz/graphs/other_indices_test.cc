#include "tests/fuzz/graphs/other_indices.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/fuzz/graphs/model_run.h"

namespace fusion::fuzz {
namespace {

Tensor Ints(std::vector<int64_t> values) {
  const Shape shape = {static_cast<int64_t>(values.size())};
  return Tensor::From<int64_t>(DType::kI64, shape, values);
}

// state = table[state], as often as `times` has elements.
absl::StatusOr<TensorsByName> FollowIndices(const std::vector<int64_t>& table, int64_t times) {
  onnx::NodeProto scan;
  const bool parsed = google::protobuf::TextFormat::ParseFromString(
      R"(op_type: "Scan" input: "start" input: "times" output: "state" output: "copies"
         attribute { name: "num_scan_inputs" type: INT i: 1 }
         attribute { name: "body" type: GRAPH g {
           name: "body"
           node { op_type: "GatherElements" input: "table" input: "s" output: "t" attribute { name: "axis" type: INT i: 0 } }
           node { op_type: "Identity" input: "x" output: "y" }
           input { name: "s" } input { name: "x" }
           output { name: "t" type { tensor_type { elem_type: 7 } } }
           output { name: "y" type { tensor_type { elem_type: 7 } } } } })",
      &scan);
  EXPECT_TRUE(parsed);
  return RunNode(scan, {{"start", Ints({0})},
                        {"times", Ints(std::vector<int64_t>(static_cast<size_t>(times), 0))},
                        {"table", Ints(table)}});
}

TEST(OtherIndicesTest, AResultThatHangsOnAnIndexOutsideIsNone) {
  const auto inside = FollowIndices({2, 1, 7}, 2);
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_EQ(inside->at("state").GetInt(0), 7) << "which indexes nothing";
  const auto outside = FollowIndices({2, 1, 7}, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(outside.status())) << outside.status();
}

TEST(OtherIndicesTest, AnIndexThatCountsFromTheEndIsInside) {
  const auto last = FollowIndices({-1, 1, 5}, 2);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->at("state").GetInt(0), 5);
}

}  // namespace
}  // namespace fusion::fuzz
