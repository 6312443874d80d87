// Names in a model are data: they must reach neither generated text nor a shell, and the bundle keeps them unchanged.
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/onnx/model_text.h"
#include "compiler/pipeline/compile.h"
#include "runtime/loader/session.h"

namespace fusion {
namespace {

const char kHostile[] = "*/ system(\"touch hacked\"); #include \"/etc/passwd\"\n$(reboot) '; DROP TABLE jobs; --";

TEST(HostileNames, StayData) {
  const std::string name = absl::CHexEscape(kHostile);
  const onnx_import::TemporaryFile model(onnx_import::ModelBytes(
      onnx_import::TensorInfo("input", name + "in", {"8"}) + onnx_import::TensorInfo("output", name + "out", {}) +
      onnx_import::NodeText("Abs", {name + "in"}, {name + "mid"}, "name: '" + name + "'") +
      onnx_import::NodeText("Neg", {name + "mid"}, {name + "out"})));
  auto toolchain = ClangToolchain::Create();
  if (!toolchain.ok()) GTEST_SKIP() << toolchain.status();
  DeviceModel device;
  device.isa = "avx2";
  device.march = "x86-64-v3";
  device.vector_bytes = 32;
  device.vector_registers = 16;
  device.memory = {{"L1", 32 << 10, 2e11, false}, {"DRAM", 0, 1e10, true}};
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  context.toolchain = toolchain->get();
  ModelFiles files;
  files.model_path = model.path();
  files.model_name = kHostile;
  const onnx_import::TemporaryFile bundle_file("");
  for (const char* planner : {"none", "dnnfusion"}) {
    CompileOptions options;
    options.planner = planner;
    const auto compiled = Compile(files, options, context, bundle_file.path());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    auto bundle = Bundle::Open(bundle_file.path());
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_EQ((*bundle)->manifest().inputs[0].name, std::string(kHostile) + "in");
    EXPECT_EQ((*bundle)->manifest().outputs[0].name, std::string(kHostile) + "out");
    auto source = (*bundle)->reader()->Entry("src/kernels_0.cc");
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(std::string(*source).find("system"), std::string::npos);
    auto session = Session::Create(*bundle, 1);
    ASSERT_TRUE(session.ok()) << session.status();
    auto outputs = (*session)->Run({Tensor::From<double>(DType::kF32, {8}, {1, -2, 3, -4, 5, -6, 7, -8})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].GetDouble(1), -2);
  }
}

}  // namespace
}  // namespace fusion
