#include "tests/fuzz/graphs/random_model.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/check.h"
#include "tests/fuzz/graphs/model_run.h"
#include "tests/fuzz/graphs/shrink.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

TEST(RandomModelTest, ASeedIsAModel) {
  for (const uint64_t seed : {3, 7, 11}) {
    const DrawnModel first = RandomModel(seed), again = RandomModel(seed);
    EXPECT_EQ(first.model.SerializeAsString(), again.model.SerializeAsString()) << seed;
    EXPECT_EQ(first.left_out, again.left_out) << seed;
  }
}

TEST(RandomModelTest, TextKeepsAModel) {
  const DrawnModel drawn = RandomModel(7);
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(drawn.model, &text));
  onnx::ModelProto parsed;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &parsed));
  const auto imported = ImportModel(parsed);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(ecg::Print(*imported), ecg::Print(drawn.graph));
}

// Such operators are drawn, and one of them took all memory.
TEST(RandomModelTest, AnOperatorWithAHugeResultIsNotRun) {
  onnx::NodeProto node;
  node.set_op_type("ConstantOfShape");
  node.add_input("shape");
  node.add_output("y");
  const auto run = [&](int64_t rows) {
    return RunNode(node, {{"shape", Tensor::From<int64_t>(DType::kI64, {2}, {rows, 1024})}});
  };
  EXPECT_TRUE(run(2).ok()) << run(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(run(1 << 20).status())) << run(1 << 20).status();
}

TEST(RandomModelTest, DrawsWhatOnlyModelsHave) {
  std::map<std::string, int> counts;
  for (uint64_t seed = 0; seed < 300; ++seed) CountOperators(RandomModel(seed).model.graph(), &counts);
  for (const char* op :
       {"If", "Loop", "Scan", "NonZero", "Compress", "TopK", "Unique", "NonMaxSuppression", "SplitToSequence",
        "SequenceInsert", "SequenceAt", "ConcatFromSequence", "OptionalGetElement"}) {
    EXPECT_GT(counts[op], 0) << op;
  }
}

TEST(RandomModelTest, ImportIsJudgedByOperatorsAlone) {
  onnx::ModelProto model = EmptyModel();
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "graph { node { op_type: 'NonZero' input: 'x' output: 'i' } "
      "        node { op_type: 'Transpose' input: 'i' output: 't' } output { name: 't' } }",
      &model));
  *model.mutable_graph()->add_input() = TypeProto("x", DType::kF32, {6});
  auto graph = ImportModel(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(graph->output_extents().empty());
  const std::vector<Mode> no_modes;
  Case good{"good", *graph, model};
  EXPECT_TRUE(Check({good}, no_modes, {})[0].failures.empty());
  // As if import had lost a node.
  onnx::ModelProto wrong = model;
  wrong.mutable_graph()->mutable_node(1)->set_op_type("Identity");
  Case bad{"bad", *ImportModel(wrong), model};
  const auto failures = Check({bad}, no_modes, {})[0].failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].mode, "import");
}

TEST(ShrinkModelTest, KeepsWhatFails) {
  DrawnModel drawn;
  std::map<std::string, int> counts;
  for (uint64_t seed = 0; counts["If"] == 0 && seed < 100; ++seed) {
    drawn = RandomModel(seed);
    counts.clear();
    CountOperators(drawn.model.graph(), &counts);
  }
  ASSERT_GT(counts["If"], 0);
  const auto has_if = [](const std::vector<Case>& cases) {
    std::vector<bool> fails;
    for (const Case& c : cases) {
      std::map<std::string, int> found;
      CountOperators(c.model->graph(), &found);
      fails.push_back(found["If"] > 0);
    }
    return fails;
  };
  const Case small = ShrinkModel({"", drawn.graph, drawn.model}, has_if);
  EXPECT_TRUE(has_if({small})[0]);
  // The If, and where the model has no other scalar of type bool the node that computes its condition.
  ASSERT_GT(drawn.model.graph().node_size(), 2);
  EXPECT_LE(small.model->graph().node_size(), 2);
}

// The model of these nodes, of x and of a constant.
Case ModelCase(const std::string& nodes, const Shape& x, const std::vector<int64_t>& constant) {
  onnx::ModelProto model = EmptyModel();
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString("graph { " + nodes + "}", &model));
  *model.mutable_graph()->add_input() = TypeProto("x", DType::kF32, x);
  const Tensor c = Tensor::From<int64_t>(DType::kI64, {static_cast<int64_t>(constant.size())}, constant);
  *model.mutable_graph()->add_initializer() = ToProto("c", c);
  auto graph = ImportModel(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return {"model", graph.ok() ? *std::move(graph) : ecg::Graph(), std::move(model)};
}

TEST(RandomModelTest, ExtentsThatDoNotBroadcastAreRefusedInEveryMode) {
  // There are at most six columns of positions, and the constant has seven.
  const Case meets = ModelCase(
      "node { op_type: 'NonZero' input: 'x' output: 'i' } node { op_type: 'Mod' input: 'i' input: 'c' output: 'y' } "
      "output { name: 'y' }",
      {3, 2}, {2, 2, 2, 2, 2, 2, 2});
  const std::vector<Failure> failures = Check({meets}, AllModes(), {})[0].failures;
  ASSERT_EQ(failures.size(), 1u) << failures.back().mode << failures.back().why;
  EXPECT_TRUE(failures[0].Refusal()) << failures[0].why;
}

TEST(RandomModelTest, IndicesPastExtentsAreBadInput) {
  const Case gathers = ModelCase(
      "node { op_type: 'NonZero' input: 'x' output: 'i' } node { op_type: 'GatherND' input: 'i' input: 'c' output: 'y' "
      "} output { name: 'y' }",
      {6}, {0, 5});
  const std::vector<Failure> failures = Check({gathers}, {}, {})[0].failures;
  // Six elements that are not 0 have no index that lies outside.
  const Tensor x = DrawInput("x", DType::kF32, {6});
  int64_t found = 0;
  for (int64_t i = 0; i < 6; ++i) found += x.GetDouble(i) != 0;
  ASSERT_LT(found, 6);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].Refusal());
  EXPECT_THAT(failures[0].why.ToString(), testing::HasSubstr("index 5 lies outside dimension 1"));
}

}  // namespace
}  // namespace fusion::fuzz
