#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zip.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/target_path.h"
#include "runtime/bundle/zip_format.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Manifest SmallManifest(const std::vector<int64_t>& offsets) {
  Manifest manifest;
  manifest.generator = "test";
  manifest.isa = "avx2";
  manifest.options = {{"planner", "none"}};
  manifest.model_name = "a \"quoted\" name\n";
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {2, 3}, 24, 0, "row-major"},
                      {Buffer::Kind::kConstant, "w", DType::kF32, {3}, 12, offsets[0], ""},
                      {Buffer::Kind::kConstant, "v", DType::kI64, {2}, 16, offsets[2], ""},
                      {Buffer::Kind::kArena, "t", DType::kF32, {2, 3}, 24, 64, ""},
                      {Buffer::Kind::kOutput, "y", DType::kF32, {2, 3}, 24, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {2, 3}, 0}};
  manifest.outputs = {{"y", DType::kF32, {2, 3}, 4}};
  manifest.arena_bytes = 128;
  manifest.scratch_bytes_per_thread = 256;
  manifest.kernels = {{"kernels/cpu.so", {{"k0_phase0", 2}, {"k0_phase1", 1}}, "src/k0.cc"}};
  manifest.launches = {{0, {0, 1, 4}, "add 'x'", {"n0", "n1"}, 1.5e9, 123}};
  return manifest;
}

absl::Status WriteSmall(const std::string& path) {
  auto created = BundleWriter::Create(path);
  if (!created.ok()) return created.status();
  BundleWriter& writer = **created;
  absl::Status status = writer.AddEntry("kernels/cpu.so", "not really machine code");
  status.Update(writer.AddEntry("src/k0.cc", "void k0();"));
  const auto offsets = writer.BeginWeights(
      {{"w", DType::kF32, {3}}, {"empty", DType::kF32, {0}}, {"v", DType::kI64, {2}}, {"e2", DType::kF32, {0}}});
  status.Update(offsets.status());
  if (!status.ok()) return status;
  const float w[3] = {1, 2, 3};
  const int64_t v[2] = {4, 5};
  const std::string bytes =
      std::string(reinterpret_cast<const char*>(w), 12) + std::string(reinterpret_cast<const char*>(v), 16);
  status.Update(writer.AppendWeights(bytes.substr(0, 5)));
  status.Update(writer.AppendWeights(bytes.substr(5)));
  if (!status.ok()) return status;
  return writer.Finish(SmallManifest(*offsets));
}

class BundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/bundle_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/small.fusion";
    const absl::Status status = WriteSmall(path_);
    ASSERT_TRUE(status.ok()) << status;
    bytes_ = std::string((*MappedFile::Open(path_))->bytes());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_, path_, bytes_;
};

TEST_F(BundleTest, RoundTrips) {
  const auto bundle = BundleReader::Open(path_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const Manifest& manifest = (*bundle)->manifest();
  EXPECT_EQ(SerializeManifest(manifest), (*bundle)->manifest_json());
  Manifest expected = SmallManifest({0, 0, 64});
  expected.digests = manifest.digests;
  EXPECT_EQ(SerializeManifest(expected), SerializeManifest(manifest));
  EXPECT_EQ(manifest.digests.size(), 3u);
  EXPECT_EQ(manifest.digests.at("src/k0.cc"), Sha256Hex("void k0();"));
  EXPECT_EQ(*(*bundle)->Entry("src/k0.cc"), "void k0();");
  EXPECT_FALSE((*bundle)->Entry("nothing").ok());
  const absl::string_view weights = (*bundle)->weights();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.data()) % 512, 0u);
  EXPECT_EQ(reinterpret_cast<const float*>(weights.data())[2], 3.0f);
  EXPECT_EQ(reinterpret_cast<const int64_t*>(weights.data() + manifest.buffers[2].offset)[1], 5);
  EXPECT_TRUE(BundleReader::FromBytes(bytes_).ok());
}

TEST_F(BundleTest, LargeTensorsBeginAtMultiplesOf512) {
  auto writer = BundleWriter::Create(folder_ + "/aligned.fusion");
  ASSERT_TRUE(writer.ok());
  const auto offsets = (*writer)->BeginWeights(
      {{"small", DType::kF32, {3}}, {"large", DType::kF32, {2048}}, {"next", DType::kF32, {3}}});
  ASSERT_TRUE(offsets.ok());
  EXPECT_EQ(*offsets, (std::vector<int64_t>{0, 512, 512 + 8192}));
}

TEST_F(BundleTest, SlackBehindTheWeightsIsInTheFile) {
  const auto bundle = BundleReader::Open(path_);
  ASSERT_TRUE(bundle.ok());
  const auto entries = ParseZip(bytes_);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->back().name, "manifest.json");
  const ZipEntry& weights = (*entries)[2];
  EXPECT_EQ(weights.name, "weights.safetensors");
  EXPECT_GE(bytes_.size() - weights.header_offset - ZipLocalHeader(weights).size() - weights.size_bytes, 64u);
}

TEST_F(BundleTest, SameCallsSameBytes) {
  const std::string again = folder_ + "/again.fusion";
  ASSERT_TRUE(WriteSmall(again).ok());
  EXPECT_EQ((*MappedFile::Open(again))->bytes(), bytes_);
}

TEST_F(BundleTest, LibzipReadsEveryEntry) {
  int error = 0;
  zip_t* archive = zip_open(path_.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  ASSERT_NE(archive, nullptr) << error;
  EXPECT_EQ(zip_get_num_entries(archive, 0), 4);
  for (int i = 0; i < 4; ++i) {
    zip_stat_t stat;
    ASSERT_EQ(zip_stat_index(archive, i, 0, &stat), 0);
    EXPECT_EQ(stat.comp_method, ZIP_CM_STORE);
    std::string content(stat.size, '\0');
    zip_file_t* file = zip_fopen_index(archive, i, 0);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(zip_fread(file, content.data(), content.size()), static_cast<zip_int64_t>(content.size()));  // checks crc
    char extra;
    EXPECT_EQ(zip_fread(file, &extra, 1), 0) << stat.name;
    zip_fclose(file);
  }
  zip_discard(archive);
}

TEST_F(BundleTest, EveryFlippedBitIsAnError) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    std::string damaged = bytes_;
    damaged[i] ^= 1 << (i % 8);
    const auto bundle = BundleReader::FromBytes(damaged);
    ASSERT_FALSE(bundle.ok()) << "byte " << i;
    EXPECT_NE(bundle.status().code(), absl::StatusCode::kInternal);
  }
}

TEST_F(BundleTest, EveryTruncationAndExtensionIsAnError) {
  for (size_t length = 1; length < bytes_.size(); ++length) {
    EXPECT_FALSE(BundleReader::FromBytes(absl::string_view(bytes_).substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(BundleReader::FromBytes(bytes_ + "x").ok());
  EXPECT_FALSE(BundleReader::FromBytes("x" + bytes_).ok());
}

// Writes random bytes over the directory: the reader must not believe any length or offset in it.
TEST_F(BundleTest, RandomDirectoriesNeverCrash) {
  std::mt19937 random(1);
  const size_t directory = bytes_.find("PK\1\2");
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes_;
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = directory + random() % (damaged.size() - directory);
      static constexpr char kValues[] = {'\0', '\1', '\x7f', '\x80', '\xff', '\xfe', 'P', '\x10'};
      for (size_t k = at; k < std::min(damaged.size(), at + 1 + random() % 8); ++k) damaged[k] = kValues[random() % 8];
    }
    EXPECT_TRUE(damaged == bytes_ || !BundleReader::FromBytes(damaged).ok());
  }
}

TEST_F(BundleTest, ForeignFilesAreNamed) {
  const auto why = [](const std::string& bytes) {
    const auto bundle = BundleReader::FromBytes(bytes);
    return bundle.ok() ? std::string("accepted") : std::string(bundle.status().message());
  };
  EXPECT_THAT(why("hello"), HasSubstr("not a fusion bundle"));
  const std::string path = folder_ + "/foreign.zip";
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, &error);
  const std::string text(1000, 'a');
  zip_file_add(archive, "manifest.json", zip_source_buffer(archive, text.data(), text.size(), 0), 0);
  ASSERT_EQ(zip_close(archive), 0);
  const auto foreign = BundleReader::Open(path);
  EXPECT_EQ(foreign.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("foreign.zip"));
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("not a fusion bundle"));
}

TEST_F(BundleTest, FullDiskLeavesNothing) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  for (rlim_t bytes : {10, 200, 1000}) {
    rlimit limit = old_limit;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteSmall(folder_ + "/full.fusion");
    setrlimit(RLIMIT_FSIZE, &old_limit);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(BundleTest, MisuseIsInternal) {
  auto writer = BundleWriter::Create(folder_ + "/misuse.fusion");
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->AddEntry("../escape", "").code(), absl::StatusCode::kInternal);
  EXPECT_TRUE((*writer)->AddEntry("a", "").ok());
  EXPECT_EQ((*writer)->AddEntry("a", "").code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->AppendWeights("x").code(), absl::StatusCode::kInternal);
  ASSERT_TRUE((*writer)->BeginWeights({{"w", DType::kF32, {1}}}).ok());
  EXPECT_EQ((*writer)->AddEntry("b", "").code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->Finish(Manifest()).code(), absl::StatusCode::kInternal);
}

TEST(ManifestTest, ValidationNamesTheOffender) {
  const auto why = [](auto change) {
    Manifest manifest = SmallManifest({0, 0, 64});
    manifest.digests["kernels/cpu.so"] = "";
    EXPECT_TRUE(ValidateManifest(manifest, 80).ok());
    change(manifest);
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 192; }), HasSubstr("buffer 3 't'"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[3].offset = 8; }), HasSubstr("multiple of 64"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[2].offset = 128; }), HasSubstr("the weights at 80"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[2].offset = INT64_MAX; }), HasSubstr("offset"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[0].size_bytes = 12; }), HasSubstr("does not hold"));
  EXPECT_THAT(why([](Manifest& m) { m.buffers[0].shape = {-2, 3}; }), HasSubstr("negative"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].buffer = 9; }), HasSubstr("no buffer 9"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].buffer = 4; }), HasSubstr("input buffer of its own"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].shape = {7}; }), HasSubstr("28 bytes"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].kernel = -1; }), HasSubstr("no kernel -1"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].buffers[0] = 5; }), HasSubstr("no buffer 5"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].file = "kernels/none.so"; }), HasSubstr("kernels/none.so"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].phases[0].symbol = "a b"; }), HasSubstr("C identifier"));
  EXPECT_THAT(why([](Manifest& m) { m.arena_bytes = INT64_MAX; }), HasSubstr("arena_bytes"));
}

TEST(ManifestTest, TheAccountOfTheWeights) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.weights = WeightsAccount{60, 80, {{"padding", 24}, {"rewritten", -4}}, 1.25};
  ASSERT_TRUE(ValidateManifest(manifest, 80).ok());
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->weights.has_value());
  EXPECT_EQ(parsed->weights->model_bytes, 60);
  EXPECT_EQ(parsed->weights->bundle_bytes, 80);
  EXPECT_EQ(parsed->weights->causes, manifest.weights->causes);
  EXPECT_EQ(parsed->weights->time_ratio, 1.25);
  manifest.weights->time_ratio = 0;
  EXPECT_THAT(SerializeManifest(manifest), Not(HasSubstr("time_ratio")));
  // Bundles of older writers have no account of weights.
  manifest.weights.reset();
  EXPECT_FALSE(ParseManifest(SerializeManifest(manifest))->weights.has_value());

  const auto why = [&](const WeightsAccount& weights) {
    manifest.weights = weights;
    return std::string(ValidateManifest(manifest, 80).message());
  };
  EXPECT_THAT(why({60, 81, {{"padding", 21}}}), HasSubstr("bundle_bytes is 81, the entry has 80"));
  EXPECT_THAT(why({60, 80, {{"padding", 21}}}), HasSubstr("model_bytes and causes are 81 bytes"));
  EXPECT_THAT(why({-1, 80, {{"padding", 81}}}), HasSubstr("model_bytes is out of range"));
  EXPECT_THAT(why({80, 80, {{"padding", INT64_MAX}}}), HasSubstr("cause 'padding' is out of range"));
  EXPECT_THAT(why({80, 80, {}, -1}), HasSubstr("time_ratio is out of range"));
  EXPECT_THAT(why({80, 80, {}, std::nan("")}), HasSubstr("time_ratio is out of range"));
}

TEST(ManifestTest, ExtentsOfOutputs) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 2;
  manifest.buffers.push_back({Buffer::Kind::kOutput, "n", DType::kI64, {}, 8, 0, ""});
  manifest.outputs[0].extents = {5, -1};
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->outputs[0].extents, (std::vector<int>{5, -1}));
  EXPECT_TRUE(parsed->inputs[0].extents.empty());
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {5}; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.format = 1; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.inputs[0].extents = {5, -1}; }), HasSubstr("cannot have these extents"));
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {6, -1}; }), HasSubstr("no buffer 6"));
  EXPECT_THAT(why([](Manifest& m) { m.outputs[0].extents = {3, -1}; }), HasSubstr("buffer 3 is no extent"));
}

TEST(ManifestTest, ChecksOfTheRun) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 9;
  manifest.buffers.push_back({Buffer::Kind::kOutput, "meets", DType::kI64, {3}, 24, 0, ""});
  manifest.checks.push_back({5, "{1} and {2} meet"});
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->checks.size(), 1u);
  EXPECT_EQ(parsed->checks[0].buffer, 5);
  EXPECT_EQ(parsed->checks[0].message, "{1} and {2} meet");
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 8; }), HasSubstr("format 9"));
  EXPECT_THAT(why([](Manifest& m) { m.checks[0].buffer = 6; }), HasSubstr("no buffer 6"));
  EXPECT_THAT(why([](Manifest& m) { m.checks[0].buffer = 3; }), HasSubstr("no vector of i64 that is kept"));
  // A bundle without checks has the same text as before checks existed.
  manifest.checks.clear();
  EXPECT_THAT(SerializeManifest(manifest), testing::Not(HasSubstr("checks")));
}

TEST(ManifestTest, PersistentKernels) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 5;
  manifest.kernels[0].persistent = true;
  manifest.kernels[0].phases.resize(1);
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->kernels[0].persistent);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed);
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 4; }), HasSubstr("format 5"));
  EXPECT_THAT(why([](Manifest& m) { m.kernels[0].phases.resize(2, m.kernels[0].phases[0]); }), HasSubstr("one phase"));
}

TEST(ManifestTest, Batches) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 8;
  manifest.launches[0].others = {{1, 0, 4}, {0, 0, 4}};
  ASSERT_TRUE(ValidateManifest(manifest, 256).ok()) << ValidateManifest(manifest, 256);
  const absl::StatusOr<Manifest> parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->launches[0].others, manifest.launches[0].others);
  EXPECT_EQ(SerializeManifest(*parsed), SerializeManifest(manifest));
  const auto why = [&](const std::function<void(Manifest&)>& change) {
    Manifest other = manifest;
    change(other);
    return std::string(ValidateManifest(other, 256).message());
  };
  EXPECT_THAT(why([](Manifest& m) { m.format = 7; }), HasSubstr("format 8"));
  EXPECT_THAT(why([](Manifest& m) { m.target = "opencl"; }), HasSubstr("target cpu"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].others[1].pop_back(); }), HasSubstr("sets of different size"));
  EXPECT_THAT(why([](Manifest& m) { m.launches[0].others[0][2] = 5; }), HasSubstr("no buffer 5"));
}

TEST(ManifestTest, ProductsOfALibrary) {
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 6;
  manifest.kernels[0].phases.resize(1);
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {3, 5}, 60, 0, ""},
                      {Buffer::Kind::kInput, "y", DType::kF32, {5, 4}, 80, 0, ""},
                      {Buffer::Kind::kOutput, "z", DType::kF32, {3, 4}, 48, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {3, 5}, 0}, {"y", DType::kF32, {5, 4}, 1}};
  manifest.outputs = {{"z", DType::kF32, {3, 4}, 2}};
  manifest.launches.resize(1);
  manifest.launches[0].buffers = {0, 1, 2};
  auto& product = manifest.kernels[0].phases[0].library.emplace().emplace<LibraryProduct>();
  product.a = 1, product.b = 0, product.d = 2;
  product.m = 4, product.n = 3, product.depth = 5;
  product.b_along_depth = true;
  product.a_pitch = 4, product.b_pitch = 5, product.d_pitch = 4;
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->kernels[0].phases[0].library.has_value());
  const auto* again = std::get_if<LibraryProduct>(&*parsed->kernels[0].phases[0].library);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->b_pitch, 5);
  EXPECT_TRUE(again->b_along_depth);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed, std::get<LibraryProduct>(*changed.kernels[0].phases[0].library));
    return std::string(ValidateManifest(changed, 80).message());
  };
  EXPECT_THAT(why([](Manifest& m, LibraryProduct&) { m.format = 5; }), HasSubstr("format 6"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.b = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.bias = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.n = 0; }), HasSubstr("0 rows"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.a_batch = -1; }), HasSubstr("-1 elements apart"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.depth = 6; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, LibraryProduct& p) { p.batches = INT32_MAX, p.d_batch = INT32_MAX; }),
              HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest& m, LibraryProduct&) {
                m.buffers[1].dtype = DType::kI32;
                m.inputs[1].dtype = DType::kI32;
              }),
              HasSubstr("a product of i32"));
}

TEST(ManifestTest, ConvolutionsOfALibrary) {
  // The input is two images of 5 × 6 pixels and 4 channels. The filter has 3 × 3 taps in 2 groups. Rows have stride 2
  // and a padding of 1.
  Manifest manifest = SmallManifest({0, 0, 64});
  manifest.digests["kernels/cpu.so"] = "";
  manifest.format = 7;
  manifest.kernels[0].phases.resize(1);
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {2, 4, 5, 6}, 960, 0, ""},
                      {Buffer::Kind::kInput, "w", DType::kF32, {6, 2, 3, 3}, 432, 0, ""},
                      {Buffer::Kind::kOutput, "y", DType::kF32, {2, 6, 3, 4}, 576, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {2, 4, 5, 6}, 0}, {"w", DType::kF32, {6, 2, 3, 3}, 1}};
  manifest.outputs = {{"y", DType::kF32, {2, 6, 3, 4}, 2}};
  manifest.launches.resize(1);
  manifest.launches[0].buffers = {0, 1, 2};
  auto& c = manifest.kernels[0].phases[0].library.emplace().emplace<LibraryConvolution>();
  c.x = 0, c.w = 1, c.y = 2;
  c.images = 2, c.channels = 4, c.results = 6, c.groups = 2;
  c.in = {5, 6}, c.taps = {3, 3}, c.out = {3, 4}, c.stride = {2, 1}, c.pad = {1, 0};
  c.x_pitch = {120, 30, 6, 1}, c.y_pitch = {72, 12, 4, 1};
  const auto parsed = ParseManifest(SerializeManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->kernels[0].phases[0].library.has_value());
  const auto* again = std::get_if<LibraryConvolution>(&*parsed->kernels[0].phases[0].library);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->x_pitch, c.x_pitch);
  EXPECT_EQ(again->stride, c.stride);
  EXPECT_TRUE(ValidateManifest(*parsed, 80).ok()) << ValidateManifest(*parsed, 80);
  const auto why = [&](auto change) {
    Manifest changed = manifest;
    change(changed, std::get<LibraryConvolution>(*changed.kernels[0].phases[0].library));
    return std::string(ValidateManifest(changed, 80).message());
  };
  using C = LibraryConvolution;
  EXPECT_THAT(why([](Manifest& m, C&) { m.format = 6; }), HasSubstr("format 7"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.w = 3; }), HasSubstr("no argument 3"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.y = -1; }), HasSubstr("no argument -1"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.groups = 0; }), HasSubstr("0 images"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.groups = 4; }), HasSubstr("4 groups"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.stride[1] = 0; }), HasSubstr("0 images"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.pad[0] = -1; }), HasSubstr("3 taps into 3"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.out[0] = 4; }), HasSubstr("3 taps into 4"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.dilation[1] = 6; }), HasSubstr("3 taps into 4"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.x_pitch[2] = 0; }), HasSubstr("0 apart"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.x_pitch[0] = 121; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.y_pitch[0] = INT32_MAX; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest&, C& c) { c.results = 12, c.y_pitch[1] = 6; }), HasSubstr("leaves its buffers"));
  EXPECT_THAT(why([](Manifest& m, C&) {
                m.buffers[1].dtype = DType::kF16;
                m.buffers[1].size_bytes = 216;
                m.inputs[1].dtype = DType::kF16;
              }),
              HasSubstr("a convolution of f32 with f16"));
  std::string text = SerializeManifest(manifest);
  const std::string from = "\"taps\": [\n", to = "\"taps\": [7,\n";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  text.replace(text.find(from), from.size(), to);
  EXPECT_THAT(std::string(ParseManifest(text).status().message()), HasSubstr("taps does not hold 2 integers"));
}

TEST(ManifestTest, ParsingNamesTheField) {
  const auto why = [](const std::string& from, const std::string& to) {
    std::string text = SerializeManifest(SmallManifest({0, 0, 64}));
    EXPECT_TRUE(ParseManifest(text).ok());
    text.replace(text.find(from), from.size(), to);
    return std::string(ParseManifest(text).status().message());
  };
  EXPECT_THAT(why("\"format\": 1", "\"format\": " + std::to_string(kNewestFormat + 1)), HasSubstr("newer runtime"));
  EXPECT_THAT(why("\"arena_bytes\": 128", "\"arena_bytes\": \"128\""), HasSubstr("arena_bytes is not an integer"));
  EXPECT_THAT(why("\"tasks\": 2", "\"tasks\": 1e300"), HasSubstr("kernels[0].phases[0].tasks is not an integer"));
  EXPECT_THAT(why("\"kind\": \"arena\"", "\"kind\": \"area\""), HasSubstr("buffers[3].kind"));
  EXPECT_THAT(why("\"dtype\": \"i64\"", "\"dtype\": \"i63\""), HasSubstr("buffers[2].dtype"));
  EXPECT_THAT(why("\"label\":", "\"lable\":"), HasSubstr("launches[0].label is missing"));
  EXPECT_THAT(why("\"launches\": [", "\"launches\": 5, \"x\": ["), HasSubstr("launches is not an array"));
  EXPECT_THAT(why("{", "["), HasSubstr("not JSON"));
  EXPECT_THAT(why("\"format\": 1", "\"format\": 1, \"weights\": 3"), HasSubstr("weights. is not an object"));
  EXPECT_THAT(why("\"format\": 1", "\"format\": 1, \"weights\": {\"model_bytes\": 1}"),
              HasSubstr("weights.bundle_bytes is missing"));
}

TEST(TargetPathTest, TheTargetStandsBeforeTheExtension) {
  EXPECT_EQ(PathForTarget("a.b/model.fusion", "cpu"), "a.b/model.cpu.fusion");
  EXPECT_EQ(PathForTarget("model.v2.fusion", "cuda:sm_90"), "model.v2.cuda-sm_90.fusion");
  EXPECT_EQ(PathForTarget("a.b/model", "opencl"), "a.b/model.opencl");
}

}  // namespace
}  // namespace fusion
