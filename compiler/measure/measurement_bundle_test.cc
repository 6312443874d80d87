#include "compiler/measure/measurement_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/backends/toolchain.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/measure/testing/pairs.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {
namespace {

class NoToolchain : public Toolchain {
 public:
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    return std::vector<std::string>(units.size(), "a binary");
  }
};

class MeasurementBundlesTest : public ::testing::Test {
 protected:
  MeasurementBundlesTest() {
    context_.device = &device_;
    context_.toolchain = &toolchain_;
    kernels_.Start(&maker_.graph(), &layouts_, &device_);
  }
  const testing::GraphMaker maker_ = testing::TwentyPairs();
  const DeviceModel device_ = testing::Avx512Device();
  const ValueLayouts layouts_;
  NoToolchain toolchain_;
  CompileContext context_;
  KernelCache kernels_{1};
  MeasurementBundles bundles_{context_, 1};
};

TEST_F(MeasurementBundlesTest, OfTwoKernelsTheSecondReadsWhatTheFirstWrote) {
  const auto first = kernels_.Get({0}), second = kernels_.Get({1});
  ASSERT_TRUE(first.ok() && second.ok());
  bundles_.Add("apart", {*first, *second});
  const auto written = bundles_.MakeBundles({"apart"});
  ASSERT_TRUE(written.ok()) << written.status();
  const std::string path = ::testing::TempDir() + "/apart.fusion";
  std::ofstream(path, std::ios::binary) << written->at(0);
  const auto bundle = BundleReader::Open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const Manifest& manifest = (*bundle)->manifest();
  ASSERT_EQ(manifest.launches.size(), 2u);
  EXPECT_EQ(manifest.inputs.size(), 1u);
  ASSERT_EQ(manifest.outputs.size(), 2u);
  const int between = manifest.outputs[0].buffer;
  EXPECT_THAT(manifest.launches[0].buffers, ::testing::ElementsAre(manifest.inputs[0].buffer, between));
  EXPECT_THAT(manifest.launches[1].buffers, ::testing::ElementsAre(between, manifest.outputs[1].buffer));
}

TEST_F(MeasurementBundlesTest, AKeyThatWasNotAddedIsAnError) {
  EXPECT_THAT(bundles_.MakeBundles({"absent"}).status().message(), ::testing::HasSubstr("absent"));
}

}  // namespace
}  // namespace fusion
