#include "compiler/api/specialisations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "compiler/bundle/constant_pool.h"
#include "compiler/pipeline/sum_accounts.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using Dims = std::map<std::string, int64_t>;

TEST(Specialisations, AreAllCombinations) {
  CompileOptions options;
  EXPECT_EQ(*Specialisations(options), std::vector<Dims>{{}});
  options.specialised_dims["seq"] = {32, 8};
  options.specialised_dims["batch"] = {1, 4};
  EXPECT_EQ(*Specialisations(options), (std::vector<Dims>{{{"batch", 1}, {"seq", 32}},
                                                          {{"batch", 1}, {"seq", 8}},
                                                          {{"batch", 4}, {"seq", 32}},
                                                          {{"batch", 4}, {"seq", 8}}}));
}

std::string Refusal(const CompileOptions& options) {
  const absl::Status status = Specialisations(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Specialisations, RefuseWhatCannotBeBuilt) {
  CompileOptions options;
  options.specialised_dims["seq"] = {32, 0};
  EXPECT_THAT(Refusal(options), HasSubstr("--dim seq=0 must be at least 1"));
  options.specialised_dims["seq"] = {32, 8, 32};
  EXPECT_THAT(Refusal(options), HasSubstr("--dim seq: 32 is given twice"));
  options.specialised_dims["seq"] = {};
  EXPECT_THAT(Refusal(options), HasSubstr("no extents"));
  options.specialised_dims["seq"] = {32, 8};
  options.dims["seq"] = 8;
  EXPECT_THAT(Refusal(options), HasSubstr("bound twice"));
  options.dims.clear();
  options.specialised_dims["batch"].resize(kMaxSpecialisations / 2 + 1);
  std::iota(options.specialised_dims["batch"].begin(), options.specialised_dims["batch"].end(), 1);
  EXPECT_THAT(Refusal(options), HasSubstr("more than 16"));
}

TEST(ConstantPool, EqualConstantsOfTwoGraphsAreOne) {
  const auto graph = [](float weight, int64_t rows) {
    ecg::Graph g;
    const ecg::ValueId x = g.AddInput("x", {DType::kF32, {rows, 2}});
    Tensor w(DType::kF32, {2});
    w.SetDouble(0, weight);
    w.SetDouble(1, 3);
    const ecg::NodeId add = g.AddNode("Add", "", {x, g.AddConstant("w", w)}, {}, {{DType::kF32, {rows, 2}}});
    g.AddOutput(g.node(add).outputs[0], "y");
    return g;
  };
  const auto weight = [](const ecg::Graph& g) { return *g.value(g.node(0).inputs[1]).constant; };
  ConstantPool pool;
  const ecg::Graph a = pool.Share(graph(1, 4)), b = pool.Share(graph(1, 8)), c = pool.Share(graph(2, 8));
  EXPECT_EQ(weight(a).data(), weight(b).data());
  EXPECT_NE(weight(a).data(), weight(c).data());
  EXPECT_EQ(weight(c).GetDouble(0), 2);
  EXPECT_EQ(b.value(b.inputs()[0]).type.shape, Shape({8, 2}));
}

TEST(SumAccounts, SumsCountsAndKeepsPlans) {
  CompileAccount a, b;
  a.nodes_model = b.nodes_model = 7;
  a.kernels = 3, b.kernels = 2;
  a.stages = {{"import", 1}, {"plan", 2}};
  b.stages = {{"import", 3}};
  a.plan_json = R"({"blocks": [1]})";
  const CompileAccount sum = SumAccounts({"seq=32", "seq=64"}, {a, b});
  EXPECT_EQ(sum.nodes_model, 7);
  EXPECT_EQ(sum.kernels, 5);
  ASSERT_EQ(sum.stages.size(), 2u);
  EXPECT_EQ(sum.stages[0].seconds, 4);
  ASSERT_EQ(sum.specialisations.size(), 2u);
  EXPECT_EQ(sum.specialisations[1].name, "seq=64");
  EXPECT_EQ(sum.specialisations[1].kernels, 2);
  EXPECT_THAT(sum.plan_json, HasSubstr("\"blocks\""));
  EXPECT_EQ(SumAccounts({""}, {a}).plan_json, a.plan_json);
}

}  // namespace
}  // namespace fusion
