#include "compiler/backends/toolchain_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Gives each unit a binary that names the toolchain and the number of units it was asked for together.
class FakeToolchain : public LocalToolchain {
 public:
  FakeToolchain(std::string kind, std::vector<size_t>* calls) : kind_(std::move(kind)), calls_(calls) {}
  const char* kind() const override { return kind_.c_str(); }
  const std::string& version() const override { return kind_; }
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>&) const override {
    calls_->push_back(units.size());
    std::vector<std::string> binaries;
    for (const BuildUnit& unit : units) {
      if (unit.source == "error") return absl::InvalidArgumentError("line 1: error");
      binaries.push_back(absl::StrCat(kind_, " of ", unit.source));
    }
    return binaries;
  }

 private:
  const std::string kind_;
  std::vector<size_t>* const calls_;
};

class ToolchainSetTest : public ::testing::Test {
 protected:
  ToolchainSetTest() {
    std::vector<std::unique_ptr<LocalToolchain>> toolchains;
    for (const char* kind : {"cpu", "cuda"}) toolchains.push_back(std::make_unique<FakeToolchain>(kind, &calls_));
    set_ = std::make_unique<ToolchainSet>(std::move(toolchains));
  }
  std::vector<size_t> calls_;
  std::unique_ptr<ToolchainSet> set_;
};

TEST_F(ToolchainSetTest, BinariesAreParallelToTheUnits) {
  const auto binaries = set_->Build({{"cuda", "m", "a"}, {"cpu", "m", "b"}, {"cuda", "m", "c"}});
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_THAT(*binaries, ElementsAre("cuda of a", "cpu of b", "cuda of c"));
  EXPECT_THAT(calls_, ElementsAre(1, 2)) << "one call for each kind";
}

TEST_F(ToolchainSetTest, AnErrorIsTheToolchains) {
  EXPECT_EQ(set_->Build({{"cpu", "m", "a"}, {"cuda", "m", "error"}}).status(),
            absl::InvalidArgumentError("line 1: error"));
}

TEST_F(ToolchainSetTest, AKindWithoutAToolchainIsNamed) {
  const absl::Status status = set_->Build({{"opencl", "m", "a"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'opencl'"));
  EXPECT_TRUE(set_->Build({}).ok());
}

}  // namespace
}  // namespace fusion
