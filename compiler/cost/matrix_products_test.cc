#include "compiler/cost/matrix_products.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

DeviceModel WithProducts() {
  DeviceModel device;
  device.kind = "cuda";
  device.matrix_products = {
      {"tf32", 16, 8, 8, 32, 1e12}, {"f16", 64, 64, 16, 128, 1e12, /*from_memory=*/true}, {"f16", 16, 8, 16, 32, 2e12}};
  return device;
}

TEST(FindMatrixProduct, IsOfTheOperandsTypeAndPlace) {
  const DeviceModel device = WithProducts();
  EXPECT_EQ(FindMatrixProduct(device, DType::kF16), &device.matrix_products[2]);
  EXPECT_EQ(FindMatrixProduct(device, DType::kF16, /*from_memory=*/true), &device.matrix_products[1]);
  EXPECT_EQ(FindMatrixProduct(device, DType::kI8), nullptr);
  EXPECT_EQ(FindMatrixProduct(DeviceModel(), DType::kF16), nullptr);
}

TEST(AllowTf32, GivesProductsToOperandsThatMayBeRounded) {
  const DeviceModel device = WithProducts(), allowed = AllowTf32(device);
  EXPECT_EQ(FindMatrixProduct(device, DType::kF32), nullptr);
  EXPECT_EQ(FindMatrixProduct(allowed, DType::kF32), &allowed.matrix_products[0]);
  EXPECT_EQ(FindMatrixProduct(allowed, DType::kF32, /*from_memory=*/true), nullptr);
  EXPECT_EQ(FindMatrixProduct(allowed, DType::kF16), &allowed.matrix_products[2]);
  EXPECT_NE(allowed.Fingerprint(), device.Fingerprint()) << "keys of measurements with and without rounding are equal";
  DeviceModel none = device;
  none.matrix_products.erase(none.matrix_products.begin());
  EXPECT_EQ(AllowTf32(none).Fingerprint(), none.Fingerprint());
}

}  // namespace
}  // namespace fusion
