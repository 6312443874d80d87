#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/npy.h"
#include "runtime/base/random_inputs.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/files_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  int CountFiles() const { return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  std::string folder_;
};

TEST_F(FilesTest, CommitReplacesAndAbandonLeavesNothing) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("new").ok());
    EXPECT_EQ((*MappedFile::Open(path))->bytes(), "old");
  }
  EXPECT_EQ(CountFiles(), 1);
  EXPECT_EQ((*MappedFile::Open(path))->bytes(), "old");
  ASSERT_TRUE(WriteFileAtomically(path, "newer").ok());
  EXPECT_EQ((*MappedFile::Open(path))->bytes(), "newer");
}

TEST_F(FilesTest, AKilledWriterLeavesNothingForLong) {
  const std::string path = folder_ + "/a";
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::Create(path);
    (void)(*file)->Append("half");
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  // The first file is what a killed writer leaves on a file system without nameless files; another process is still
  // writing the second.
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  const std::string prefix = folder_ + "/.fusion-tmp-" + host + "-";
  std::ofstream(prefix + std::to_string(child) + "-0") << "half";
  std::ofstream(prefix + std::to_string(getpid()) + "-7") << "half";
  ASSERT_TRUE(WriteFileAtomically(path, "whole").ok());
  EXPECT_EQ(CountFiles(), 2);
  EXPECT_TRUE(std::filesystem::exists(prefix + std::to_string(getpid()) + "-7"));
}

TEST_F(FilesTest, FullDiskIsResourceExhausted) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status = WriteFileAtomically(folder_ + "/big", std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &old_limit);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("big"));
  EXPECT_EQ(CountFiles(), 0);
}

TEST_F(FilesTest, OpenNamesThePath) {
  EXPECT_EQ(MappedFile::Open(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(AtomicFile::Create(folder_ + "/missing/file").ok());
}

TEST(NpyTest, EveryTypeRoundTrips) {
  for (int i = 0; i < kNumDTypes; ++i) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 5}, Shape{4, 0}}) {
      const Tensor tensor = RandomTensor(static_cast<DType>(i), shape, 7, 100);
      const auto parsed = ParseNpy(SerializeNpy(tensor));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(parsed->shape(), shape);
      if (IsNarrowInt(tensor.dtype()) || IsByteFloat(tensor.dtype())) {
        EXPECT_EQ(parsed->dtype(), IsSigned(tensor.dtype()) && !IsFloat(tensor.dtype()) ? DType::kI8 : DType::kU8);
        for (int64_t e = 0; e < tensor.num_elements(); ++e) EXPECT_EQ(parsed->as<char>()[e], tensor.as<char>()[e]);
        continue;
      }
      EXPECT_EQ(parsed->dtype(), tensor.dtype());
      for (int64_t e = 0; e < tensor.num_elements(); ++e) EXPECT_EQ(parsed->GetDouble(e), tensor.GetDouble(e));
    }
  }
}

std::string Npy(int version, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes.append(version == 1 ? 1 : 3, '\0');
  return bytes + header + data;
}

TEST(NpyTest, ReadsVersionTwoAndForeignSpacing) {
  const auto tensor = ParseNpy(Npy(2, "{\"shape\":(2,),'fortran_order': False,'descr':'<i2'}\n", {"\1\0\2\0", 4}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->GetInt(1), 2);
}

TEST(NpyTest, ReadsBytesOfForeignTypes) {
  for (const char* descr : {"<V1", "|V1", "<f1"}) {
    const auto tensor = ParseNpy(Npy(1, absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (2,)}"),
                                     {"\x38\x7f", 2}));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), DType::kU8);
    EXPECT_EQ(tensor->GetInt(1), 0x7f);
  }
}

TEST(NpyTest, RejectsWithReason) {
  const std::string four(4, '\0');
  const auto why = [](const std::string& bytes) {
    const auto tensor = ParseNpy(bytes);
    return tensor.ok() ? std::string("accepted") : std::string(tensor.status().message());
  };
  EXPECT_THAT(why("hello world"), HasSubstr("magic"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", four)), HasSubstr("column-major"));
  EXPECT_THAT(why(Npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", four)), HasSubstr("big-endian"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", four)), HasSubstr("'<c8'"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", four)), HasSubstr("needs 8"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", four)), HasSubstr("extent"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False}", four)), HasSubstr("lacks"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4'", four)), HasSubstr("','"));
  EXPECT_THAT(why(Npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\2")), HasSubstr("bool"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,99999999999), }", four)),
              HasSubstr("1 TiB"));
}

TEST(NpyTest, EveryTruncationIsRejected) {
  const std::string bytes = SerializeNpy(RandomTensor(DType::kF32, {3, 2}, 1));
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(ParseNpy(bytes.substr(0, length)).ok());
}

TEST(RandomInputsTest, SeededAndInRange) {
  const Tensor a = RandomTensor(DType::kF32, {1000}, 5), b = RandomTensor(DType::kF32, {1000}, 5);
  const Tensor c = RandomTensor(DType::kF32, {1000}, DeriveSeed(5, 1));
  double sum = 0;
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.GetDouble(i), b.GetDouble(i));
    EXPECT_GE(a.GetDouble(i), -1.0);
    EXPECT_LT(a.GetDouble(i), 1.0);
    equal += a.GetDouble(i) == c.GetDouble(i);
    sum += a.GetDouble(i);
  }
  EXPECT_LT(std::fabs(sum), 60);  // standard deviation of the sum is 18
  EXPECT_LT(equal, 5);
  EXPECT_EQ(RandomTensor(DType::kF32, {1}, 0).GetDouble(0), RandomTensor(DType::kF64, {1}, 0).GetDouble(0));
  const Tensor ids = RandomTensor(DType::kI64, {1000}, 1, 10);
  int64_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GE(ids.GetInt(i), 0);
    largest = std::max(largest, ids.GetInt(i));
  }
  EXPECT_EQ(largest, 9);
}

}  // namespace
}  // namespace fusion
