// Products as threadgroup tiles. The processor emulates a device like a GPU: work-groups of 32 work-items and more,
// with 48 KiB of shared memory. Tests OpenCL with one K-slice of each operand at a time and with two, and CUDA as C++,
// where an asynchronous copy completes no sooner than the wait for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/cost/matrix_products.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

DeviceModel LikeAGpu(const std::string& name) {
  DeviceModel device = name == "Cuda" ? CudaTestDevice(64) : OpenClTestDevice(4, name == "OpenClAhead" ? 128 : 32);
  device.parallel_units = 4;
  device.async_copies = name != "OpenCl";
  device.memory[0].size_bytes = 48 << 10;
  return device;
}

int ThreadgroupTiles(const std::vector<FusionKernel>& kernels) {
  int count = 0;
  for (const FusionKernel& kernel : kernels) {
    for (const movement::Phase& phase : kernel.kernel.phases) {
      for (const movement::Step& step : phase.steps) count += step.Is<movement::ThreadgroupTile>();
    }
  }
  return count;
}

FusionCase Product(const std::string& name, const Shape& a, const Shape& b, bool weights) {
  G g;
  g.Out(g.Op("MatMul", {g.In(a), weights ? g.Weight(b) : g.In(b)}));
  return FusionCase(name, g);
}

FusionCase Convolution(const std::string& name, const Shape& x, const Shape& w, const G::Attrs& attrs) {
  G g;
  const V y = g.Op("Conv", {g.In(x), g.Weight(w), g.Weight({w[0]})}, attrs);
  g.Out(g.Op("Relu", {y}));
  return FusionCase(name, g);
}

std::vector<FusionCase> Cases() {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases = {
      Product("whole tiles", {64, 64}, {64, 128}, true),
      Product("odd in all three", {37, 29}, {29, 51}, true),
      Product("both computed, batches", {3, 2, 20, 24}, {3, 2, 24, 18}, false),
      Product("a batch of rows", {3, 20, 24}, {24, 33}, true),
      Convolution("1x1", {2, 24, 9, 7}, {40, 24, 1, 1}, {}),
      Convolution("3x3", {1, 16, 8, 14}, {32, 16, 3, 3}, {{"pads", pad1}}),
      Convolution("3x3 stride 2, odd channels", {2, 9, 9, 8}, {10, 9, 3, 3}, {{"pads", pad1}, {"strides", Ints{2, 2}}}),
      Convolution("7x7 on three channels", {1, 3, 17, 15}, {16, 3, 7, 7},
                  {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}}),
      Convolution("groups", {1, 32, 6, 6}, {32, 16, 3, 3}, {{"pads", pad1}, {"group", int64_t{2}}}),
  };
  {
    G g;  // bias, activation and residual in the epilogue, transposed operand
    const V y = g.Op("MatMul", {g.In({33, 40}), g.Op("Transpose", {g.In({24, 40})}, {{"perm", Ints{1, 0}}})});
    const V sum = g.Op("Add", {y, g.Weight({24})});
    g.Out(g.Op("Add", {g.Op("Mul", {sum, g.Op("Erf", {sum})}), g.In({33, 24})}));
    cases.push_back(FusionCase("epilogue", g));
  }
  {
    G g;  // the cast is computed while the operand is loaded into shared memory
    g.Out(g.Op("MatMul", {g.Op("Cast", {g.In({20, 32}, DType::kF16)}, {{"to", int64_t{1}}}), g.Weight({32, 40})}));
    cases.push_back(FusionCase("prologue", g));
  }
  {
    G g;
    g.Out(g.Op("MatMul", {g.In({20, 32}, DType::kF16), g.Weight({32, 40}, DType::kF16)}));
    cases.push_back(FusionCase("halves", g));
  }
  return cases;
}

FusionCase Attention(const std::string& name, int64_t rows, int64_t keys, int64_t heads, int64_t width,
                     DType dtype = DType::kF32) {
  G g;
  const auto split = [&](int64_t length, const Ints& perm) {
    const V x = g.Op("Reshape", {g.In({1, length, heads * width}, dtype), g.Ints({1, length, heads, width})});
    return g.Op("Transpose", {x}, {{"perm", perm}});
  };
  V scores = g.Op("MatMul", {split(rows, {0, 2, 1, 3}), split(keys, {0, 2, 3, 1})});
  scores = g.Op("Add", {g.Op("Mul", {scores, g.Scalar(0.25, dtype)}), g.In({1, 1, 1, keys}, dtype)});
  const V context = g.Op("MatMul", {g.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}), split(keys, {0, 2, 1, 3})});
  g.Out(
      g.Op("Reshape", {g.Op("Transpose", {context}, {{"perm", Ints{0, 2, 1, 3}}}), g.Ints({1, rows, heads * width})}));
  return FusionCase(name, g);
}

// Chains of products between which a work-group's task keeps its rows.
std::vector<FusionCase> CasesInTasks() {
  std::vector<FusionCase> cases = {
      Attention("attention", 64, 64, 2, 32),
      Attention("attention, odd in all", 53, 45, 3, 20),
      Attention("attention, one head of many keys", 96, 200, 1, 64),
  };
  {
    G g;
    const V x = g.Op("Relu", {g.Op("MatMul", {g.In({61, 40}), g.Weight({40, 96})})});
    g.Out(g.Op("MatMul", {x, g.Weight({96, 32})}));
    cases.push_back(FusionCase("two layers", g));
  }
  {
    G g;
    const V x = g.Op("Add", {g.Op("MatMul", {g.In({3, 30, 48}), g.Weight({48, 80})}), g.In({3, 30, 80})});
    g.Out(g.Op("LayerNormalization", {x, g.Weight({80}), g.Weight({80})}));
    cases.push_back(FusionCase("product, residual, layernorm", g));
  }
  return cases;
}

class ThreadgroupTile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const absl::Status can_run = CanRun(LikeAGpu(GetParam()));
    if (!can_run.ok()) GTEST_SKIP() << "kernels are not run: " << can_run.message();
  }
};

DeviceModel WithTensorCores() {
  DeviceModel device = LikeAGpu("Cuda");
  device.matrix_products = {{"f16", 16, 8, 16, 32, 8 * device.fma_f32_flops_per_s},
                            {"tf32", 16, 8, 8, 32, 4 * device.fma_f32_flops_per_s}};
  return device;
}

// Elements that tf32 represents exactly, so that results agree with those of f32.
Tensor FewBits(const Shape& shape) {
  Tensor tensor(DType::kF32, shape);
  auto* out = tensor.mutable_as<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) out[i] = static_cast<float>((i * 37 + i / 11) % 129 - 64) / 32;
  return tensor;
}

int FragmentTiles(const std::vector<FusionKernel>& kernels) {
  int count = 0;
  for (const FusionKernel& kernel : kernels) {
    for (const movement::Phase& phase : kernel.kernel.phases) {
      for (const movement::Step& step : phase.steps) {
        const auto* tile = step.As<movement::ThreadgroupTile>();
        count += tile != nullptr && tile->product.fragments();
      }
    }
  }
  return count;
}

// Products of f16 operands, accumulated in f32 by fragment products.
std::vector<FusionCase> HalfCases() {
  const auto f16 = DType::kF16;
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases;
  {
    G g;
    g.Out(g.Op("MatMul", {g.In({64, 96}, f16), g.Weight({96, 64}, f16)}));
    cases.push_back(FusionCase("whole tiles of halves", g));
  }
  {
    G g;
    g.Out(g.Op("MatMul", {g.In({2, 37, 29}, f16), g.In({2, 29, 51}, f16)}));
    cases.push_back(FusionCase("odd batches of halves", g));
  }
  {
    G g;  // bias, activation and residual, transposed operand
    const V y = g.Op("MatMul", {g.In({33, 40}, f16), g.Op("Transpose", {g.In({24, 40}, f16)}, {{"perm", Ints{1, 0}}})});
    g.Out(g.Op("Add", {g.Op("Tanh", {g.Op("Add", {y, g.Weight({24}, f16)})}), g.In({33, 24}, f16)}));
    cases.push_back(FusionCase("epilogue of halves", g));
  }
  const auto convolution = [&](const std::string& name, const Shape& x, const Shape& w, const G::Attrs& attrs) {
    G g;
    g.Out(g.Op("Relu", {g.Op("Conv", {g.In(x, f16), g.Weight(w, f16), g.Weight({w[0]}, f16)}, attrs)}));
    cases.push_back(FusionCase(name, g));
  };
  convolution("1x1 of halves", {2, 24, 9, 7}, {40, 24, 1, 1}, {});
  convolution("3x3 of halves", {1, 16, 8, 14}, {32, 16, 3, 3}, {{"pads", pad1}});
  convolution("7x7 of halves", {1, 3, 17, 15}, {16, 3, 7, 7}, {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}});
  convolution("groups of halves", {1, 32, 6, 6}, {32, 16, 3, 3}, {{"pads", pad1}, {"group", int64_t{2}}});
  return cases;
}

TEST(TensorCores, MultiplyHalves) {
  for (const FusionResult& result : RunCases(HalfCases(), {{WithTensorCores(), LayoutMode::kPlain, /*split=*/false}})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(FragmentTiles(result.kernels), 1) << result.name;
  }
  std::vector<RunOptions> options = {{WithTensorCores(), LayoutMode::kChosen}};
  options.back().choices_seed = 3;
  EXPECT_EQ(Failures(HalfCases(), options), "");
  int fragments = 0;  // of both products, in a task
  for (const FusionResult& result :
       RunCases({Attention("attention of halves", 64, 64, 2, 32, DType::kF16)}, {{WithTensorCores()}})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    fragments += FragmentTiles(result.kernels);
  }
  EXPECT_EQ(fragments, 2);
}

// Four warps multiply operands in shared memory if measurements choose it: the alternative comes after those that the
// cost model knows.
TEST(TensorCores, MultiplyHalvesFromMemory) {
  DeviceModel device = WithTensorCores();
  const absl::StatusOr<DeviceModel> sm_90 = StoredDevice("cuda:sm_90");
  ASSERT_TRUE(sm_90.ok()) << sm_90.status();
  device.matrix_products.push_back(*FindMatrixProduct(*sm_90, DType::kF16, /*from_memory=*/true));
  device.march = "sm_90a";  // such kernels are built for sm_90a, see below
  std::vector<FusionCase> cases = HalfCases();
  for (const Shape& shape : std::vector<Shape>{{64, 64, 16}, {200, 96, 150}}) {
    G g;
    const V a = g.In({shape[0], shape[1]}, DType::kF16), b = g.In({shape[1], shape[2]}, DType::kF16);
    g.Out(g.Op("Relu", {g.Op("MatMul", {a, b})}));
    cases.push_back(FusionCase("product of halves " + ShapeToString(shape), g));
  }
  RunOptions from_memory = {device};
  from_memory.choices = {{"fragments", 2}};
  int tiles = 0;
  for (int shape = 0; shape < 3; ++shape) {
    for (const int buffers : {0, 1}) {
      from_memory.choices["shape"] = shape;
      from_memory.choices["buffers"] = buffers;
      for (const FusionResult& result : RunCases(cases, {from_memory})) {
        EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
        for (const FusionKernel& kernel : result.kernels) {
          bool uses = false;
          for (const movement::Phase& phase : kernel.kernel.phases) {
            for (const movement::Step& step : phase.steps) {
              const auto* tile = step.As<movement::ThreadgroupTile>();
              uses = uses || (tile != nullptr && tile->product.from_memory);
            }
          }
          tiles += uses ? 1 : 0;
          EXPECT_EQ(FindBackend("cuda")->InstructionsOf(kernel.kernel, WithTensorCores()).march,
                    uses ? "sm_90a" : "sm_90");
        }
      }
    }
  }
  EXPECT_GE(tiles, 12);
}

TEST(TensorCores, RoundToTf32OnlyWhereThatIsAllowed) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{64, 64, 64}, {37, 29, 51}}) {
    G g;
    const V y = g.Op("MatMul", {g.In(FewBits({shape[0], shape[1]})), g.Const(FewBits({shape[1], shape[2]}))});
    g.Out(g.Op("Add", {y, g.Weight({shape[2]})}));
    cases.push_back(FusionCase("product of tf32 " + ShapeToString(shape), g));
  }
  {
    G g;
    g.Out(
        g.Op("Conv", {g.In(FewBits({1, 16, 8, 14})), g.Const(FewBits({32, 16, 3, 3}))}, {{"pads", Ints{1, 1, 1, 1}}}));
    cases.push_back(FusionCase("convolution of tf32", g));
  }
  for (const FusionResult& result : RunCases(cases, {{AllowTf32(WithTensorCores())}})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(FragmentTiles(result.kernels), 1) << result.name;
  }
  G g;
  g.Out(g.Op("MatMul", {g.In({64, 64}), g.Weight({64, 64})}));
  for (const FusionResult& result : RunCases({FusionCase("product", g)}, {{WithTensorCores()}})) {
    EXPECT_EQ(FragmentTiles(result.kernels), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, ThreadgroupTile, ::testing::Values("OpenCl", "OpenClAhead", "Cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ThreadgroupTile, ComputesWhatTheInterpreterDoes) {
  const std::vector<RunOptions> options = {{LikeAGpu(GetParam()), LayoutMode::kPlain, /*split=*/true}};
  for (const FusionResult& result : RunCases(Cases(), options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(ThreadgroupTiles(result.kernels), 1) << result.name;
  }
}

TEST(ThreadgroupTileSchedule, SlicesAreBroughtInAhead) {
  for (const char* device : {"OpenCl", "OpenClAhead", "Cuda"}) {
    for (const FusionResult& result : RunCases({Product("product", {64, 64}, {64, 64}, true)}, {{LikeAGpu(device)}})) {
      ASSERT_EQ(ThreadgroupTiles(result.kernels), 1);
      const auto* tile = result.kernels[0].kernel.phases[0].steps[0].As<movement::ThreadgroupTile>();
      ASSERT_NE(tile, nullptr);
      EXPECT_EQ(tile->buffers, device == std::string("OpenCl") ? 1 : 2);
    }
  }
}

TEST_P(ThreadgroupTile, InBlocksAndWithAnyChoice) {
  std::vector<RunOptions> options = {{LikeAGpu(GetParam()), LayoutMode::kPlain},
                                     {LikeAGpu(GetParam()), LayoutMode::kBlocked},
                                     {LikeAGpu(GetParam()), LayoutMode::kAxisLast}};
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    options.push_back({LikeAGpu(GetParam()), LayoutMode::kChosen});
    options.back().choices_seed = seed;
  }
  EXPECT_EQ(Failures(Cases(), options), "");
}

TEST_P(ThreadgroupTile, KeepsProductsInATask) {
  std::vector<RunOptions> options = {{LikeAGpu(GetParam()), LayoutMode::kPlain}};
  options[0].device.launch_s = 1e-3;  // makes a separate phase cost more than anything else
  for (const FusionResult& result : RunCases(CasesInTasks(), options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u);
    const movement::Kernel& kernel = result.kernels[0].kernel;
    EXPECT_EQ(kernel.phases.size(), 1u) << result.name << movement::Print(kernel);
    EXPECT_GE(ThreadgroupTiles(result.kernels), 1) << result.name;
    EXPECT_LE(kernel.scratch_bytes, 48 << 10) << result.name;
  }
  options[0].device.launch_s = 2e-6;
  for (uint64_t seed = 1; seed <= 1; ++seed) {
    options[0].choices_seed = seed;
    EXPECT_EQ(Failures(CasesInTasks(), options), "");
  }
}

// Reductions of rows shared by fewer and by more than all work-items, and of several rows in one task.
std::vector<FusionCase> Reductions() {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{3, 300}, {200, 20}, {50, 64}, {1, 4096}, {5, 7}}) {
    G g;
    const V x = g.In(shape);
    g.Out(g.Op("Softmax", {x}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("softmax " + ShapeToString(shape), g));
    G h;
    const V y = h.In(shape);
    h.Out(h.Op("LayerNormalization", {y, h.Weight({shape[1]}), h.Weight({shape[1]})}));
    cases.push_back(FusionCase("layernorm " + ShapeToString(shape), h));
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceProd"}) {
      G r;
      r.Out(r.Op(op, {r.In(shape), r.Ints({1})}));
      cases.push_back(FusionCase(op + ShapeToString(shape), r));
    }
  }
  G g;
  g.Out(g.Op("ReduceMin", {g.In({70, 33}, DType::kI32), g.Ints({1})}));
  g.Out(g.Op("ReduceMean", {g.In({3, 16, 20}), g.Ints({1})}));
  g.Out(g.Op("ReduceL2", {g.In({6, 20, 5, 5}), g.Ints({2, 3})}));
  g.Out(g.Op("GlobalAveragePool", {g.In({1, 20, 7, 7})}));
  cases.push_back(FusionCase("others", g));
  return cases;
}

TEST_P(ThreadgroupTile, TeamsReduce) {
  std::vector<RunOptions> options;
  for (const LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
    options.push_back({LikeAGpu(GetParam()), mode});
    options.push_back({LikeAGpu(GetParam()), mode, /*split=*/true});
  }
  EXPECT_EQ(Failures(Reductions(), options), "");
}

// Subgroups are emulated to compare numbers; the text without the emulation goes to a compiler that has subgroups.
TEST(Teams, ReduceBySubgroups) {
  std::vector<RunOptions> options;
  for (const int group : {8, 32}) options.push_back({SubgroupTestDevice(4, group)});
  const Backend* backend = FindBackend("opencl");
  std::string text = backend->Preamble({}, options[0].device);
  const std::vector<FusionResult> results = RunCases(Reductions(), options);
  for (size_t r = 0; r < results.size(); ++r) {
    EXPECT_TRUE(results[r].status.ok()) << results[r].name << ": " << results[r].status;
    for (const FusionKernel& kernel : results[r].kernels) {
      const DeviceModel& device = options[r % options.size()].device;
      text += backend->PrintKernel(kernel.kernel, absl::StrCat("k", text.size()), device);
    }
  }
  EXPECT_THAT(text, ::testing::HasSubstr("REDUCE_TEAM(float, a"));
  const std::string clang = FindOnPath({"clang", "clang-14", "clang-15", "clang-16"});
  if (clang.empty()) GTEST_SKIP() << "the text is not compiled: no clang";
  const std::string file = absl::StrCat(::testing::TempDir(), "/subgroups_", getpid(), ".cl");
  std::ofstream(file) << text << "#ifndef SHUFFLE_XOR\n#error no subgroups\n#endif\n";
  for (const char* language : {"-cl-std=CL2.0", "-cl-std=CL3.0"}) {
    const auto compiled = RunChild({clang, "-x", "cl", "-target", "spir64", "-Xclang", "-finclude-default-header",
                                    "-fsyntax-only", "-w", language, file},
                                   {});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_TRUE(compiled->ok()) << language << ": " << compiled->stderr_text;
  }
  std::remove(file.c_str());
}

TEST(Teams, ReduceAsCuda) {
  std::vector<RunOptions> options;
  for (const int group : {8, 32, 128}) options.push_back({CudaTestDevice(group)});
  const absl::Status can_run = CanRun(options[0].device);
  if (!can_run.ok()) GTEST_SKIP() << "kernels are not run: " << can_run.message();
  EXPECT_EQ(Failures(Reductions(), options), "");
}

TEST(ThreadgroupTileInTasks, AsCuda) {
  RunOptions options{CudaTestDevice(64)};
  const absl::Status can_run = CanRun(options.device);
  if (!can_run.ok()) GTEST_SKIP() << "kernels are not run: " << can_run.message();
  options.device.launch_s = 1e-3;
  EXPECT_EQ(Failures(CasesInTasks(), {options}), "");
}

// K-blocking: parts of a reduction side by side, where the results alone would leave units idle.
TEST_P(ThreadgroupTile, FewResultsOfALongReduction) {
  std::vector<FusionCase> cases = {
      Product("weights", {16, 2048}, {2048, 24}, true),
      Product("odd sides, computed", {13, 2048}, {2048, 19}, false),
      Convolution("3x3", {1, 512, 4, 5}, {24, 512, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}),
  };
  {
    G g;
    const V y = g.Op("Add", {g.Op("MatMul", {g.In({16, 2048}), g.Weight({2048, 24})}), g.In({16, 24})});
    g.Out(g.Op("Relu", {y}));
    cases.push_back(FusionCase("epilogue", g));
  }
  RunOptions options{LikeAGpu(GetParam())};
  options.device.parallel_units = 64;
  options.device.fma_f32_flops_per_s = 1e10;
  for (const FusionResult& result : RunCases(cases, {options})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u);
    EXPECT_EQ(result.kernels[0].kernel.phases.size(), 2u) << result.name;
    EXPECT_EQ(ThreadgroupTiles(result.kernels), 1) << result.name;
  }
}

// Persistent kernels: phases in one launch, between which work-groups wait for each other's tasks. On OpenCL a
// work-group has one work-item.
class PersistentKernels : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, PersistentKernels, ::testing::Values("OpenCl", "Cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(PersistentKernels, PassPhasesOn) {
  const bool cuda = std::string(GetParam()) == "Cuda";
  int persistent = 0;
  for (const int group : cuda ? std::vector<int>{8, 32} : std::vector<int>{1}) {
    RunOptions options;
    options.device = cuda ? CudaTestDevice(group) : OpenClTestDevice(16, group);
    options.device.memory[0].size_bytes = 4 << 10;  // too small for a task to keep rows between two products
    options.device.persistent_groups = 2;
    options.device.launch_s = 1e-3;
    const absl::Status can_run = CanRun(options.device);
    if (!can_run.ok()) GTEST_SKIP() << "kernels are not run: " << can_run.message();
    for (const FusionResult& result : RunCases(CasesInTasks(), {options})) {
      EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
      ASSERT_EQ(result.kernels.size(), 1u);
      const movement::Kernel& kernel = result.kernels[0].kernel;
      EXPECT_EQ(kernel.persistent, kernel.phases.size() > 1) << result.name;
      persistent += kernel.persistent;
    }
  }
  EXPECT_GE(persistent, cuda ? 8 : 4);
}

TEST(ThreadgroupTileSchedule, NoPersistentKernelWhereNothingIsKnownOfTheDevice) {
  RunOptions options{LikeAGpu("OpenCl")};
  options.device.memory[0].size_bytes = 4 << 10;
  for (const FusionResult& result : RunCases({Attention("attention", 64, 64, 2, 32)}, {options})) {
    ASSERT_EQ(result.kernels.size(), 1u);
    EXPECT_GT(result.kernels[0].kernel.phases.size(), 1u);
    EXPECT_FALSE(result.kernels[0].kernel.persistent);
    EXPECT_THAT(result.kernels[0].reason, ::testing::HasSubstr("cannot wait for each other"));
  }
}

TEST(ThreadgroupTileSchedule, WhatIsNoProductOfTwoSidesIsNone) {
  std::vector<FusionCase> cases = {
      Convolution("depthwise", {1, 24, 9, 8}, {24, 1, 3, 3}, {{"group", int64_t{24}}}),
      Product("one row", {1, 64}, {64, 100}, true),
  };
  G g;
  g.Out(g.Op("ReduceMax", {g.In({30, 40}), g.Ints({1})}));
  cases.push_back(FusionCase("maximum", g));
  for (const FusionResult& result : RunCases(cases, {{LikeAGpu("OpenCl")}})) {
    EXPECT_EQ(ThreadgroupTiles(result.kernels), 0) << result.name;
  }
}

// Processors have neither barriers nor shared memory, so no threadgroup tile.
TEST(ThreadgroupTileSchedule, ProcessorsHaveNone) {
  for (const FusionResult& result : RunCases({Product("product", {64, 64}, {64, 64}, true)}, {{Avx2Device()}})) {
    EXPECT_EQ(ThreadgroupTiles(result.kernels), 0);
  }
}

}  // namespace
}  // namespace fusion::testing
