#include "compiler/pipeline/built_resources.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/backends/backend.h"
#include "compiler/backends/cuda/testing/fake_cubin.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/ecg/text.h"
#include "compiler/pipeline/programs.h"

namespace fusion {
namespace {

constexpr char kProduct[] = R"(graph g(%x: f32[256, 512]) {
  %w: f32[512, 256] = const #0000000000000001
  %p: f32[256, 256] = MatMul(%x, %w)
  %s: f32[256, 256] = Softmax(%p)
  return %s
})";

class BuiltResources : public testing::Test {
 protected:
  void SetUp() override {
    context_.device = &device_;
    context_.oracle = &oracle_;
    CompileOptions options;
    options.planner = "none";
    options.target = "cuda";
    absl::StatusOr<PreparedPrograms> made = PreparePrograms(files_, options, context_);
    ASSERT_TRUE(made.ok()) << made.status();
    programs_ = *std::move(made);
    std::vector<const FusionKernel*> kernels;
    for (const PlannedLaunch& launch : model().launches) kernels.push_back(&launch.fusion_kernel);
    texts_ = PrintKernels(kernels, device_);
  }
  Prepared& model() { return programs_[0]->model; }

  // plan.json's fusion blocks where every function takes this.
  nlohmann::json FusionBlocks(const KernelResources& each) {
    std::vector<ResourcesBySymbol> functions(texts_.files.size());
    for (const KernelTexts::Place& place : texts_.places) {
      for (size_t p = 0; p < place.tasks.size(); ++p) {
        functions[static_cast<size_t>(place.file)][PhaseSymbol(place.symbol, static_cast<int>(p))] = each;
      }
    }
    std::vector<std::string> binaries;
    for (const ResourcesBySymbol& one : functions) binaries.push_back(FakeCubin(one));
    AccountForBuilt(model().launches, texts_, texts_.places.begin(), binaries, device_, &model().account);
    return nlohmann::json::parse(model().account.plan_json)["fusion_blocks"];
  }

  const ecg::Graph graph_ = *ecg::Parse(kProduct);
  const DeviceModel device_ = *StoredDevice("cuda:sm_80");
  ModelOracle oracle_;
  CompileContext context_;
  ModelFiles files_{.graph = &graph_};
  PreparedPrograms programs_;
  KernelTexts texts_;
};

TEST_F(BuiltResources, StandBesideWhatPlannersWereTold) {
  const nlohmann::json fusion_blocks = FusionBlocks({128, 0, 8192});
  ASSERT_EQ(fusion_blocks.size(), 2u);
  for (const nlohmann::json& one : fusion_blocks) {
    EXPECT_EQ(one["built"]["registers"], 128);
    EXPECT_EQ(one["built"]["shared_bytes"], 8192);
    EXPECT_NE(one["occupancy"]["registers"], 128) << "the estimate stays";
    // 65,536 registers hold 512 work-items of 128: a quarter of what a multiprocessor keeps.
    EXPECT_EQ(one["built"]["limit"], "registers");
    EXPECT_DOUBLE_EQ(one["built"]["share"], 0.25);
  }
}

TEST_F(BuiltResources, BinariesThatDoNotSayLeaveThePlanAlone) {
  const std::string before = model().account.plan_json;
  const std::vector<std::string> binaries(texts_.files.size(), "no cubin");
  AccountForBuilt(model().launches, texts_, texts_.places.begin(), binaries, device_, &model().account);
  EXPECT_EQ(model().account.plan_json, before);
}

}  // namespace
}  // namespace fusion
