// Runs the tiny bundle on an OpenCL device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"
#include "runtime/loader/session.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

std::string TinyText() {
  const std::string text = R"(
#define F(p, o) ((__global float*)((__global char*)p + o))
__kernel __attribute__((reqd_work_group_size(2, 1, 1)))
void k0_a(__global float* x, long ox, __global float* w, long ow, __global float* t, long ot, __global float* b, long ob,
          __global float* u, long ou) {
  __local float row[8];
  const long r = get_group_id(0);
  for (int c = get_local_id(0); c < 8; c += 2) row[c] = F(x, ox)[r * 8 + c] * F(w, ow)[c];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = get_local_id(0); c < 8; c += 2) F(t, ot)[r * 8 + (c ^ 1)] = row[c ^ 1];
}
__kernel void k0_b(__global float* x, long ox, __global float* w, long ow, __global float* t, long ot,
                   __global float* b, long ob, __global float* u, long ou) {
  const long r = get_group_id(0);
  for (int c = 0; c < 8; ++c) F(u, ou)[(63 - r) * 8 + c] = F(t, ot)[(63 - r) * 8 + c] + F(b, ob)[c];
}
__kernel void k1(__global float* u, long ou, __global float* y, long oy) {
  const long r = get_group_id(0);
  for (int c = 0; c < 8; ++c) F(y, oy)[r * 8 + c] = fmax(F(u, ou)[r * 8 + c], 0.f);
}
)";
  return text;
}

// Parameter: whether inputs and outputs are copied, as on a GPU.
class OpenClSession : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) setenv("FUSION_OPENCL_COPY", "1", 1);
    if (const auto devices = opencl::FindDevices(); !devices.ok()) GTEST_SKIP() << devices.status();
    path_ = ::testing::TempDir() + "/opencl_session_test_" + std::to_string(getpid()) + ".fusion";
  }
  void TearDown() override {
    unsetenv("FUSION_OPENCL_COPY");
    std::filesystem::remove(path_);
  }

  absl::StatusOr<std::unique_ptr<Session>> Load(const opencl::ProgramFile& file, Manifest manifest = TinyManifest(),
                                                const std::map<std::string, std::string>& more = {}) {
    manifest.target = "opencl";
    manifest.isa = "opencl1.2";
    const absl::Status written = WriteTinyBundle(path_, opencl::WriteProgramFile(file), manifest, more);
    if (!written.ok()) return written;
    const auto bundle = Bundle::Open(path_);
    if (!bundle.ok()) return bundle.status();
    return Session::Create(*bundle, 1);
  }

  static void ExpectRight(const Tensor& x, const std::vector<Tensor>& outputs) {
    ASSERT_EQ(outputs.size(), 2u);
    for (int64_t i = 0; i < 512; ++i) {
      EXPECT_EQ(outputs[0].GetDouble(i), std::max(0.0f, x.as<float>()[i] * static_cast<float>(i % 8 + 1) - 1.0f));
    }
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(outputs[1].GetDouble(i), i + 1);
  }

  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(, OpenClSession, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Copying" : "InPlace"; });

TEST_P(OpenClSession, RunsAndTimesEachLaunch) {
  const std::string text = TinyText();
  const auto session = Load({"", "", text, ""});
  ASSERT_TRUE(session.ok()) << session.status();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
    std::vector<int64_t> latencies_ns;
    const auto outputs = (*session)->RunTimed(inputs, &latencies_ns);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ExpectRight(inputs[0], *outputs);
    ASSERT_EQ(latencies_ns.size(), 2u);
    EXPECT_GT(std::min(latencies_ns[0], latencies_ns[1]), 0);
  }
}

// The first kernel reads an input and constants; the second lies between the device and an output.
TEST_P(OpenClSession, AKernelRunsOnTheHost) {
  const std::string text = TinyText();
  const auto code = BuildSharedObject(kTinyKernelSource);
  ASSERT_TRUE(code.ok()) << code.status();
  for (const int on_host : {0, 1}) {
    Manifest manifest = TinyManifest();
    manifest.format = 4;
    manifest.host_isa = manifest.isa;
    manifest.kernels[on_host].file = "kernels/host.so";
    manifest.kernels[on_host].on_host = true;
    manifest.kernels[on_host].writes = on_host == 0 ? std::vector<int>{2, 4} : std::vector<int>{1};
    const auto session = Load({"", "", text, ""}, manifest, {{"kernels/host.so", *code}});
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      std::vector<int64_t> latencies_ns;
      const auto outputs = (*session)->RunTimed(inputs, seed == 0 ? nullptr : &latencies_ns);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
      if (seed > 0) EXPECT_GT(std::min(latencies_ns[0], latencies_ns[1]), 0);
    }
    manifest.host_isa = "neon2";
    EXPECT_THAT(std::string(Load({"", "", text, ""}, manifest, {{"kernels/host.so", *code}}).status().message()),
                HasSubstr("need 'neon2'"));
    manifest.format = 3;
    EXPECT_THAT(std::string(Load({"", "", text, ""}, manifest, {{"kernels/host.so", *code}}).status().message()),
                HasSubstr("format 4"));
  }
}

TEST(OpenClLanguage, IsALaterOneForSubgroups) {
  EXPECT_EQ(opencl::LanguageStandard("OpenCL 3.0 PoCL", "cl_khr_fp64"), "CL1.2");
  EXPECT_EQ(opencl::LanguageStandard("OpenCL 3.0 NEO", "cl_khr_fp64 cl_khr_subgroups cl_intel_subgroups"), "CL3.0");
  EXPECT_EQ(opencl::LanguageStandard("OpenCL 2.0 AMD-APP", "cl_khr_subgroups"), "CL2.0");
  EXPECT_EQ(opencl::LanguageStandard("OpenCL 1.2", "cl_khr_subgroups"), "CL1.2");
}

// One persistent kernel does the work of two launches; its work-groups wait for rows that others computed.
TEST_P(OpenClSession, GroupsStay) {
  const std::string text = TinyText() + R"(
__kernel void stay(__global float* x, long ox, __global float* w, long ow, __global float* t, long ot,
                   __global float* b, long ob, __global float* u, long ou, __global int* tickets) {
  const int groups = get_num_groups(0);
  for (int r; (r = atomic_inc(tickets)) < 64; atomic_inc(tickets + 1))
    for (int c = 0; c < 8; ++c) F(t, ot)[r * 8 + c] = F(x, ox)[r * 8 + c] * F(w, ow)[c];
  while (atomic_or(tickets + 1, 0) < 64) {}
  for (int r = get_group_id(0); r < 64; r += groups)
    for (int c = 0; c < 8; ++c) F(u, ou)[(63 - r) * 8 + c] = F(t, ot)[(63 - r) * 8 + c] + F(b, ob)[c];
  if (atomic_inc(tickets) == 64 + 2 * groups - 1) { atomic_xchg(tickets, 0); atomic_xchg(tickets + 1, 0); }
}
)";
  Manifest manifest = TinyManifest();
  manifest.format = 5;
  manifest.kernels[0].persistent = true;
  manifest.kernels[0].phases = {{"stay", 64}};
  const auto session = Load({"", "", text, ""}, manifest);
  ASSERT_TRUE(session.ok()) << session.status();
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
    const auto outputs = (*session)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ExpectRight(inputs[0], *outputs);
  }
}

// The second of three launches repeats, two rows an iteration: 32 launches, or one that is told where its buffers lie in
// each iteration.
TEST_P(OpenClSession, IterationsAreLaunchesOrInsideOfOne) {
  const std::string text = TinyText() + R"(
__kernel void one_turn(__global float* t, long ot, __global float* b, long ob, __global float* u, long ou) {
  const long r = get_group_id(0);
  for (int c = 0; c < 8; ++c) F(u, ou)[r * 8 + c] = F(t, ot)[r * 8 + c] + F(b, ob)[c];
}
__kernel void turns(__global float* t, __global const long* ot, __global float* b, long ob, __global float* u,
                    __global const long* ou, __global int* tickets) {
  for (int i = 0; i < 32; ++i)
    for (int r = get_group_id(0); r < 2; r += get_num_groups(0))
      for (int c = 0; c < 8; ++c) F(u, ou[i])[r * 8 + c] = F(t, ot[i])[r * 8 + c] + F(b, ob)[c];
}
)";
  for (const bool in_launch : {false, true}) {
    const auto session = Load({"", "", text, ""}, TinyRepeatingManifest(in_launch));
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      const auto outputs = (*session)->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
      std::vector<int64_t> latencies_ns;
      const auto timed = (*session)->RunTimed(inputs, &latencies_ns);
      ASSERT_TRUE(timed.ok()) << timed.status();
      ExpectRight(inputs[0], *timed);
      ASSERT_EQ(latencies_ns.size(), 3u) << "a launch that repeats has one latency";
    }
  }
}

TEST_P(OpenClSession, BuffersComeInATable) {
  const std::string text = absl::StrReplaceAll(
      TinyText(), {{"k1(__global float* u, long ou, __global float* y, long oy) {",
                    "k1(__global char* memory, __global char* weights, __global const long* places) {\n"
                    "  __global char *u = (places[0] ? weights : memory), *y = (places[2] ? weights : memory);\n"
                    "  const long ou = places[1], oy = places[3];"}});
  const auto session = Load({"", "", text, ""});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), 1);
  const auto outputs = (*session)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectRight(inputs[0], *outputs);
}

TEST_P(OpenClSession, InItsOwnMemory) {
  const std::string text = TinyText();
  const auto session = Load({"", "", text, ""});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), 1);
  std::memcpy((*session)->input(0), inputs[0].data(), inputs[0].size_bytes());
  std::vector<void*> outputs = {const_cast<void*>((*session)->output(0)), const_cast<void*>((*session)->output(1))};
  ASSERT_TRUE((*session)->RunRaw({(*session)->input(0)}, outputs).ok());
  const auto* y = static_cast<const float*>(outputs[0]);
  for (int i = 0; i < 512; ++i) {
    EXPECT_EQ(y[i], std::max(0.0f, inputs[0].as<float>()[i] * static_cast<float>(i % 8 + 1) - 1.0f));
  }
}

TEST_P(OpenClSession, AnotherDriversBinaryIsNotTouched) {
  const std::string text = TinyText();
  const auto session = Load({"some GPU", "some driver", text, "not a binary of this driver"});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), 1);
  const auto outputs = (*session)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectRight(inputs[0], *outputs);
}

TEST_P(OpenClSession, ItsOwnDriversBinaryRuns) {
  const auto context = opencl::Context::Create();
  ASSERT_TRUE(context.ok());
  const auto program = (*context)->BuildSource(TinyText(), "tiny");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto binary = (*context)->BinaryOf(*program);
  ASSERT_TRUE(binary.ok());
  // The text does not build, so the binary must be what runs.
  const auto session = Load({(*context)->device().name, (*context)->device().driver, "undeclared", *binary});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), 1);
  const auto outputs = (*session)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectRight(inputs[0], *outputs);
}

TEST_P(OpenClSession, WhatDoesNotBuildSaysWhy) {
  EXPECT_THAT(std::string(Load({"", "", "__kernel void k1() { undeclared; }", ""}).status().message()),
              HasSubstr("undeclared"));
  const std::string text = absl::StrReplaceAll(TinyText(), {{"void k1(", "void k2("}});
  EXPECT_THAT(std::string(Load({"", "", text, ""}).status().message()), HasSubstr("'k1'"));
}

TEST_P(OpenClSession, ALocalMemoryThatIsNotThereIsNamed) {
  const auto context = opencl::Context::Create();
  ASSERT_TRUE(context.ok());
  const std::string floats = std::to_string((*context)->device().local_bytes / 4 + 1);
  const std::string text = absl::StrReplaceAll(TinyText(), {{"float row[8]", "float row[" + floats + "]"}});
  const absl::Status status = Load({"", "", text, ""}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("local memory"));
}

TEST_P(OpenClSession, OutputsHaveExtents) {
  const std::string text = TinyText();
  const auto session = Load({"", "", text, ""}, TinyDynamicManifest());
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run(RandomInputs((*session)->manifest(), 1));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].shape(), (Shape{64, 3}));
}

}  // namespace
}  // namespace fusion
