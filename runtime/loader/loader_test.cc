#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/bundle/buffer_footprint.h"
#include "runtime/bundle/zip_format.h"
#include "runtime/loader/pick_program.h"
#include "runtime/loader/session.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class LoaderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto built = BuildSharedObject(kTinyKernelSource);
    ASSERT_TRUE(built.ok()) << built.status();
    shared_object_ = new std::string(*built);
  }
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/loader_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/tiny.fusion";
    const absl::Status status = WriteTinyBundle(path_, *shared_object_, TinyManifest());
    ASSERT_TRUE(status.ok()) << status;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Returns the error of opening, or of making a session of, a tiny bundle that `change` altered.
  template <typename Change>
  std::string Why(Change change) {
    Manifest manifest = TinyManifest();
    std::string code = *shared_object_;
    change(manifest, code);
    EXPECT_TRUE(WriteTinyBundle(folder_ + "/bad.fusion", code, manifest).ok());
    const auto bundle = Bundle::Open(folder_ + "/bad.fusion");
    if (!bundle.ok()) return std::string(bundle.status().message());
    return std::string(Session::Create(*bundle, 1).status().message());
  }

  static void ExpectRight(const Tensor& x, const std::vector<Tensor>& outputs) {
    ASSERT_EQ(outputs.size(), 2u);
    for (int64_t i = 0; i < 512; ++i) {
      EXPECT_EQ(outputs[0].GetDouble(i), std::max(0.0f, x.as<float>()[i] * static_cast<float>(i % 8 + 1) - 1.0f));
    }
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(outputs[1].GetDouble(i), i + 1);
  }

  static std::string* shared_object_;
  std::string folder_, path_;
};
std::string* LoaderTest::shared_object_ = nullptr;

TEST_F(LoaderTest, RunsWithAnyNumberOfThreads) {
  const auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  for (const int threads : {0, 1, 2, 3}) {
    const auto session = Session::Create(*bundle, threads);
    ASSERT_TRUE(session.ok()) << session.status();
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), seed);
      const auto outputs = (*session)->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ExpectRight(inputs[0], *outputs);
    }
  }
}

// Their sizes are whole pages: side by side, a kernel would store just ahead of what it loads next.
TEST_F(LoaderTest, LargeInputsAndOutputsBeginApartWithinAPage) {
  Manifest manifest = TinyManifest();
  manifest.inputs[0].shape[0] = manifest.outputs[0].shape[0] = 16384;
  for (const int buffer : {0, 5}) {
    manifest.buffers[buffer].shape[0] = 16384, manifest.buffers[buffer].size_bytes = 16384 * 8 * 4;
  }
  ASSERT_TRUE(WriteTinyBundle(path_, *shared_object_, manifest).ok());
  const auto session = Session::Create(*Bundle::Open(path_), 1);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto apart = static_cast<uint64_t>(static_cast<const char*>((*session)->output(0)) -
                                           static_cast<const char*>((*session)->input(0)));
  EXPECT_GE(apart % kStoreMatchBytes, 512u);
  EXPECT_LE(apart % kStoreMatchBytes, static_cast<uint64_t>(kStoreMatchBytes - 192));
}

TEST_F(LoaderTest, SessionsOutliveTheBundleAndItsFile) {
  auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle.ok());
  const auto session = Session::Create(*bundle, 1);
  ASSERT_TRUE(session.ok());
  bundle->reset();
  std::filesystem::remove(path_);
  const std::vector<Tensor> inputs = RandomInputs((*session)->manifest(), 3);
  const auto outputs = (*session)->Run(inputs);
  ASSERT_TRUE(outputs.ok());
  ExpectRight(inputs[0], *outputs);
}

TEST_F(LoaderTest, TimesEveryLaunch) {
  const auto session = Session::Create(*Bundle::Open(path_), 1);
  ASSERT_TRUE(session.ok());
  std::vector<int64_t> latencies_ns = {-1, -1, -1, -1};
  ASSERT_TRUE((*session)->RunTimed(RandomInputs((*session)->manifest(), 1), &latencies_ns).ok());
  ASSERT_EQ(latencies_ns.size(), 2u);
  EXPECT_GT(latencies_ns[0], 0);
  EXPECT_GT(latencies_ns[1], 0);
}

TEST_F(LoaderTest, OwnMemoryNeedsNoCopy) {
  const auto session = Session::Create(*Bundle::Open(path_), 1);
  ASSERT_TRUE(session.ok());
  const Tensor x = RandomInputs((*session)->manifest(), 1)[0];
  memcpy((*session)->input(0), x.data(), x.size_bytes());
  const void* inputs[] = {(*session)->input(0)};
  void* outputs[] = {const_cast<void*>((*session)->output(0)), const_cast<void*>((*session)->output(1))};
  ASSERT_TRUE((*session)->RunRaw(inputs, outputs).ok());
  ExpectRight(x, {Tensor(DType::kF32, {64, 8}, outputs[0], nullptr), Tensor(DType::kF32, {8}, outputs[1], nullptr)});
}

// Libraries are loaded by descriptor number; a number that is used again must not return the old code.
TEST_F(LoaderTest, EachBundleRunsItsOwnCode) {
  std::string source = kTinyKernelSource;
  source.replace(source.find("> 0 ?"), 5, "> 5 ?");
  const auto other_code = BuildSharedObject(source);
  ASSERT_TRUE(other_code.ok());
  const std::string other = folder_ + "/other.fusion";
  ASSERT_TRUE(WriteTinyBundle(other, *other_code, TinyManifest()).ok());
  const Tensor ones = Tensor::From<float>(DType::kF32, {64, 8}, std::vector<float>(512, 1.0f));
  for (int round = 0; round < 3; ++round) {
    const auto outputs = (*Session::Create(*Bundle::Open(path_), 1))->Run({ones});
    const auto other_outputs = (*Session::Create(*Bundle::Open(other), 1))->Run({ones});
    EXPECT_EQ((*outputs)[0].GetDouble(4), 4.0);
    EXPECT_EQ((*other_outputs)[0].GetDouble(4), 0.0);
  }
}

TEST_F(LoaderTest, WrongInputsAreNamed) {
  const auto session = Session::Create(*Bundle::Open(path_), 1);
  ASSERT_TRUE(session.ok());
  const auto why = [&](const std::vector<Tensor>& inputs) {
    const auto outputs = (*session)->Run(inputs);
    EXPECT_EQ(outputs.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(outputs.status().message());
  };
  EXPECT_THAT(why({}), HasSubstr("1 inputs, 0 were given"));
  EXPECT_THAT(why({Tensor(DType::kF32, {8, 64})}), HasSubstr("input 'x' must be f32[64, 8], not f32[8, 64]"));
  EXPECT_THAT(why({Tensor(DType::kF64, {64, 8})}), HasSubstr("not f64[64, 8]"));
  EXPECT_THAT(why({Tensor(DType::kF32, {64, 8}, nullptr, nullptr)}), HasSubstr("null pointer"));
}

TEST_F(LoaderTest, WhatCannotRunIsRefused) {
  EXPECT_THAT(Why([](Manifest& m, std::string&) { m.isa = "neon2"; }), HasSubstr("need 'neon2'"));
  EXPECT_THAT(Why([](Manifest& m, std::string&) { m.target = "abacus"; }), HasSubstr("target 'abacus'"));
  EXPECT_THAT(Why([](Manifest& m, std::string&) { m.kernels[1].phases[0].symbol = "k2"; }), HasSubstr("'k2'"));
  EXPECT_THAT(Why([](Manifest&, std::string& code) { code = "no machine code"; }), HasSubstr("kernels/cpu.so"));
  EXPECT_THAT(Why([](Manifest&, std::string& code) { code.resize(100); }), HasSubstr("kernels/cpu.so"));
  EXPECT_THAT(Why([](Manifest& m, std::string&) { m.format = 1000; }), HasSubstr("newer runtime"));
  EXPECT_EQ(Bundle::Open(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Session::Create(*Bundle::Open(path_), -1).ok());
  EXPECT_FALSE(Session::Create(*Bundle::Open(path_), 5000).ok());
}

TEST_F(LoaderTest, DamagedCodeIsNeverLoaded) {
  const std::string bytes((*MappedFile::Open(path_))->bytes());
  const auto entries = ParseZip(bytes);
  ASSERT_TRUE(entries.ok());
  for (size_t i = 0; i < bytes.size(); i += 97) {
    std::string damaged = bytes;
    damaged[i] ^= 4;
    EXPECT_FALSE(Bundle::FromBytes(damaged).ok()) << i;
  }
  std::string damaged = bytes;
  damaged[(*entries)[0].header_offset + ZipLocalHeader((*entries)[0]).size() + 200] ^= 1;
  const auto bundle = Bundle::FromBytes(damaged);
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bundle.status().message()), HasSubstr("kernels/cpu.so"));
}

TEST_F(LoaderTest, NullDeviceRunsNothing) {
  Manifest manifest = TinyManifest();
  manifest.target = "null";
  manifest.isa = "none";
  ASSERT_TRUE(WriteTinyBundle(path_, "no code", manifest).ok());
  const auto session = Session::Create(*Bundle::Open(path_), 1);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<int64_t> latencies_ns;
  const auto outputs = (*session)->RunTimed(RandomInputs(manifest, 1), &latencies_ns);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[1].GetDouble(3), 0.0);
  EXPECT_EQ(latencies_ns.size(), 2u);
}

TEST_F(LoaderTest, RunsTheSpecialisationThatTheShapesFit) {
  ASSERT_TRUE(WriteTinyBundle(path_, *shared_object_, TinySpecialisedManifest()).ok());
  const auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto session = Session::Create(*bundle, 2);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const size_t p : {0, 1, 1, 0}) {
    const std::vector<Tensor> inputs = RandomInputs((*bundle)->manifest().program(p), 5);
    const auto outputs = (*session)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*session)->selected(), p);
    EXPECT_EQ((*outputs)[0].shape(), inputs[0].shape());
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      ASSERT_EQ((*outputs)[0].GetDouble(i),
                std::max(0.0f, inputs[0].as<float>()[i] * static_cast<float>(i % 8 + 1) - 1.0f));
    }
  }
  const absl::Status other = (*session)->Run({Tensor(DType::kF32, {20, 8})}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(other.message(), "input 'x' is [20, 8]; this bundle was built for rows=64, 16");
  EXPECT_THAT(std::string((*session)->Run({Tensor(DType::kI64, {16, 8})}).status().message()),
              HasSubstr("must be f32"));
}

TEST_F(LoaderTest, SpecialisationsHaveOneSignature) {
  const auto refusal = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = TinySpecialisedManifest();
    manifest.digests = {{"kernels/cpu.so", ""}};
    EXPECT_TRUE(ValidateManifest(manifest, 1024).ok());
    change(manifest);
    return std::string(ValidateManifest(manifest, 1024).message());
  };
  EXPECT_THAT(refusal([](Manifest& m) { m.others[0].inputs[0].name = "z"; }), HasSubstr("other inputs or outputs"));
  EXPECT_THAT(refusal([](Manifest& m) { m.format = 2; }), HasSubstr("format 2 has specialisations"));
  EXPECT_THAT(refusal([](Manifest& m) { m.others[0].launches[0].kernel = 7; }), HasSubstr("no kernel 7"));
  EXPECT_THAT(refusal([](Manifest& m) { m.others[0].inputs[0].symbols.pop_back(); }), HasSubstr("symbols"));
}

TEST(ShapesFor, NamesADimension) {
  const Manifest manifest = TinySpecialisedManifest();
  EXPECT_EQ(*ShapesFor(manifest, {}), std::vector<Shape>({{64, 8}}));
  EXPECT_EQ(*ShapesFor(manifest, {{"rows", 16}}), std::vector<Shape>({{16, 8}}));
  EXPECT_THAT(std::string(ShapesFor(manifest, {{"columns", 16}}).status().message()), HasSubstr("it has rows"));
}

// Adds programs that accept smaller inputs, for up to 64 and up to 16 rows.
Manifest TwoBounds() {
  Manifest manifest = TinySpecialisedManifest();
  for (const size_t p : {0, 1}) {
    ManifestProgram padded = manifest.program(p);
    padded.inputs[0].extents = {static_cast<int>(padded.buffers.size()), -1};
    padded.buffers.push_back({Buffer::Kind::kInput, "extent of rows", DType::kI64, {}, 8, 0, ""});
    manifest.others.push_back(padded);
  }
  return manifest;
}

TEST(PickProgram, TakesTheNearestLarger) {
  const Manifest manifest = TwoBounds();
  EXPECT_EQ(ProgramName(manifest.program(3)), "rows≤16");
  for (const auto& [rows, program] : std::map<int64_t, size_t>{{64, 0}, {16, 1}, {1, 3}, {15, 3}, {17, 2}, {63, 2}}) {
    EXPECT_EQ(*PickProgram(manifest, {Shape{rows, 8}}), program) << rows;
  }
  for (const Shape& shape : std::vector<Shape>{{65, 8}, {0, 8}, {8, 7}, {8}}) {
    EXPECT_THAT(std::string(PickProgram(manifest, {shape}).status().message()), HasSubstr("built for rows=64, 16"));
  }
}

TEST_F(LoaderTest, PadsWhatIsSmaller) {
  ASSERT_TRUE(WriteTinyBundle(path_, *shared_object_, TwoBounds()).ok());
  const auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto session = Session::Create(*bundle, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Select({Shape{3, 8}}).ok());
  EXPECT_EQ((*session)->input_bytes(0), 3u * 8 * 4);
  auto* x = static_cast<float*>((*session)->input(0));
  for (int i = 0; i < 24; ++i) x[i] = static_cast<float>(i);
  const void* inputs[] = {x};
  std::vector<float> y(128), w(8);
  void* outputs[] = {y.data(), w.data()};
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE((*session)->RunRaw(inputs, outputs).ok());
    for (int i = 0; i < 128; ++i) {
      ASSERT_EQ(y[i], i < 24 ? std::max(0.0f, static_cast<float>(i) * static_cast<float>(i % 8 + 1) - 1.0f) : 0) << i;
    }
  }
}

TEST(ValidateManifest, ChecksExtentsOfInputs) {
  Manifest manifest = TwoBounds();
  manifest.digests = {{"kernels/cpu.so", ""}};
  EXPECT_TRUE(ValidateManifest(manifest, 1024).ok()) << ValidateManifest(manifest, 1024);
  manifest.others[2].inputs[0].extents[0] = 0;  // an input that the caller gives
  EXPECT_THAT(std::string(ValidateManifest(manifest, 1024).message()), HasSubstr("is no extent"));
  manifest.others[2].inputs[0].extents = {1};
  EXPECT_THAT(std::string(ValidateManifest(manifest, 1024).message()), HasSubstr("cannot have these extents"));
}

}  // namespace
}  // namespace fusion
