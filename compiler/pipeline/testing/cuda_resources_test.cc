// Checks the resources that ptxas gives the kernels of products: none may spill registers to memory. Needs NVRTC but no
// GPU.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using Ints = std::vector<int64_t>;

struct Resources {
  uint32_t registers = 0, frame_bytes = 0;  // of a thread; spilled registers lie in the frame
};

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Reads a cubin with one kernel. The attributes EIATTR_REGCOUNT and EIATTR_FRAME_SIZE are in its section .nv.info, each
// as a format, a number, a size of 8, the symbol and the value. Returns the largest values, because functions that the
// kernel calls count too.
Resources ResourcesOf(const std::string& cubin) {
  constexpr uint8_t kSizedValue = 0x04, kFrameSize = 0x11, kRegisterCount = 0x2f;
  Resources resources;
  const auto head = At<Elf64_Ehdr>(cubin, 0);
  const auto section = [&](size_t s) { return At<Elf64_Shdr>(cubin, head.e_shoff + s * sizeof(Elf64_Shdr)); };
  for (size_t s = 0; s < head.e_shnum; ++s) {
    const Elf64_Shdr info = section(s);
    if (strcmp(cubin.data() + section(head.e_shstrndx).sh_offset + info.sh_name, ".nv.info") != 0) continue;
    for (size_t at = info.sh_offset; at + 4 <= info.sh_offset + info.sh_size;) {
      const auto format = At<uint8_t>(cubin, at), attribute = At<uint8_t>(cubin, at + 1);
      const size_t size = format == kSizedValue ? At<uint16_t>(cubin, at + 2) : 0;
      if (size == 8) {
        const auto value = At<uint32_t>(cubin, at + 8);
        if (attribute == kRegisterCount) resources.registers = std::max(resources.registers, value);
        if (attribute == kFrameSize) resources.frame_bytes = std::max(resources.frame_bytes, value);
      }
      at += 4 + size;
    }
  }
  return resources;
}

GraphMaker Convolution(const Shape& x, const Shape& w, Ints pads, Ints strides) {
  GraphMaker g;
  g.Out(g.Op("Conv", {g.In(x), g.Weight(w), g.Weight({w[0]})},
             {{"pads", std::move(pads)}, {"strides", std::move(strides)}}));
  return g;
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
      const auto kernel = MakeFusionKernel(graph, {0}, LiveOutOf(graph, {0}), {}, *device);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const Backend* backend = FindBackend("cuda");
      const std::string text = backend->Preamble({}, *device) + backend->PrintKernel(kernel->kernel, "k", *device);
      const auto cubins = (*nvrtc)->Build({{"cuda", device->march, text}}, nullptr);
      ASSERT_TRUE(cubins.ok()) << cubins.status();
      const Resources resources = ResourcesOf((*cubins)[0]);
      EXPECT_GT(resources.registers, 16) << target << " " << g;
      EXPECT_LT(resources.registers, 255) << target << " " << g << "\n" << movement::Print(kernel->kernel);
      EXPECT_EQ(kernel->kernel.persistent, g + 1 == graphs.size()) << target << " " << g;
      EXPECT_EQ(resources.frame_bytes, 0) << target << " " << g << "\n" << movement::Print(kernel->kernel);
    }
  }
}

}  // namespace
}  // namespace fusion::testing
