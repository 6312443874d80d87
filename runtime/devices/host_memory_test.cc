#include "runtime/devices/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(HostMemory, IsZeroedAndBeginsAtAPage) {
  for (const int64_t bytes : {int64_t{1}, int64_t{4096}, int64_t{9} << 20}) {
    const auto memory = HostMemory::Allocate(bytes, "a test");
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % static_cast<uintptr_t>(getpagesize()), 0u);
    for (int64_t at = 0; at < bytes; at += 511) ASSERT_EQ(memory->data()[at], 0);
    memory->data()[bytes - 1] = 1;
  }
}

TEST(HostMemory, NothingNeedsNoMemory) {
  const auto memory = HostMemory::Allocate(0, "a test");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->data(), nullptr);
}

TEST(HostMemory, MovesWithItsBytes) {
  auto memory = HostMemory::Allocate(100, "a test");
  ASSERT_TRUE(memory.ok());
  memory->data()[7] = 'x';
  char* const data = memory->data();
  HostMemory moved(*std::move(memory));
  EXPECT_EQ(moved.data(), data);
  HostMemory assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.data()[7], 'x');
}

TEST(HostMemory, WhatIsNotThereIsNamed) {
  for (const int64_t bytes : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    const absl::Status status = HostMemory::Allocate(bytes, "the bundle's buffers").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << bytes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the bundle's buffers"));
  }
}

}  // namespace
}  // namespace fusion
