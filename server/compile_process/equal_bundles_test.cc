// The real compiler makes the same bundle in a process of its own as in the caller's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/cost/typical_core.h"
#include "compiler/pipeline/compile.h"
#include "server/compile_process/compile_process.h"

namespace fusion {
namespace {

// Builds each unit once, so that the two compilations get the same binaries in half of the time.
class RememberingToolchain : public Toolchain {
 public:
  explicit RememberingToolchain(Toolchain* toolchain) : toolchain_(toolchain) {}
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    std::vector<BuildUnit> missing;
    for (const BuildUnit& unit : units) {
      if (!binaries_.count(unit.source)) missing.push_back(unit);
    }
    built += missing.size();
    const auto built_now = toolchain_->Build(missing);
    if (!built_now.ok()) return built_now.status();
    for (size_t i = 0; i < missing.size(); ++i) binaries_[missing[i].source] = (*built_now)[i];
    std::vector<std::string> binaries;
    for (const BuildUnit& unit : units) binaries.push_back(binaries_[unit.source]);
    return binaries;
  }
  size_t built = 0;

 private:
  Toolchain* const toolchain_;
  std::map<std::string, std::string> binaries_;
};

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST(EqualBundles, AProcessOfItsOwnMakesTheSameBytes) {
  auto clang = ClangToolchain::Create();
  ASSERT_TRUE(clang.ok()) << clang.status();
  char folder_name[] = "/tmp/fusion-equal-bundles-XXXXXX";
  const std::string folder = mkdtemp(folder_name);
  const DeviceModel device = TypicalCore();
  for (const auto& [model, planner] : {std::pair{"tiny_resnet", "dnnfusion"}, {"tiny_encoder", "auto"}}) {
    std::filesystem::copy(std::string(FUSION_SMALL_MODELS "/") + model + ".onnx", folder + "/" + model);
    ModelFiles files;
    files.model_path = folder + "/" + model;
    files.model_name = model;
    CompileOptions options;
    options.planner = planner;
    options.disabled_passes = {"winograd"};
    RememberingToolchain toolchain(clang->get());
    ModelOracle oracle;
    std::string stages_within, stages_apart;
    CompileContext context;
    context.device = &device, context.oracle = &oracle, context.toolchain = &toolchain;
    context.progress = [&](const ProgressEvent& event) { stages_within += event.stage + event.message; };
    const auto within = Compile(files, options, context, folder + "/within");
    ASSERT_TRUE(within.ok()) << within.status();
    const size_t built = toolchain.built;
    context.progress = [&](const ProgressEvent& event) { stages_apart += event.stage + event.message; };
    const auto apart = CompileInProcess({FUSION_COMPILE_JOB}, files, options, context, folder + "/apart");
    ASSERT_TRUE(apart.ok()) << apart.status();
    EXPECT_EQ(toolchain.built, built) << "every text was the same";
    const std::string bytes = Read(folder + "/within");
    EXPECT_GT(bytes.size(), 1000);
    EXPECT_TRUE(bytes == Read(folder + "/apart")) << model << " by " << planner;
    EXPECT_EQ(apart->plan_json, within->plan_json);
    EXPECT_EQ(stages_apart, stages_within);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusion
