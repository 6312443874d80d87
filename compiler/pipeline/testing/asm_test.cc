// Checks the hot loops of the standard tiles, compiled with the production flags: whole vectors, fused multiply-adds,
// and no accumulator on the stack. One spill in the loop costs more than the scheduler could ever gain.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/prelude.h"
#include "compiler/backends/cpu/print_kernel.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using Ints = std::vector<int64_t>;

// Returns the text's assembly, each line without indentation.
std::vector<std::string> Assemble(const std::string& text, const std::string& march) {
  char folder[] = "/tmp/fusion_asm_test_XXXXXX";
  EXPECT_NE(mkdtemp(folder), nullptr);
  std::ofstream(absl::StrCat(folder, "/kernel.cc")) << text;
  std::vector<std::string> command = {FindOnPath({"clang++", "clang++-19", "clang++-16", "clang++-15", "clang++-14"})};
  for (const std::string& flag : ClangToolchain::Flags(march)) command.push_back(flag);
  for (const char* arg : {"-S", "kernel.cc", "-o", "kernel.s"}) command.push_back(arg);
  ChildOptions options;
  options.working_directory = folder;
  const absl::StatusOr<ChildResult> result = RunChild(command, options);
  EXPECT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->stderr_text : result.status().ToString());
  std::vector<std::string> lines;
  std::ifstream file(absl::StrCat(folder, "/kernel.s"));
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string::npos && line[begin] != '#') lines.push_back(line.substr(begin));
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return lines;
}

int Count(const std::vector<std::string>& lines, const std::string& a, const std::string& b = "") {
  int count = 0;
  for (const std::string& line : lines) count += absl::StrContains(line, a) && absl::StrContains(line, b);
  return count;
}

// Returns the innermost loop with the most multiply-adds.
std::vector<std::string> HotLoop(const std::vector<std::string>& lines, const std::string& instruction) {
  std::map<std::string, size_t> labels;
  std::vector<std::string> best;
  size_t last_begin = 0;  // of the last loop; a loop that begins before it and ends after it is not innermost
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i][0] == '.' && absl::StrContains(lines[i], ":")) labels[lines[i].substr(0, lines[i].find(':'))] = i;
    if (lines[i][0] != 'j') continue;
    const size_t at = lines[i].find(".L");
    if (at == std::string::npos) continue;
    auto it = labels.find(lines[i].substr(at));
    if (it == labels.end() || it->second < last_begin) continue;
    last_begin = it->second;
    std::vector<std::string> loop(lines.begin() + static_cast<int64_t>(it->second),
                                  lines.begin() + static_cast<int64_t>(i) + 1);
    if (Count(loop, instruction) > Count(best, instruction)) best = loop;
  }
  return best;
}

void CheckHotLoop(const std::string& name, const GraphMaker& g, LayoutMode layouts,
                  const std::vector<DeviceModel>& devices = {Avx512Device(), Avx2Device()},
                  const std::string& instruction = "vfmadd") {
  for (const DeviceModel& device : devices) {
    ValueLayouts value_layouts;
    if (layouts == LayoutMode::kBlocked) {
      for (size_t v = 0; v < g.graph().values().size(); ++v) {
        if (!g.graph().values()[v].constant) value_layouts[static_cast<int>(v)] = Layout{1, device.vector_bytes / 4};
      }
    }
    const absl::StatusOr<FusionKernel> kernel =
        MakeFusionKernel(g.graph(), {0}, LiveOutOf(g.graph(), {0}), value_layouts, device);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const movement::Step& step = kernel->kernel.phases[0].steps.back();
    const auto* tile = step.As<movement::RegisterTile>();
    ASSERT_NE(tile, nullptr) << movement::Print(kernel->kernel);
    const std::string shape =
        absl::StrCat(name, " ", device.isa, ": ", tile->row_count, "x", tile->outer_count, " unroll ", tile->unroll);
    const std::string text = cpu::Prelude(device.vector_bytes / 4) + cpu::PrintKernel(kernel->kernel, "k", device);
    const std::vector<std::string> loop = HotLoop(Assemble(text, device.march), instruction);
    std::string body;
    for (const std::string& line : loop) body += line + "\n";
    const std::string reg = device.vector_bytes == 64 ? "%zmm" : "%ymm";
    const int fma = Count(loop, instruction, reg);
    printf("%s: %zu instructions, %d fma, %d on the stack\n", shape.c_str(), loop.size(), fma, Count(loop, "(%rsp"));
    EXPECT_GE(fma, tile->row_count * tile->outer_count) << shape << "\n" << body;
    EXPECT_EQ(Count(loop, instruction), fma) << "narrower vectors: " << shape << "\n" << body;
    EXPECT_EQ(Count(loop, "(%rsp"), 0) << shape << "\n" << body;
  }
}

TEST(HotLoop, MatrixProduct) {
  GraphMaker g;
  g.Out(g.Op("MatMul", {g.In({128, 768}), g.Weight({768, 768})}));
  CheckHotLoop("product 128x768x768", g, LayoutMode::kPlain);
}

TEST(HotLoop, ProductOfBytes) {
  for (DType dtype : {DType::kU8, DType::kI8}) {
    GraphMaker g;
    g.Out(g.Op("MatMulInteger", {g.In({128, 768}, dtype), g.Weight({768, 768}, DType::kI8)}));
    CheckHotLoop(absl::StrCat("product of ", DTypeName(dtype), " 128x768x768"), g, LayoutMode::kPlain, {VnniDevice()},
                 "vpdpbusd");
  }
}

TEST(HotLoop, ConvolutionOfBytes3x3) {
  GraphMaker g;
  g.Out(g.Op("ConvInteger", {g.In({1, 64, 56, 56}, DType::kU8), g.Weight({64, 64, 3, 3}, DType::kI8)},
             {{"pads", Ints{1, 1, 1, 1}}}));
  CheckHotLoop("convolution of bytes 3x3 64@56", g, LayoutMode::kBlocked, {VnniDevice()}, "vpdpbusd");
}

TEST(HotLoop, Convolution3x3) {
  GraphMaker g;
  g.Out(g.Op("Conv", {g.In({1, 64, 56, 56}), g.Weight({64, 64, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}}));
  CheckHotLoop("convolution 3x3 64@56", g, LayoutMode::kBlocked);
}

TEST(HotLoop, Convolution1x1) {
  GraphMaker g;
  g.Out(g.Op("Conv", {g.In({1, 64, 56, 56}), g.Weight({256, 64, 1, 1})}));
  CheckHotLoop("convolution 1x1 64-256@56", g, LayoutMode::kBlocked);
}

TEST(HotLoop, Depthwise) {
  GraphMaker g;
  g.Out(g.Op("Conv", {g.In({1, 144, 56, 56}), g.Weight({144, 1, 3, 3})},
             {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{144}}}));
  CheckHotLoop("depthwise 3x3 144@56", g, LayoutMode::kBlocked);
}

}  // namespace
}  // namespace fusion::testing
