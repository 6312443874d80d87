#include "server/scheduler/device_wish.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DeviceWishTest, EveryRequirementMustHold) {
  AttachedWorker worker;
  worker.name = "rack7", worker.fingerprint = "abcdef", worker.measure_kinds = {"cpu"};
  worker.device.kind = "cpu", worker.device.isa = "avx512";
  worker.labels = {{"room", "2"}};
  EXPECT_TRUE(DeviceWish("cpu").Fits(worker));
  EXPECT_TRUE(DeviceWish("cpu:avx512", {{"name", "rack7"}, {"room", "2"}, {"fingerprint", "abc"}}).Fits(worker));
  worker.device.name = "a device";
  EXPECT_TRUE(DeviceWish("cpu", {{"device", "a device"}}).Fits(worker));
  EXPECT_FALSE(DeviceWish("cpu", {{"device", "another"}}).Fits(worker));
  EXPECT_FALSE(DeviceWish("cuda").Fits(worker));
  EXPECT_FALSE(DeviceWish("cpu:avx2").Fits(worker));
  EXPECT_FALSE(DeviceWish("cpu", {{"name", "rack"}}).Fits(worker));
  EXPECT_FALSE(DeviceWish("cpu", {{"room", "2"}, {"fingerprint", "b"}}).Fits(worker));
  EXPECT_FALSE(DeviceWish("cpu", {{"row", "2"}}).Fits(worker));
  EXPECT_EQ(DeviceWish("cpu", {{"room", "2"}, {"name", "x"}}).InWords(), "cpu with name=x, room=2");
}

}  // namespace
}  // namespace fusion
