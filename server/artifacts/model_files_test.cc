#include "server/artifacts/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelFilesTest : public ::testing::Test {
 protected:
  // Adds a file of these bytes to the request, and its chunks to the store.
  void Add(const std::string& path, const std::string& bytes) {
    v1::ModelFile& file = *request_.add_files();
    file.set_path(path);
    file.set_size_bytes(static_cast<int64_t>(bytes.size()));
    for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
      file.add_chunk_digests(state_.artifacts().Put(bytes.substr(at, kChunkBytes))->digest);
    }
  }
  std::string Refusal() {
    const absl::Status status = CheckModelFiles(request_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  testing::TemporaryState state_;
  v1::SubmitRequest request_;
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST_F(ModelFilesTest, FilesAreAssembledFromTheirChunksUnderNamesOfTheServer) {
  std::string large(kChunkBytes + 5, 'a');
  large[kChunkBytes] = 'b';
  request_.set_model_name("a model");
  Add("model.onnx", "the model");
  Add("data/weights.bin", large);
  Add("empty", "");
  ASSERT_TRUE(CheckModelFiles(request_).ok()) << CheckModelFiles(request_);
  ASSERT_TRUE(CheckChunksPresent(request_, state_.artifacts()).ok());
  const auto files = AssembleModel(request_, state_.artifacts(), state_.folder() + "/job/files");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->model_name, "a model");
  EXPECT_EQ(Contents(files->model_path), "the model");
  ASSERT_EQ(files->external.count("data/weights.bin"), 1u);
  EXPECT_EQ(Contents(files->external.at("data/weights.bin")), large);
  EXPECT_EQ(Contents(files->external.at("empty")), "");
  for (const auto& [location, path] : files->external) {
    EXPECT_EQ(std::filesystem::path(path).parent_path(), state_.folder() + "/job/files") << location;
  }
}

TEST_F(ModelFilesTest, PathsThatLeaveTheModelsFolderAreRefused) {
  EXPECT_THAT(Refusal(), HasSubstr("needs files"));
  Add("/anywhere/model.onnx", "the model");
  EXPECT_TRUE(CheckModelFiles(request_).ok()) << "the model's own path is a name for people";
  for (const std::string& path :
       {std::string(), std::string("/etc/passwd"), std::string("../x"), std::string("a/../../x"), std::string("a/.."),
        std::string("a\0b", 3), std::string(5000, 'a')}) {
    Add(path, "x");
    EXPECT_THAT(Refusal(), HasSubstr("is not a relative path")) << path;
    request_.mutable_files()->RemoveLast();
  }
  Add("..data/a..b", "x");
  EXPECT_TRUE(CheckModelFiles(request_).ok()) << "dots in names";
}

TEST_F(ModelFilesTest, SizesAndChunksMustAgree) {
  Add("model.onnx", "the model");
  v1::ModelFile& file = *request_.mutable_files(0);
  file.set_size_bytes(kChunkBytes + 1);
  EXPECT_THAT(Refusal(), HasSubstr("has 1 chunks"));
  file.set_size_bytes(0);
  EXPECT_THAT(Refusal(), HasSubstr("of 0 bytes has 1 chunks"));
  for (const int64_t bytes : {int64_t{-1}, kMaxModelBytes + 1, std::numeric_limits<int64_t>::max()}) {
    file.set_size_bytes(bytes);
    EXPECT_THAT(Refusal(), HasSubstr("model larger than")) << bytes;
  }
  file.set_size_bytes(9);
  file.set_chunk_digests(0, "../../secret");
  EXPECT_THAT(Refusal(), HasSubstr("64 lower-case hex digits"));
}

TEST_F(ModelFilesTest, FilesTogetherHaveALimit) {
  for (int i = 0; i < 3; ++i) {
    v1::ModelFile& file = *request_.add_files();
    file.set_path(absl::StrCat("f", i));
    file.set_size_bytes(kMaxModelBytes / 2);
    for (int64_t c = 0; c < kMaxModelBytes / 2 / kChunkBytes; ++c) file.add_chunk_digests(std::string(64, 'a'));
  }
  EXPECT_THAT(Refusal(), HasSubstr("model larger than"));
  request_.clear_files();
  for (int i = 0; i <= kMaxModelFiles; ++i) request_.add_files();
  EXPECT_THAT(Refusal(), HasSubstr("10001 files; at most 10000"));
}

TEST_F(ModelFilesTest, MissingChunksAreNamed) {
  Add("model.onnx", "the model");
  v1::ModelFile& file = *request_.add_files();
  file.set_path("weights");
  for (int i = 0; i < 6; ++i) file.add_chunk_digests(Sha256Hex(absl::StrCat("absent ", i)));
  const absl::Status status = CheckChunksPresent(request_, state_.artifacts());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("6 chunks"), HasSubstr(Sha256Hex("absent 0")), HasSubstr("…")));
}

TEST_F(ModelFilesTest, AChunkOfAnotherSizeIsRefused) {
  Add("model.onnx", "the model");
  request_.mutable_files(0)->set_size_bytes(8);
  const absl::Status status = AssembleModel(request_, state_.artifacts(), state_.folder() + "/job").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 9 bytes, expected 8"));
}

}  // namespace
}  // namespace fusion
