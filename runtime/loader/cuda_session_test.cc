// Runs the tiny bundle on CUDA, with a driver that runs on the CPU (runtime/devices/cuda/testing).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/devices/cuda/testing/use_shim_driver.h"
#include "runtime/loader/session.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kTinyText[] = R"(
extern "C" __global__ void __launch_bounds__(2)
k0_a(const float* x, const float* w, float* t, const float* b, float* u) {
  __shared__ float row[8];
  const long r = blockIdx.x;
  for (int c = threadIdx.x; c < 8; c += 2) row[c] = x[r * 8 + c] * w[c];
  __syncthreads();
  for (int c = threadIdx.x; c < 8; c += 2) t[r * 8 + (c ^ 1)] = row[c ^ 1];
}
extern "C" __global__ void __launch_bounds__(1)
k0_b(const float* x, const float* w, float* t, const float* b, float* u) {
  const long r = blockIdx.x;
  for (int c = 0; c < 8; ++c) u[(63 - r) * 8 + c] = t[(63 - r) * 8 + c] + b[c];
}
extern "C" __global__ void __launch_bounds__(1) k1(const float* u, float* y) {
  const long r = blockIdx.x;
  for (int c = 0; c < 8; ++c) y[r * 8 + c] = fmaxf(u[r * 8 + c], 0.f);
}
)";
constexpr char kK0[] = "FUSION_CUDA_KERNEL(k0_a, 2) FUSION_CUDA_KERNEL(k0_b, 1)\n",
               kK1[] = "FUSION_CUDA_KERNEL(k1, 1)\n";

absl::StatusOr<std::string> Build(const std::string& kernels) {
  return BuildSharedObject(absl::StrCat(
      "#include \"" FUSION_SOURCE_FOLDER "/runtime/devices/cuda/testing/cuda_shim.h\"\n", kTinyText, kernels));
}

class CudaSession : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(UseCudaShimDriver().ok()); }
  void SetUp() override { path_ = ::testing::TempDir() + "/cuda_session_test_" + std::to_string(getpid()) + ".fusion"; }
  void TearDown() override { std::filesystem::remove(path_); }

  absl::StatusOr<std::unique_ptr<Session>> Load(const std::string& cubin, Manifest manifest = TinyManifest(),
                                                const std::string& architecture = "sm_90",
                                                const std::map<std::string, std::string>& more = {}) {
    manifest.target = "cuda";
    manifest.isa = architecture;
    const absl::Status written = WriteTinyBundle(path_, cubin, manifest, more);
    if (!written.ok()) return written;
    const auto bundle = Bundle::Open(path_);
    if (!bundle.ok()) return bundle.status();
    return Session::Create(*bundle, 1);
  }

  std::string path_;
};

void ExpectRight(const Tensor& x, const std::vector<Tensor>& outputs) {
  ASSERT_EQ(outputs.size(), 2u);
  for (int64_t i = 0; i < 512; ++i) {
    EXPECT_EQ(outputs[0].GetDouble(i), std::max(0.0f, x.as<float>()[i] * static_cast<float>(i % 8 + 1) - 1.0f));
  }
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(outputs[1].GetDouble(i), i + 1);
}

TEST_F(CudaSession, RunsAsAGraphAndTimesEachLaunch) {
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const auto session = Load(*cubin);
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
    ASSERT_EQ(latencies_ns.size(), 2u);
    EXPECT_GT(std::min(latencies_ns[0], latencies_ns[1]), 0);
  }
}

TEST_F(CudaSession, RunsLaunchByLaunchWhereTheDriverMakesNoGraph) {
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  for (const char* missing : {"1", "2"}) {
    setenv("FUSION_CUDA_SHIM_NO_GRAPHS", missing, 1);
    const auto session = Load(*cubin);
    unsetenv("FUSION_CUDA_SHIM_NO_GRAPHS");
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 2; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      const auto outputs = (*session)->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
    }
  }
}

// One persistent kernel does the work of two launches, with a grid barrier between; its second half reads rows that
// other thread blocks wrote in the first. It runs with as many thread blocks as the driver says run together, with and
// without a graph, and with one thread block if there are no cooperative launches.
TEST_F(CudaSession, ThreadBlocksOfAPersistentKernelWaitForEachOther) {
  const auto cubin = BuildSharedObject(
      absl::StrCat("#include \"" FUSION_SOURCE_FOLDER "/runtime/devices/cuda/testing/cuda_shim.h\"\n", kTinyText, R"(
extern "C" __global__ void __launch_bounds__(2)
stay(const float* x, const float* w, float* t, const float* b, float* u, unsigned* grid_barrier) {
  __shared__ float row[8];
  for (long r = blockIdx.x; r < 64; r += gridDim.x) {
    __syncthreads();
    for (int c = threadIdx.x; c < 8; c += 2) row[c] = x[r * 8 + c] * w[c];
    __syncthreads();
    for (int c = threadIdx.x; c < 8; c += 2) t[r * 8 + (c ^ 1)] = row[c ^ 1];
  }
  __syncthreads();
  if (threadIdx.x == 0) row[0] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = come(grid_barrier, blockIdx.x == 0 ? 0x80000001u - gridDim.x : 1);
    while (((see(grid_barrier) ^ before) & 0x80000000u) == 0) {}
  }
  __syncthreads();
  const float mine = row[0] == blockIdx.x ? 0.f : 1.f;  // shared memory is still the block's own
  for (long r = blockIdx.x; r < 64; r += gridDim.x)
    for (int c = threadIdx.x; c < 8; c += 2) u[(63 - r) * 8 + c] = t[(63 - r) * 8 + c] + b[c] + mine;
}
)",
                   kK1, "FUSION_CUDA_KERNEL(stay, 2)\n"));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  Manifest manifest = TinyManifest();
  manifest.format = 5;
  manifest.kernels[0].persistent = true;
  manifest.kernels[0].phases = {{"stay", 64}};
  for (const char* missing : {"", "FUSION_CUDA_SHIM_NO_GRAPHS", "FUSION_CUDA_SHIM_NO_COOPERATION"}) {
    if (*missing != 0) setenv(missing, "1", 1);
    const auto session = Load(*cubin, manifest);
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      const auto outputs = (*session)->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
    }
    if (*missing != 0) unsetenv(missing);
  }
}

// The second of three launches repeats, two rows an iteration: 32 launches, or one whose thread blocks run the
// iterations and wait for each other between them.
TEST_F(CudaSession, IterationsAreLaunchesOrInsideOfOne) {
  const auto cubin = BuildSharedObject(
      absl::StrCat("#include \"" FUSION_SOURCE_FOLDER "/runtime/devices/cuda/testing/cuda_shim.h\"\n", kTinyText, R"(
extern "C" __global__ void __launch_bounds__(1) one_turn(const float* t, const float* b, float* u) {
  for (int c = 0; c < 8; ++c) u[blockIdx.x * 8 + c] = t[blockIdx.x * 8 + c] + b[c];
}
extern "C" __global__ void __launch_bounds__(2)
turns(const float* const* t, const float* b, float* const* u, unsigned* grid_barrier) {
  for (int i = 0; i < 32; ++i) {
    if (i > 0) {
      __syncthreads();
      if (threadIdx.x == 0) {
        const unsigned before = come(grid_barrier, blockIdx.x == 0 ? 0x80000001u - gridDim.x : 1);
        while (((see(grid_barrier) ^ before) & 0x80000000u) == 0) {}
      }
      __syncthreads();
    }
    for (long r = blockIdx.x; r < 2; r += gridDim.x)
      for (int c = threadIdx.x; c < 8; c += 2) u[i][r * 8 + c] = t[i][r * 8 + c] + b[c];
  }
}
)",
                   kK0, kK1, "FUSION_CUDA_KERNEL(one_turn, 1) FUSION_CUDA_KERNEL(turns, 2)\n"));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  for (const bool in_launch : {false, true}) {
    const auto session = Load(*cubin, TinyRepeatingManifest(in_launch));
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 3; ++seed) {
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

// The first kernel reads an input and constants; the second lies between the device and an output.
TEST_F(CudaSession, AKernelRunsOnTheHost) {
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const auto code = BuildSharedObject(kTinyKernelSource);
  ASSERT_TRUE(code.ok()) << code.status();
  for (const int on_host : {0, 1}) {
    Manifest manifest = TinyManifest();
    manifest.format = 4;
    manifest.host_isa = manifest.isa;
    manifest.kernels[on_host].file = "kernels/host.so";
    manifest.kernels[on_host].on_host = true;
    manifest.kernels[on_host].writes = on_host == 0 ? std::vector<int>{2, 4} : std::vector<int>{1};
    const auto session = Load(*cubin, manifest, "sm_90", {{"kernels/host.so", *code}});
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      std::vector<int64_t> latencies_ns;
      const auto outputs = (*session)->RunTimed(inputs, seed == 0 ? nullptr : &latencies_ns);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
    }
  }
}

TEST_F(CudaSession, InItsOwnMemory) {
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const auto session = Load(*cubin);
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

TEST_F(CudaSession, OutputsHaveExtents) {
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const auto session = Load(*cubin, TinyDynamicManifest());
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run(RandomInputs((*session)->manifest(), 1));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].shape(), (Shape{64, 3}));
}

TEST_F(CudaSession, WhatDoesNotLoadSaysWhy) {
  EXPECT_THAT(std::string(Load("no code at all").status().message()), HasSubstr("does not load kernels/"));
  const auto less = Build(kK0);
  ASSERT_TRUE(less.ok()) << less.status();
  EXPECT_THAT(std::string(Load(*less).status().message()), HasSubstr("k1: CUDA_ERROR_NOT_FOUND"));
  const absl::Status other = Load(*less, TinyManifest(), "sm_80").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("compile the model for cuda:sm_90"));
}

TEST_F(CudaSession, MemoryThatIsNotThereIsNamed) {
  Manifest manifest = TinyManifest();
  manifest.arena_bytes = int64_t{1} << 40;
  const auto cubin = Build(absl::StrCat(kK0, kK1));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const absl::Status status = Load(*cubin, manifest).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("bundle's buffers"));
}

}  // namespace
}  // namespace fusion
