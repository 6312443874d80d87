// DNNFusion Table 3 (§4.4): for each of its 23 green and yellow cells, pairs of real operators become one kernel.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/plan/mapping_table.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using ops::MappingType;

// An operator that takes and gives tensors of rank 4 with at least 16 channels, an image of at least 2x2, and a batch of
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

struct Pair {
  std::pair<MappingType, MappingType> cell;
  FusionCase both;
};

// Each operator followed by each one that Table 3 does not forbid behind it.
std::vector<Pair> Pairs(const Shape& shape) {
  std::vector<Pair> pairs;
  for (const Step& first : Steps()) {
    for (const Step& second : Steps()) {
      G g;
      const V a = first.add(g, g.In(shape), shape);
      EXPECT_EQ(MappingOfLast(g), first.mapping) << first.name;
      const V b = second.add(g, a, g.graph().value(a).type.shape);
      EXPECT_EQ(MappingOfLast(g), second.mapping) << second.name;
      if (CombineMappings(first.mapping, second.mapping).colour == Colour::kRed) continue;
      g.Out(b);
      pairs.push_back(
          {{first.mapping, second.mapping}, FusionCase(absl::StrCat(first.name, " then ", second.name), g)});
    }
  }
  return pairs;
}

void ExpectOneKernelEach(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options) {
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(result.kernels.size(), 1u) << result.name;
  }
}

TEST(CodegenTable3, EveryCellThatMayFuseIsOneKernel) {
  std::set<std::pair<MappingType, MappingType>> cells;
  std::vector<FusionCase> cases;
  for (Pair& pair : Pairs({1, 32, 8, 6})) {
    cells.insert(pair.cell);
    cases.push_back(std::move(pair.both));
  }
  EXPECT_EQ(cells.size(), 23u);
  ExpectOneKernelEach(cases, {{Avx512Device(), LayoutMode::kPlain}, {Avx2Device(), LayoutMode::kChosen}});
}

// One pair of each cell, since emulated devices are slow.
TEST(CodegenTable3, EveryCellIsOneKernelOnOtherDevices) {
  std::map<std::pair<MappingType, MappingType>, FusionCase> one;
  for (Pair& pair : Pairs({1, 16, 4, 6})) one.insert({pair.cell, std::move(pair.both)});
  ASSERT_EQ(one.size(), 23u);
  std::vector<FusionCase> cases;
  for (auto& [cell, both] : one) cases.push_back(std::move(both));
  for (const DeviceModel& device :
       {NeonDevice(), OpenClTestDevice(16, 1), OpenClTestDevice(4, 8), CudaTestDevice(64)}) {
    if (const absl::Status can = CanRun(device); !can.ok()) {
      GTEST_LOG_(INFO) << "skipped: " << can.message();
      continue;
    }
    ExpectOneKernelEach(cases, {{device, LayoutMode::kPlain}});
  }
}

}  // namespace
}  // namespace fusion::testing
