#include "compiler/backends/cuda/cubin_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/backends/cuda/testing/fake_cubin.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(CubinResources, OfEachFunction) {
  const ResourcesBySymbol functions = {{"k_0_p0", {96, 0, 4096}}, {"k_0_p1", {32, 64, 0}}, {"k_12_p0", {255, 8, 48}}};
  const absl::StatusOr<ResourcesBySymbol> read = ResourcesOfCubin(FakeCubin(functions));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, functions);
}

TEST(CubinResources, WhatIsCutShortIsRefused) {
  const std::string whole = FakeCubin({{"k_0_p0", {96, 16, 4096}}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::StatusOr<ResourcesBySymbol> read = ResourcesOfCubin(whole.substr(0, size));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

// Whatever a byte becomes, the reader stays within the file.
TEST(CubinResources, DamagedBytesDoNoHarm) {
  const std::string whole = FakeCubin({{"k_0_p0", {96, 16, 4096}}, {"k_1_p0", {40, 0, 0}}});
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\x00', '\x7f', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      const absl::StatusOr<ResourcesBySymbol> read = ResourcesOfCubin(damaged);
      EXPECT_TRUE(read.ok() || read.status().code() == absl::StatusCode::kInvalidArgument) << at;
    }
  }
}

TEST(CubinResources, TextIsNoCubin) {
  EXPECT_THAT(std::string(ResourcesOfCubin(std::string(4096, 'x')).status().message()), HasSubstr("no cubin"));
}

}  // namespace
}  // namespace fusion
