#include "compiler/bundle/share_packings.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "compiler/bundle/weights.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using testing::GraphMaker;
using V = ecg::ValueId;

// Two products of one constant, made with choices of the test.
struct Products {
  Products(int64_t rows, int64_t other_rows) {
    weight = g.Weight({768, 768});
    g.Out(g.Op("MatMul", {g.In({rows, 768}), weight}));
    g.Out(g.Op("MatMul", {g.In({other_rows, 768}), weight}));
  }
  absl::StatusOr<std::vector<FusionKernel>> Make(size_t launch, const Choices& choices) const {
    const std::vector<ecg::NodeId> nodes = {static_cast<ecg::NodeId>(launch)};
    auto kernel =
        MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, testing::Avx512Device(), {choices, {}});
    if (!kernel.ok()) return kernel.status();
    return std::vector<FusionKernel>{*std::move(kernel)};
  }
  std::vector<PlannedLaunch> Launches(const Choices& first, const Choices& second) const {
    std::vector<PlannedLaunch> launches;
    launches.push_back({(*Make(0, first))[0], {}, "", {}});
    launches.push_back({(*Make(1, second))[0], {}, "", {}});
    return launches;
  }
  std::vector<std::string> Packings(const std::vector<PlannedLaunch>& launches) const {
    std::vector<std::string> packings;
    for (const PlannedLaunch& launch : launches) {
      for (const KernelArg& arg : launch.fusion_kernel.args) {
        if (arg.value != weight) continue;
        packings.push_back(arg.pack < 0 ? "plain" : PackingText(launch.fusion_kernel.kernel.packs[arg.pack]));
      }
    }
    return packings;
  }
  SharingLeft Share(bool whatever_it_costs, std::vector<PlannedLaunch>* launches) const {
    return SharePackings(
        testing::Avx512Device(), 1, whatever_it_costs,
        {{&g.graph(), launches, [this](size_t launch, const Choices& choices) { return Make(launch, choices); }}});
  }
  // A choice with which the second product packs otherwise, or none.
  Choices Otherwise() const {
    const std::vector<PlannedLaunch> own = Launches({}, {});
    for (const ChoicePoint& point : own[1].fusion_kernel.choices) {
      for (int one = 1; one < point.count; ++one) {
        const Choices choices = {{point.name, one}};
        if (!Make(1, choices).ok()) continue;
        const std::vector<std::string> packings = Packings(Launches({}, choices));
        if (packings.size() == 2 && packings[0] != packings[1]) return choices;
      }
    }
    return {};
  }
  GraphMaker g;
  V weight = -1;
};

TEST(SharePackings, ReadersOfAConstantAgree) {
  const Products products(64, 64);
  const Choices other = products.Otherwise();
  ASSERT_FALSE(other.empty());
  std::vector<PlannedLaunch> launches = products.Launches({}, other);
  const std::vector<std::string> before = products.Packings(launches);
  ASSERT_NE(before[0], before[1]);
  const SharingLeft left = products.Share(/*whatever_it_costs=*/true, &launches);
  const std::vector<std::string> after = products.Packings(launches);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0], after[1]);
  EXPECT_TRUE(after[0] == before[0] || after[0] == before[1]);
  EXPECT_TRUE(left.costly.empty());
}

TEST(SharePackings, KernelsThatAgreeKeepTheirText) {
  const Products products(64, 64);
  std::vector<PlannedLaunch> launches = products.Launches({}, {});
  const std::vector<std::string> keys = {launches[0].fusion_kernel.key, launches[1].fusion_kernel.key};
  const SharingLeft left = products.Share(/*whatever_it_costs=*/true, &launches);
  EXPECT_EQ(launches[0].fusion_kernel.key, keys[0]);
  EXPECT_EQ(launches[1].fusion_kernel.key, keys[1]);
  EXPECT_EQ(left.more_ns, std::vector<double>{0});
}

// A step of a recurrent network: one kernel multiplies a row by a matrix, and another one adds two such products in its
// tasks, whose rows it reads as they lie until it shares the panels.
TEST(SharePackings, AProductInATaskReadsAnothersPanels) {
  GraphMaker g;
  const GraphMaker::Attrs turned = {{"transB", int64_t{1}}};
  const V weight = g.Weight({1024, 256}), bias = g.Weight({1024});
  g.Out(g.Op("Gemm", {g.In({1, 256}), weight, bias}, turned));
  const V from_input = g.Op("Gemm", {g.In({1, 256}), weight, bias}, turned);
  const V from_state = g.Op("Gemm", {g.In({1, 256}), g.Weight({1024, 256}), bias}, turned);
  g.Out(g.Op("Add", {from_input, from_state}));
  const auto make = [&](size_t launch, const Choices& choices) -> absl::StatusOr<std::vector<FusionKernel>> {
    const std::vector<ecg::NodeId> nodes =
        launch == 0 ? std::vector<ecg::NodeId>{0} : std::vector<ecg::NodeId>{1, 2, 3};
    auto kernel =
        MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, testing::Avx512Device(), {choices, {}});
    if (!kernel.ok()) return kernel.status();
    return std::vector<FusionKernel>{*std::move(kernel)};
  };
  std::vector<PlannedLaunch> launches;
  for (const size_t launch : {0, 1}) launches.push_back({(*make(launch, {}))[0], {}, "", {}});
  const auto reads = [&](const PlannedLaunch& launch) -> std::string {
    for (const KernelArg& arg : launch.fusion_kernel.args) {
      if (arg.value == weight) return arg.pack < 0 ? "plain" : PackingText(launch.fusion_kernel.kernel.packs[arg.pack]);
    }
    return "not at all";
  };
  ASSERT_NE(reads(launches[0]), "plain");
  ASSERT_EQ(reads(launches[1]), "plain");
  const SharingLeft left = SharePackings(testing::Avx512Device(), 1, false, {{&g.graph(), &launches, make}});
  EXPECT_EQ(reads(launches[1]), reads(launches[0]));
  EXPECT_EQ(launches[1].fusion_kernel.kernel.phases.size(), 1u);
  EXPECT_TRUE(left.repeated.empty());
}

// With no way to schedule again, what is held twice stays.
TEST(SharePackings, WhatCannotBeMadeStays) {
  const Products products(64, 64);
  std::vector<PlannedLaunch> launches = products.Launches({}, products.Otherwise());
  const std::vector<std::string> before = products.Packings(launches);
  const auto never = [](size_t, const Choices&) -> absl::StatusOr<std::vector<FusionKernel>> {
    return absl::FailedPreconditionError("no");
  };
  const std::map<const void*, std::string> unread = {
      {products.g.graph().value(products.weight).constant->data(), "of no use here"}};
  const SharingLeft left =
      SharePackings(testing::Avx512Device(), 1, true, {{&products.g.graph(), &launches, never, &unread}});
  EXPECT_EQ(products.Packings(launches), before);
  ASSERT_EQ(left.repeated.size(), 1u);
  EXPECT_EQ(left.repeated[0].bytes, 768 * 768 * 4);
  ASSERT_EQ(left.repeated[0].forms.size(), 2u);
  for (const WeightForm& form : left.repeated[0].forms) {
    const bool plain = form.form == "as it is";
    EXPECT_TRUE(plain || form.form.rfind("packed [", 0) == 0) << form.form;
    EXPECT_EQ(form.bytes, 768 * 768 * 4);
    ASSERT_EQ(form.readers.size(), 1u);
    EXPECT_EQ(form.readers[0].launches, 1);
    const std::string alone = "it has no other schedule: no";
    EXPECT_EQ(form.readers[0].refused, plain ? alone + "; from panels: of no use here" : alone);
  }
}

// Every other schedule takes three times as long.
TEST(SharePackings, WhatCostsTimeIsForThoseWhoAskForIt) {
  const Products products(64, 64);
  const Choices other = products.Otherwise();
  for (const bool whatever_it_costs : {false, true}) {
    std::vector<PlannedLaunch> launches = products.Launches({}, other);
    const std::vector<std::string> before = products.Packings(launches);
    const auto slow = [&](size_t launch, const Choices& choices) -> absl::StatusOr<std::vector<FusionKernel>> {
      auto made = products.Make(launch, choices);
      if (!made.ok()) return made.status();
      movement::Kernel& kernel = (*made)[0].kernel;
      for (int times = 0; times < 2; ++times) kernel.phases.push_back(kernel.phases[0]);
      return made;
    };
    const SharingLeft left =
        SharePackings(testing::Avx512Device(), 1, whatever_it_costs, {{&products.g.graph(), &launches, slow}});
    const std::vector<std::string> after = products.Packings(launches);
    EXPECT_EQ(after[0] == after[1], whatever_it_costs);
    const void* source = products.g.graph().value(products.weight).constant->data();
    EXPECT_EQ(left.costly.count(source), whatever_it_costs ? 0u : 1u);
    EXPECT_EQ(after == before, !whatever_it_costs);
    ASSERT_EQ(left.repeated.size(), whatever_it_costs ? 0u : 1u);
    if (whatever_it_costs) continue;
    const std::string& refused = left.repeated[0].forms.at(0).readers.at(0).refused;
    EXPECT_NE(refused.find("it could, at "), std::string::npos) << refused;
    EXPECT_NE(refused.find("of the model's time, where 1% is allowed"), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace fusion
