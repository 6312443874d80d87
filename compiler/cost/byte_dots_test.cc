#include "compiler/cost/byte_dots.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(ByteDots, AreOfInstructionSetsThatNameThem) {
  DeviceModel device;
  for (const char* isa : {"avx2", "avx512", "neon"}) {
    device.isa = isa;
    EXPECT_FALSE(HasByteDots(device)) << isa;
  }
  device.isa = "avx512vnni";
  EXPECT_TRUE(HasByteDots(device));
  device.byte_dots = false;
  EXPECT_FALSE(HasByteDots(device));
}

}  // namespace
}  // namespace fusion
