#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zip.h>

#include <filesystem>
#include <random>

#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/testing/small_manifest.h"
#include "runtime/bundle/zip_format.h"

namespace fusion {
namespace {

using ::fusion::testing::SmallManifest;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace fusion
