// DNNFusion Table 3 (§4.4): for each of its 23 green and yellow cells, pairs of real operators become one kernel.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/plan/mapping_table.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using ops::MappingType;

// An operator that takes and gives tensors of rank 4 with at least 8 channels, an image of at least 2x2, and a batch of
// 1 or more.
struct Step {
  std::string name;
  MappingType mapping;
  std::function<V(G&, V, const Shape&)> add;
};

const std::vector<Step>& Steps() {
  static const auto* steps = new std::vector<Step>{
      {"Gelu", MappingType::kOneToOne, [](G& g, V x, const Shape&) { return g.Op("Gelu", {x}); }},
      {"Add", MappingType::kOneToOne,
       [](G& g, V x, const Shape& s) {
         return g.Op("Add", {x, g.In(s)});
       }},
      {"Reshape", MappingType::kReorganize,
       [](G& g, V x, const Shape& s) {
         return g.Op("Reshape", {x, g.Ints({s[0], s[1] / 2, s[2] * 2, s[3]})});
       }},
      {"Transpose", MappingType::kShuffle,
       [](G& g, V x, const Shape&) {
         return g.Op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
       }},
      {"DepthToSpace", MappingType::kShuffle,
       [](G& g, V x, const Shape&) {
         return g.Op("DepthToSpace", {x}, {{"blocksize", int64_t{2}}});
       }},
      {"Resize", MappingType::kOneToMany,
       [](G& g, V x, const Shape&) {
         const V scales = g.Const(Tensor::From<double>(DType::kF32, {4}, {1, 1, 2, 2}));
         return g.Op("Resize", {x, ecg::kNone, scales}, {{"mode", std::string("nearest")}});
       }},
      {"Tile", MappingType::kOneToMany,
       [](G& g, V x, const Shape&) {
         return g.Op("Tile", {x, g.Ints({1, 2, 1, 1})});
       }},
      {"Conv", MappingType::kManyToMany,
       [](G& g, V x, const Shape& s) {
         return g.Op("Conv", {x, g.Weight({32, s[1], 1, 1}), g.Weight({32})});
       }},
      {"MatMul", MappingType::kManyToMany,
       [](G& g, V x, const Shape& s) {
         return g.Op("MatMul", {x, g.Weight({s[3], 24})});
       }},
      {"Softmax", MappingType::kManyToMany, [](G& g, V x, const Shape&) { return g.Op("Softmax", {x}); }},
  };
  return *steps;
}

MappingType MappingOfLast(const G& g) { return ops::NodeMapping(g.graph(), g.graph().nodes().back()); }

TEST(CodegenTable3, EveryCellThatMayFuseIsOneKernel) {
  const Shape shape = {1, 32, 8, 6};
  std::set<std::pair<MappingType, MappingType>> cells;
  std::vector<FusionCase> cases;
  for (const Step& first : Steps()) {
    for (const Step& second : Steps()) {
      G g;
      const V a = first.add(g, g.In(shape), shape);
      ASSERT_EQ(MappingOfLast(g), first.mapping) << first.name;
      const V b = second.add(g, a, g.graph().value(a).type.shape);
      ASSERT_EQ(MappingOfLast(g), second.mapping) << second.name;
      if (CombineMappings(first.mapping, second.mapping).colour == Colour::kRed) continue;
      g.Out(b);
      cells.insert({first.mapping, second.mapping});
      cases.push_back(FusionCase(absl::StrCat(first.name, " then ", second.name), g));
    }
  }
  EXPECT_EQ(cells.size(), 23u);
  const std::vector<RunOptions> options = {{Avx512Device(), LayoutMode::kPlain}, {Avx2Device(), LayoutMode::kChosen}};
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(result.kernels.size(), 1u) << result.name;
  }
}

}  // namespace
}  // namespace fusion::testing
