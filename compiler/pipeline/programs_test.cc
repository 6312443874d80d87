#include "compiler/pipeline/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/movement/verify.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/sha256.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// The models that are stored beside the tests, and those of the folder that FUSION_MODELS names.
std::vector<std::string> ModelPaths() {
  std::vector<std::string> folders = {FUSION_SMALL_MODELS};
  if (const char* more = std::getenv("FUSION_MODELS")) folders.push_back(more);
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
    }
  }
  return paths;
}

struct Target {
  std::string name, precision;
  DeviceModel device;
};

std::vector<Target> Targets() {
  const absl::StatusOr<DeviceModel> cuda = StoredDevice("cuda:sm_80");
  EXPECT_TRUE(cuda.ok()) << cuda.status();
  return {{"avx512", "fp32", testing::Avx512Device()},
          {"avx2", "fp32", testing::Avx2Device()},
          {"neon", "fp32", testing::NeonDevice()},
          {"opencl", "fp32", testing::OpenClTestDevice(4, 1)},
          {"opencl groups", "fp32", testing::OpenClTestDevice(4, 32)},
          {"cuda", "fp16", *cuda},
          {"cuda", "tf32", *cuda}};
}

absl::StatusOr<PreparedPrograms> Prepare(const std::string& path, const DeviceModel& device,
                                         const CompileOptions& options) {
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  ModelFiles files;
  files.model_path = files.model_name = path;
  return PreparePrograms(files, options, context);
}

// The text of a kernel is the key of its measurements and what tools read, so it must say all that the kernel is.
TEST(PreparePrograms, EveryKernelsTextReadsAsTheSameKernel) {
  for (const Target& target : Targets()) {
    std::set<std::string> distinct;
    int kernels = 0;
    for (const std::string& path : ModelPaths()) {
      SCOPED_TRACE(absl::StrCat(path, " on ", target.name, " with ", target.precision));
      CompileOptions options;
      options.target = target.device.kind;
      options.precision = target.precision;
      const auto programs = Prepare(path, target.device, options);
      ASSERT_TRUE(programs.ok()) << programs.status();
      for (const auto& program : *programs) {
        for (const PlannedLaunch& launch : program->model.launches) {
          const movement::Kernel& kernel = launch.fusion_kernel.kernel;
          EXPECT_TRUE(movement::Verify(kernel).ok()) << movement::Verify(kernel);
          const std::string text = movement::Print(kernel);
          ++kernels;
          EXPECT_EQ(launch.fusion_kernel.key, Sha256Hex(text));
          if (!distinct.insert(text).second) continue;
          const absl::StatusOr<movement::Kernel> parsed = movement::Parse(text);
          ASSERT_TRUE(parsed.ok()) << launch.label << ": " << parsed.status() << "\n" << text;
          EXPECT_EQ(movement::Print(*parsed), text) << launch.label;
          EXPECT_EQ(parsed->num_args(), kernel.num_args());
          EXPECT_EQ(parsed->scratch_bytes, kernel.scratch_bytes);
          EXPECT_EQ(parsed->scratch_offset_bytes(), kernel.scratch_offset_bytes());
        }
      }
    }
    RecordProperty(absl::StrCat(target.name, " ", target.precision),
                   absl::StrCat(distinct.size(), " distinct of ", kernels));
    EXPECT_GE(distinct.size(), 12u) << target.name;
  }
}

TEST(PreparePrograms, AFaultOfTheModelNamesIt) {
  const absl::Status status = Prepare("/no/such/model.onnx", testing::Avx512Device(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/model.onnx"));
  CompileOptions options;
  options.dims["batch"] = 4;
  EXPECT_THAT(std::string(Prepare(ModelPaths()[0], testing::Avx512Device(), options).status().message()),
              HasSubstr("no symbolic dimension \"batch\""));
}

TEST(PreparePrograms, ACancelledCompilationEnds) {
  ModelOracle oracle;
  const DeviceModel device = testing::Avx512Device();
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.cancelled = [] { return true; };
  ModelFiles files;
  files.model_path = ModelPaths()[0];
  EXPECT_EQ(PreparePrograms(files, {}, context).status().code(), absl::StatusCode::kCancelled);
}

// h' = tanh(h·w + x) over eight steps, whose states are all an output.
constexpr char kRecurrence[] = R"(graph g(%h0: f32[1, 64], %xs: f32[8, 1, 64], %w: f32[64, 64]) {
  %h: f32[1, 64], %x: f32[1, 64] = LoopBegin(%h0, %xs) {carried = 1, loop = 7, reversed = ints[0], trips = 8}
  %p: f32[1, 64] = MatMul(%h, %w)
  %s: f32[1, 64] = Add(%p, %x)
  %next: f32[1, 64] = Tanh(%s)
  %last: f32[1, 64], %all: f32[8, 1, 64] = LoopEnd(%h, %next, %next) {carried = 1, loop = 7, reversed = ints[0], trips = 8}
  return %last, %all
})";

// `width`: of a state, instead of 64.
absl::StatusOr<PreparedPrograms> PrepareRecurrence(const DeviceModel& device, const std::set<std::string>& disabled,
                                                   const std::string& planner = "dnnfusion", int width = 64,
                                                   const std::string& precision = "fp32") {
  const ecg::Graph graph = *ecg::Parse(absl::StrReplaceAll(kRecurrence, {{"64", absl::StrCat(width)}}));
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  ModelFiles files;
  files.graph = &graph;
  CompileOptions options;
  options.target = device.kind;
  options.planner = planner;
  options.precision = precision;
  options.disabled_passes = disabled;
  return PreparePrograms(files, options, context);
}

TEST(PreparePrograms, OnAProcessorALoopIsItsLaunchesOnce) {
  for (const std::string planner : {"dnnfusion", "none"}) {
    const auto programs = PrepareRecurrence(testing::Avx512Device(), {}, planner);
    ASSERT_TRUE(programs.ok()) << programs.status();
    const Prepared& model = (*programs)[0]->model;
    ASSERT_EQ(model.planned.loops.launches.size(), 1u);
    const LaunchLoop& loop = model.planned.loops.launches[0];
    EXPECT_EQ(loop.trips, 8);
    std::set<std::string> repeated;
    for (size_t l = loop.first; l < loop.end; ++l) {
      EXPECT_THAT(model.launches[l].label, HasSubstr("8 iterations"));
      repeated.insert(model.launches[l].nodes.begin(), model.launches[l].nodes.end());
    }
    EXPECT_LE(loop.end - loop.first, 3u);
    EXPECT_EQ(model.account.flops, 8 * (2.0 * 64 * 64 + 64 + 64 * 1)) << "one of tanh and of the sum for each element";
  }
}

TEST(PreparePrograms, LoopsAreWrittenOutWhereTheyAreDisabled) {
  for (const DeviceModel& device : {testing::OpenClTestDevice(4, 1), testing::Avx512Device()}) {
    const auto programs = PrepareRecurrence(device, {"loops"});
    ASSERT_TRUE(programs.ok()) << programs.status();
    const Prepared& model = (*programs)[0]->model;
    EXPECT_TRUE(model.planned.loops.launches.empty());
    EXPECT_GE(model.planned.graph.nodes().size(), 3u * 8u);
  }
}

// A state of 5 elements is no whole number of lines, so that a device whose kernels count on alignment has no loop. 16
// numbers are a line, and half of one where they are stored as halves.
TEST(PreparePrograms, OnOtherDevicesALoopIsKeptWhereItsValuesAreAligned) {
  const auto loops = [](int width, const std::string& precision) -> size_t {
    const auto programs = PrepareRecurrence(testing::OpenClTestDevice(4, 1), {}, "dnnfusion", width, precision);
    EXPECT_TRUE(programs.ok()) << programs.status();
    return programs.ok() ? (*programs)[0]->model.planned.loops.launches.size() : 99;
  };
  EXPECT_EQ(loops(64, "fp32"), 1u);
  EXPECT_EQ(loops(5, "fp32"), 0u);
  EXPECT_EQ(loops(16, "fp32"), 1u);
  EXPECT_EQ(loops(16, "fp16"), 0u);
}

}  // namespace
}  // namespace fusion
