#include "tests/fuzz/graphs/one_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/rewrite/round_products.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

DeviceModel DeviceFor(const std::string& isa) {
  if (isa == "neon") return testing::NeonDevice();
  if (isa == "avx2" || !testing::CanRun(testing::Avx512Device()).ok()) return testing::Avx2Device();
  return testing::Avx512Device();
}

// Graphs whose layouts, and whether choices are drawn, are the same share a call of the compiler.
constexpr size_t kGroups = 8;

testing::RunOptions OptionsFor(size_t group, uint64_t seed, const std::string& form, const DeviceModel& device) {
  using testing::LayoutMode;
  static constexpr LayoutMode kLayouts[] = {LayoutMode::kPlain, LayoutMode::kChosen, LayoutMode::kBlocked,
                                            LayoutMode::kAxisLast};
  testing::RunOptions options{device, kLayouts[group / 2]};
  options.choices_seed = group % 2 * (1 + seed);
  options.directives = {{ecg::kNone, "form", form}};
  return options;
}

Outputs Ran(testing::FusionResult result) {
  // Whether outputs agree is for the judge to say.
  if (!result.outputs.empty()) return std::move(result.outputs);
  return result.status;
}

}  // namespace

std::vector<Outputs> RunAsOneKernel(const std::vector<ecg::Graph>& graphs, const std::string& form,
                                    const std::string& isa) {
  const DeviceModel device = DeviceFor(isa);
  std::vector<Outputs> outputs(graphs.size(), absl::UnknownError("not run"));
  for (size_t group = 0; group < kGroups; ++group) {
    std::vector<testing::FusionCase> cases;
    uint64_t seed = group;
    for (size_t g = group; g < graphs.size(); g += kGroups) {
      testing::FusionCase& one = cases.emplace_back(absl::StrCat("graph ", g), testing::GraphMaker());
      one.graph = rewrite::RoundProducts(graphs[g]);
      const std::vector<Tensor> inputs = DrawInputs(graphs[g]);
      for (size_t i = 0; i < inputs.size(); ++i) one.inputs[one.graph.inputs()[i]] = inputs[i];
      seed += NumElements(graphs[g].value(graphs[g].outputs()[0]).type.shape);
    }
    if (cases.empty()) continue;
    std::vector<testing::FusionResult> results = testing::RunCases(cases, {OptionsFor(group, seed, form, device)});
    for (size_t c = 0; c < results.size(); ++c) outputs[group + c * kGroups] = Ran(std::move(results[c]));
  }
  return outputs;
}

}  // namespace fusion::fuzz
