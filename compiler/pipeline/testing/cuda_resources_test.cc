// Checks the resources that ptxas gives the kernels of products: none may spill registers to memory. Needs NVRTC but no
// GPU.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/cuda/cubin_resources.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/status_macros.h"

namespace fusion::testing {
namespace {

using Ints = std::vector<int64_t>;

GraphMaker Convolution(const Shape& x, const Shape& w, Ints pads, Ints strides) {
  GraphMaker g;
  g.Out(g.Op("Conv", {g.In(x), g.Weight(w), g.Weight({w[0]})},
             {{"pads", std::move(pads)}, {"strides", std::move(strides)}}));
  return g;
}

// Builds the graph as one kernel, by a toolchain with NVRTC.
struct Built {
  FusionKernel kernel;
  KernelResources resources;  // the largest of all functions
};

absl::StatusOr<Built> BuildOneKernel(const ecg::Graph& graph, const FusionBlock& fusion_block, const DeviceModel& device,
                                     LocalToolchain* nvrtc) {
  Built built;
  ASSIGN_OR_RETURN(built.kernel, MakeFusionKernel(graph, fusion_block, LiveOutOf(graph, fusion_block), {}, device, {}));
  const Backend* backend = FindBackend("cuda");
  const std::string text = backend->Preamble({}, device) + backend->PrintKernel(built.kernel.kernel, "k", device);
  ASSIGN_OR_RETURN(const std::vector<std::string> cubins, nvrtc->Build({{"cuda", device.march, text}}, nullptr));
  ASSIGN_OR_RETURN(const ResourcesBySymbol functions, ResourcesOfCubin(cubins[0]));
  for (const auto& [symbol, takes] : functions) {
    built.resources.registers = std::max(built.resources.registers, takes.registers);
    built.resources.frame_bytes = std::max(built.resources.frame_bytes, takes.frame_bytes);
  }
  return built;
}

// Windows of windows in one task: the halo lies in shared memory.
TEST(CudaResources, HalosAreNotSpilled) {
  const auto nvrtc = MakeNvrtcToolchain();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const auto conv = [](GraphMaker* g, ecg::ValueId x, const Shape& w, int64_t stride, int64_t dilation, int64_t group) {
    return g->Op("Conv", {x, g->Weight(w), g->Weight({w[0]})},
                 {{"pads", Ints(4, dilation)}, {"strides", Ints{stride, stride}},
                  {"dilations", Ints{dilation, dilation}}, {"group", group}});
  };
  std::vector<GraphMaker> graphs(4);
  for (int64_t g = 0; g < 4; ++g) {
    GraphMaker& graph = graphs[static_cast<size_t>(g)];
    const bool depthwise = g == 3;
    const int64_t side = g == 2 ? 14 : 56;  // rows of the dilated window's operand fit the shared memory
    const ecg::ValueId first =
        graph.Op("Relu", {conv(&graph, graph.In({1, 32, side, side}), {32, depthwise ? 1 : 32, 3, 3}, 1, 1,
                               depthwise ? 32 : 1)});
    graph.Out(conv(&graph, first, {32, 32, 3, 3}, g == 1 ? 2 : 1, g == 2 ? 3 : 1, 1));
  }
  for (const char* target : {"cuda:sm_80", "cuda:sm_90"}) {
    const absl::StatusOr<DeviceModel> device = StoredDevice(target);
    ASSERT_TRUE(device.ok()) << device.status();
    for (size_t g = 0; g < graphs.size(); ++g) {
      FusionBlock fusion_block({0, 1, 2});
      fusion_block.directives = {{ecg::kNone, "form", "halos"}};
      const absl::StatusOr<Built> built = BuildOneKernel(graphs[g].graph(), fusion_block, *device, nvrtc->get());
      ASSERT_TRUE(built.ok()) << target << " " << g << ": " << built.status();
      const std::string text = absl::StrCat(target, " ", g, "\n", movement::Print(built->kernel.kernel));
      EXPECT_EQ(built->kernel.kernel.phases.size(), 1) << text;
      EXPECT_GT(built->kernel.kernel.phases[0].tasks(), 1) << text;
      EXPECT_GT(built->resources.registers, 16) << text;
      EXPECT_EQ(built->resources.frame_bytes, 0) << text;
    }
  }
}

TEST(CudaResources, NothingIsSpilled) {
  const auto nvrtc = MakeNvrtcToolchain();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  std::vector<GraphMaker> graphs = {
      Convolution({1, 256, 16, 16}, {512, 256, 3, 3}, {1, 1, 1, 1}, {1, 1}),
      Convolution({1, 160, 2, 7, 7}, {320, 160, 1, 3, 3}, {0, 1, 1, 0, 1, 1}, {1, 1, 1}),
      Convolution({1, 256, 10, 10}, {512, 256, 3, 3}, {1, 1, 1, 1}, {2, 2}),
      Convolution({1, 64, 112, 112}, {64, 64, 3, 3}, {1, 1, 1, 1}, {1, 1}),
  };
  graphs.emplace_back().Out(
      graphs.back().Op("MatMul", {graphs.back().In({512, 768}), graphs.back().Weight({768, 3072})}));
  {
    GraphMaker& halves = graphs.emplace_back();
    halves.Out(halves.Op("MatMul", {halves.In({512, 768}, DType::kF16), halves.Weight({768, 3072}, DType::kF16)}));
  }
  graphs.emplace_back().Out(  // one row in several phases of a persistent kernel
      graphs.back().Op("Softmax", {graphs.back().In({1, 65536})}, {{"axis", int64_t{-1}}}));
  for (const char* target : {"cuda:sm_80", "cuda:sm_90"}) {
    const absl::StatusOr<DeviceModel> device = StoredDevice(target);
    ASSERT_TRUE(device.ok()) << device.status();
    for (size_t g = 0; g < graphs.size(); ++g) {
      const ecg::Graph& graph = graphs[g].graph();
      DeviceModel own = *device;
      if (g + 1 == graphs.size()) own.barrier_s = own.launch_s / 2;
      const absl::StatusOr<Built> built = BuildOneKernel(graph, {0}, own, nvrtc->get());
      ASSERT_TRUE(built.ok()) << target << " " << g << ": " << built.status();
      const movement::Kernel& kernel = built->kernel.kernel;
      EXPECT_GT(built->resources.registers, 16) << target << " " << g;
      EXPECT_LT(built->resources.registers, 255) << target << " " << g << "\n" << movement::Print(kernel);
      EXPECT_EQ(kernel.persistent, g + 1 == graphs.size()) << target << " " << g;
      EXPECT_EQ(built->resources.frame_bytes, 0) << target << " " << g << "\n" << movement::Print(kernel);
    }
  }
}

}  // namespace
}  // namespace fusion::testing
