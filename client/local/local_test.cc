#include <onnx/onnx_pb.h>

#include <fstream>

#include "client/local/tensor_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/npy.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

Tensor F32(const std::vector<double>& values) {
  return Tensor::From(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

TEST(FileNameOf, IsNeverAPath) {
  EXPECT_EQ(FileNameOf("logits"), "logits");
  EXPECT_EQ(FileNameOf("../../etc/passwd"), "_.._.._etc_passwd");
  EXPECT_EQ(FileNameOf(""), "_");
  EXPECT_EQ(FileNameOf("*/ system(\"x\")\n"), "___system__x___");
}

class TensorFilesTest : public testing::Test {
 protected:
  void SetUp() override { manifest_.inputs = {{"a=b", DType::kF32, {2}, 0}, {"ids", DType::kI64, {3}, 1}}; }
  std::string Path(const std::string& name) { return testing::TempDir() + "/tensor_files_" + name; }
  Manifest manifest_;
};

TEST_F(TensorFilesTest, ReadsNpyAndProtoAndFillsTheRest) {
  ASSERT_TRUE(WriteNpyFile(Path("x.npy"), F32({1, 2})).ok());
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::INT64);
  proto.add_dims(3);
  for (int i = 0; i < 3; ++i) proto.add_int64_data(7 + i);
  std::ofstream(Path("ids.pb"), std::ios::binary) << proto.SerializeAsString();
  auto inputs = AssembleInputs(manifest_, {{"a=b=" + Path("x.npy"), "ids=" + Path("ids.pb")}, -1, 1});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].GetDouble(1), 2);
  EXPECT_EQ((*inputs)[1].GetInt(2), 9);

  auto random = AssembleInputs(manifest_, {{}, 5, 1});
  ASSERT_TRUE(random.ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE((*random)[1].GetInt(i), 0);
    EXPECT_LE((*random)[1].GetInt(i), 1);
  }
}

TEST_F(TensorFilesTest, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(std::string(AssembleInputs(manifest_, {}).status().message()), HasSubstr("'a=b'"));
  EXPECT_THAT(std::string(AssembleInputs(manifest_, {{"nope=x.npy"}, 1, 1}).status().message()), HasSubstr("'ids'"));
  ASSERT_TRUE(WriteNpyFile(Path("wrong.npy"), F32({1, 2, 3})).ok());
  const absl::Status wrong = AssembleInputs(manifest_, {{"a=b=" + Path("wrong.npy")}, 1, 1}).status();
  EXPECT_THAT(std::string(wrong.message()), testing::AllOf(HasSubstr("f32[3]"), HasSubstr("f32[2]")));
  std::ofstream(Path("bad.pb")) << "not a proto at all";
  EXPECT_FALSE(ReadTensorFile(Path("bad.pb")).ok());
}

}  // namespace
}  // namespace fusion
