#include "runtime/devices/dsa/dsa_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// out = ids + w, with ids as integers in the bundle; `add` is a unit code, `relu` an operation of the vector unit.
constexpr char kProgram[] = R"(program p for small {
  expression add
tensor i64 [4]
tensor f32 [4]
tensor f32 [4]
operand 0 at [0] box [4]
operand 1 at [0] box [4]
result 2 at [0] box [4]
step registers 3 2
  axis 1 4
  pre
    load.f lanes 0 1 0 0 0 0 0 0
    load.f lanes 1 1 0 0 0 0 0 1
    add.f lanes 2 0 1 0 0 0 0 -1
  store 2 2
  end
  buffer ids ddr 0 f32[4] input
  buffer out ddr 64 f32[4] output
  buffer w ddr 128 f32[4] input
  buffer a lb 0.0 0 f32[4]
  buffer b lb 0.0 16 f32[4]
  buffer c lb 0.0 32 f32[4]
  0: load a[0 + 4:1] = ids[0 + 4:1]
  1: load b[0 + 4:1] = w[0 + 4:1]
  2: vector vme 0.0 expr add work 4 c[0 + 4:1] at (0) = a[0 + 4:1] at (0) as 0, b[0 + 4:1] at (0) as 1 after 1
  3: vector vme 0.0 relu c[0 + 4:1] = c[0 + 4:1] after 2
  4: store out[0 + 4:1] = c[0 + 4:1] after 3
}
)";

Buffer BufferOf(Buffer::Kind kind, const char* name, DType dtype, Shape shape) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  buffer.size_bytes = NumElements(buffer.shape) * DTypeBytes(dtype);
  return buffer;
}

Manifest TheManifest() {
  Manifest manifest;
  manifest.target = "dsa";
  manifest.isa = "small";
  manifest.buffers = {BufferOf(Buffer::Kind::kInput, "ids", DType::kI64, {2, 2}),
                      BufferOf(Buffer::Kind::kOutput, "y", DType::kF32, {4}),
                      BufferOf(Buffer::Kind::kConstant, "w", DType::kF16, {4})};
  manifest.inputs = {{"ids", DType::kI64, {2, 2}, 0}};
  // The model also returns its input.
  manifest.outputs = {{"y", DType::kF32, {4}, 1}, {"same", DType::kI64, {2, 2}, 0}};
  ManifestKernel kernel;
  kernel.file = "kernels/program.dsa";
  kernel.phases.push_back({"p", 1});
  manifest.kernels = {kernel};
  Launch launch;
  launch.buffers = {0, 1, 2};
  manifest.launches = {launch};
  return manifest;
}

absl::StatusOr<std::shared_ptr<const BundleReader>> Write(const std::string& program, Manifest manifest,
                                                          bool with_machine = true) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/dsa_device_", getpid(), ".fusion");
  auto writer = BundleWriter::Create(path);
  EXPECT_TRUE(writer.ok());
  EXPECT_TRUE((*writer)->AddEntry("kernels/program.dsa", program).ok());
  dsa::Machine machine = dsa::SmallMachine();
  machine.clusters = 1;
  if (with_machine) {
    EXPECT_TRUE((*writer)->AddEntry(kDsaMachineEntry, dsa::MachineToJson(machine)).ok());
  }
  const Tensor w = Tensor::From(DType::kF16, {4}, std::vector<double>{-10, 0.5, 1, 2});
  auto offsets = (*writer)->BeginWeights(std::vector<WeightInfo>{{"w", DType::kF16, {4}}});
  EXPECT_TRUE(offsets.ok());
  for (Buffer& buffer : manifest.buffers) {
    if (buffer.kind == Buffer::Kind::kConstant) buffer.offset = (*offsets)[0];
  }
  EXPECT_TRUE((*writer)->AppendWeights({static_cast<const char*>(w.data()), 8}).ok());
  const absl::Status finished = (*writer)->Finish(std::move(manifest), false);
  if (!finished.ok()) return finished;
  return BundleReader::Open(path);
}

std::string ErrorOf(const std::string& program, const Manifest& manifest, bool with_machine = true) {
  const auto bundle = Write(program, manifest, with_machine);
  if (!bundle.ok()) return bundle.status().ToString();
  const absl::Status supported = MakeDsaDevice()->CheckSupported((*bundle)->manifest());
  if (!supported.ok()) return supported.ToString();
  return MakeDsaDevice()->Load(*bundle, {}).status().ToString();
}

TEST(DsaDevice, RunsAProgramAndReportsTheMachinesTime) {
  const auto bundle = Write(kProgram, TheManifest());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto executable = MakeDsaDevice()->Load(*bundle, {});
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<int64_t> ids = {3, 4, -5, 6};
  std::vector<float> y(4);
  std::vector<int64_t> same(4);
  const void* inputs[] = {ids.data()};
  void* outputs[] = {y.data(), same.data()};
  int64_t reported_ns = 0;
  for (int run = 0; run < 2; ++run) {
    const absl::Status status = (*executable)->Run(inputs, outputs, [&](int, int64_t ns) { reported_ns = ns; });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(y, ElementsAre(0, 4.5, 0, 8));
    EXPECT_EQ(same, ids);
  }
  const std::optional<SimulatedTime> time = (*executable)->simulated_time();
  ASSERT_TRUE(time.has_value());
  EXPECT_GT(time->cycles, 30) << "three transfers start up at least";
  EXPECT_EQ(reported_ns, static_cast<int64_t>(time->cycles + 0.5)) << "at 1 GHz";
}

TEST(DsaDevice, AnIntegerThatAFloatCannotHoldIsRefused) {
  const auto bundle = Write(kProgram, TheManifest());
  const auto executable = MakeDsaDevice()->Load(*bundle, {});
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<int64_t> ids = {3, (1 << 24) + 1, 0, 0};
  std::vector<float> y(4);
  std::vector<int64_t> same(4);
  const void* inputs[] = {ids.data()};
  void* outputs[] = {y.data(), same.data()};
  const absl::Status status = (*executable)->Run(inputs, outputs, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("input 'ids': element 1 is 16777217"));
}

TEST(DsaDevice, RefusesProgramsThatTheMachineCouldNotRun) {
  const std::string race = absl::StrReplaceAll(kProgram, {{" after 3", ""}});
  EXPECT_THAT(ErrorOf(race, TheManifest()), HasSubstr("the program cannot run on its machine: instruction"));
  const std::string overflow = absl::StrReplaceAll(kProgram, {{"c lb 0.0 32", "c lb 0.0 1020"}});
  EXPECT_THAT(ErrorOf(overflow, TheManifest()), HasSubstr("do not fit lb 0.0"));
  const std::string unwritten = absl::StrReplaceAll(kProgram, {{"b[0 + 4:1] = w[0 + 4:1]", "b[0 + 3:1] = w[0 + 3:1]"}});
  EXPECT_THAT(ErrorOf(unwritten, TheManifest()), HasSubstr("instruction 2"));
  const std::string code = absl::StrReplaceAll(kProgram, {{"add.f lanes", "add lanes"}});
  EXPECT_THAT(ErrorOf(code, TheManifest()), HasSubstr("expression add: line"));
}

TEST(DsaDevice, RefusesBundlesOfAnotherForm) {
  EXPECT_THAT(ErrorOf(kProgram, TheManifest(), /*with_machine=*/false), HasSubstr("describes no machine"));
  Manifest few = TheManifest();
  few.launches[0].buffers = {0, 1};
  EXPECT_THAT(ErrorOf(kProgram, few), HasSubstr("3 inputs and outputs, the launch 2"));
  Manifest swapped = TheManifest();
  swapped.launches[0].buffers = {1, 0, 2};
  EXPECT_THAT(ErrorOf(kProgram, swapped), HasSubstr("the program's buffer ids of 4 elements is not the bundle's 'y'"));
  Manifest twice = TheManifest();
  twice.launches.push_back(twice.launches[0]);
  EXPECT_THAT(ErrorOf(kProgram, twice), HasSubstr("one launch, a whole program"));
}

}  // namespace
}  // namespace fusion
