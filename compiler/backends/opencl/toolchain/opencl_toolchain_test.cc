#include "compiler/backends/opencl/toolchain/opencl_toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"

namespace fusion {
namespace {

constexpr char kTwice[] = "__kernel void twice(__global float* x, long o) { x[get_group_id(0)] *= 2; }\n";

TEST(OpenClToolchain, TextAloneIsAFile) {
  const auto toolchain = MakeOpenClToolchain({/*build=*/false});
  EXPECT_EQ(toolchain->version(), "OpenCL C text");
  const auto files = toolchain->Build({{"opencl", "", "any text"}}, nullptr);
  ASSERT_TRUE(files.ok());
  const auto file = opencl::ReadProgramFile((*files)[0]);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->source, "any text");
  EXPECT_EQ(file->binary, "");
}

TEST(OpenClToolchain, TheDriversBinaryGoesAlongAndLoads) {
  const auto context = opencl::Context::Create();
  if (!context.ok()) GTEST_SKIP() << context.status();
  const auto files = MakeOpenClToolchain()->Build({{"opencl", "", kTwice}}, nullptr);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto file = opencl::ReadProgramFile((*files)[0]);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->source, kTwice);
  EXPECT_EQ(file->device, (*context)->device().name);
  const auto program = (*context)->BuildBinary(file->binary, "twice");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE((*context)->MakeKernel(*program, "twice").ok());
}

TEST(OpenClToolchain, TheCompilersLogIsInTheError) {
  if (const auto devices = opencl::FindDevices(); !devices.ok()) GTEST_SKIP() << devices.status();
  const auto files = MakeOpenClToolchain()->Build({{"opencl", "", "__kernel void f() { undeclared; }"}}, nullptr);
  EXPECT_EQ(files.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(files.status().message()), testing::HasSubstr("undeclared"));
}

TEST(OpenClToolchain, ADamagedFileIsRefused) {
  const std::string whole = opencl::WriteProgramFile({"device", "driver", "text", "binary"});
  ASSERT_TRUE(opencl::ReadProgramFile(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(opencl::ReadProgramFile(absl::string_view(whole).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(opencl::ReadProgramFile(whole + "x").ok());
}

}  // namespace
}  // namespace fusion
