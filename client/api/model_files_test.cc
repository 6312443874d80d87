#include "client/api/model_files.h"

#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/api/model_scan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ModelFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "model_files_test" /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model");
    auto* opset = model_.add_opset_import();
    opset->set_version(13);
    for (const char* op : {"Conv", "Constant", "Relu"}) model_.mutable_graph()->add_node()->set_op_type(op);
  }

  void AddExternal(const std::string& tensor, const std::string& location) {
    auto* initializer = model_.mutable_graph()->add_initializer();
    initializer->set_name(tensor);
    initializer->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = initializer->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
  }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  absl::StatusOr<LocalModel> Open(int64_t chunk_bytes = 1 << 20) {
    Write("model/m.onnx", model_.SerializeAsString());
    return OpenModel((folder_ / "model/m.onnx").string(), chunk_bytes, (folder_ / "cache").string());
  }

  std::string Refusal() {
    auto opened = Open();
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(opened.status().message());
  }

  fs::path folder_;
  onnx::ModelProto model_;
};

TEST_F(ModelFilesTest, CountsNodesAndCutsChunks) {
  const std::string text = model_.SerializeAsString();
  auto opened = Open(10);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->nodes, 2);
  EXPECT_EQ(opened->opset, 13);
  EXPECT_EQ(opened->sha256, Sha256Hex(text));
  ASSERT_EQ(opened->files[0].chunk_digests.size(), (text.size() + 9) / 10);
  EXPECT_EQ(opened->files[0].chunk_digests[1], Sha256Hex(text.substr(10, 10)));
  EXPECT_EQ(std::string(opened->files[0].Chunk(1, 10)), text.substr(10, 10));
}

TEST_F(ModelFilesTest, ExternalDataIsFoundOnceAlsoInsideAttributes) {
  AddExternal("w", "data/w.bin");
  AddExternal("v", "data/w.bin");
  auto* attribute = model_.mutable_graph()->mutable_node(1)->add_attribute();
  attribute->mutable_t()->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = attribute->mutable_t()->add_external_data();
  entry->set_key("location");
  entry->set_value("c.bin");
  fs::create_directories(folder_ / "model/data");
  Write("model/data/w.bin", "weights");
  Write("model/c.bin", "constant");
  auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->files.size(), 3);
  std::vector<std::string> paths = {opened->files[1].path, opened->files[2].path};
  EXPECT_THAT(paths, testing::UnorderedElementsAre("data/w.bin", "c.bin"));
}

TEST_F(ModelFilesTest, ExternalDataMustStayBeneathTheFolder) {
  Write("secret", "secret");
  fs::create_symlink(folder_ / "secret", folder_ / "model/link");
  for (const std::string& location :
       {std::string("../secret"), (folder_ / "secret").string(), std::string("link"), std::string("a/../../secret")}) {
    model_.mutable_graph()->clear_initializer();
    fs::create_directories(folder_ / "model/a");
    AddExternal("w", location);
    EXPECT_THAT(Refusal(), testing::AllOf(HasSubstr("outside the model's folder"), HasSubstr(location)));
  }
}

TEST_F(ModelFilesTest, MissingExternalDataIsNamed) {
  AddExternal("w", "w.bin");
  EXPECT_THAT(Refusal(), testing::AllOf(HasSubstr("'w.bin'"), HasSubstr("missing")));
}

TEST_F(ModelFilesTest, DigestsOfAnUnchangedFileAreRememberedAndOfAChangedOneNot) {
  auto* initializer = model_.mutable_graph()->add_initializer();
  initializer->set_raw_data(std::string(3 << 20, 'x'));
  ASSERT_TRUE(Open().ok());
  const fs::path path = folder_ / "model/m.onnx";
  initializer->set_raw_data(std::string(3 << 20, 'y'));
  auto changed = Open();
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->sha256, Sha256Hex(model_.SerializeAsString()));
}

TEST(ScanModel, RefusesWhatIsNoModel) {
  onnx::ModelProto model;
  model.mutable_graph()->add_node()->set_op_type("Relu");
  const std::string good = model.SerializeAsString();
  EXPECT_TRUE(ScanModel(good).ok());
  EXPECT_THAT(std::string(ScanModel(good.substr(0, good.size() - 2)).status().message()), HasSubstr("cut off"));
  for (const char* text : {"hello, this is no model", "\x07", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    EXPECT_EQ(ScanModel(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(ScanModel("").status().message()), HasSubstr("no graph"));
}

TEST(ScanModel, ReadsNoWeights) {
  const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  onnx::ModelProto model;
  model.mutable_graph()->add_initializer()->set_raw_data(std::string(64 * page_bytes, 'w'));
  model.mutable_graph()->add_node()->set_op_type("Relu");
  const std::string bytes = model.SerializeAsString();
  void* const mapped = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  memcpy(mapped, bytes.data(), bytes.size());
  // A read of any of these pages would end the process.
  const size_t first_page = bytes.find(std::string(page_bytes, 'w')) / page_bytes + 1;
  ASSERT_EQ(mprotect(static_cast<char*>(mapped) + first_page * page_bytes, 62 * page_bytes, PROT_NONE), 0);
  const auto scan = ScanModel({static_cast<const char*>(mapped), bytes.size()});
  munmap(mapped, bytes.size());
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_EQ(scan->nodes, 1);
}

TEST(ScanModel, RefusesDeepNesting) {
  onnx::GraphProto graph;
  for (int i = 0; i < 60; ++i) {
    onnx::GraphProto outer;
    *outer.add_node()->add_attribute()->mutable_g() = graph;
    graph = std::move(outer);
  }
  onnx::ModelProto model;
  *model.mutable_graph() = graph;
  EXPECT_EQ(ScanModel(model.SerializePartialAsString()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fusion
