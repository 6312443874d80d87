// Casts to and from the types of 8 bits and fewer.
#include <cmath>
#include <limits>

#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<int> Codes(const absl::StatusOr<std::vector<Tensor>>& result) {
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<int> codes;
  for (int64_t i = 0; result.ok() && i < (*result)[0].num_elements(); ++i) codes.push_back((*result)[0].as<uint8_t>()[i]);
  return codes;
}

// Expected values are those of ONNX's reference implementation (onnx 1.23).
TEST(Cast, FloatsAreEncodedAsByTheReference) {
  const Tensor x = F32({22}, {0,         -0.0,     kInf,   -kInf,  464,          464.5,        247.5,   248,
                              61439,     61440,    -1e9,   1.0625, 1.1875,       0.0009765625, 0.0029296875, -3.5e-6,
                              7.6294e-6, 2.3e-5,   0.25,   0.75,   5,            -7});
  struct Row {
    int64_t to, saturate;
    std::vector<int> codes;
  };
  const std::vector<Row> rows = {
      {17, 1, {0x00, 0x80, 0x7e, 0xfe, 0x7e, 0x7e, 0x77, 0x78, 0x7e, 0x7e, 0xfe,
               0x38, 0x3a, 0x00, 0x02, 0x80, 0x00, 0x00, 0x28, 0x34, 0x4a, 0xce}},
      {17, 0, {0x00, 0x80, 0x7f, 0xff, 0x7e, 0x7f, 0x77, 0x78, 0x7f, 0x7f, 0xff,
               0x38, 0x3a, 0x00, 0x02, 0x80, 0x00, 0x00, 0x28, 0x34, 0x4a, 0xce}},
      {18, 1, {0x00, 0x00, 0x7f, 0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0xff,
               0x40, 0x42, 0x01, 0x03, 0x00, 0x00, 0x00, 0x30, 0x3c, 0x52, 0xd6}},
      {18, 0, {0x00, 0x00, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x80, 0x80, 0x80, 0x80,
               0x40, 0x42, 0x01, 0x03, 0x00, 0x00, 0x00, 0x30, 0x3c, 0x52, 0xd6}},
      {19, 1, {0x00, 0x80, 0x7b, 0xfb, 0x5f, 0x5f, 0x5c, 0x5c, 0x7b, 0x7b, 0xfb,
               0x3c, 0x3d, 0x14, 0x1a, 0x80, 0x01, 0x02, 0x34, 0x3a, 0x45, 0xc7}},
      {19, 0, {0x00, 0x80, 0x7c, 0xfc, 0x5f, 0x5f, 0x5c, 0x5c, 0x7b, 0x7c, 0xfc,
               0x3c, 0x3d, 0x14, 0x1a, 0x80, 0x01, 0x02, 0x34, 0x3a, 0x45, 0xc7}},
      {20, 1, {0x00, 0x00, 0x7f, 0xff, 0x63, 0x63, 0x60, 0x60, 0x7f, 0x7f, 0xff,
               0x40, 0x41, 0x18, 0x1e, 0x00, 0x01, 0x03, 0x38, 0x3e, 0x49, 0xcb}},
      {20, 0, {0x00, 0x00, 0x80, 0x80, 0x63, 0x63, 0x60, 0x60, 0x7f, 0x80, 0x80,
               0x40, 0x41, 0x18, 0x1e, 0x00, 0x01, 0x03, 0x38, 0x3e, 0x49, 0xcb}},
      {27, 1, {0x00, 0x20, 0x1f, 0x3f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x3f,
               0x08, 0x0a, 0x00, 0x00, 0x20, 0x00, 0x00, 0x02, 0x06, 0x1a, 0x3e}},
      {27, 0, {0x00, 0x20, 0x1f, 0x3f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x3f,
               0x08, 0x0a, 0x00, 0x00, 0x20, 0x00, 0x00, 0x02, 0x06, 0x1a, 0x3e}},
      {28, 1, {0x00, 0x20, 0x1f, 0x3f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x3f,
               0x0c, 0x0d, 0x00, 0x00, 0x20, 0x00, 0x00, 0x04, 0x0a, 0x15, 0x37}},
      {28, 0, {0x00, 0x20, 0x1f, 0x3f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x3f,
               0x0c, 0x0d, 0x00, 0x00, 0x20, 0x00, 0x00, 0x04, 0x0a, 0x15, 0x37}},
      {23, 1, {0x00, 0x08, 0x07, 0x0f, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x0f,
               0x02, 0x02, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x02, 0x06, 0x0f}},
      {23, 0, {0x00, 0x08, 0x07, 0x0f, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x0f,
               0x02, 0x02, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x02, 0x06, 0x0f}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Codes(RunOp({"Cast", {x}, {{"to", row.to}, {"saturate", row.saturate}}})), row.codes)
        << row.to << " saturate " << row.saturate;
  }
  const Tensor nan = F32({1}, {std::nan("")});
  for (int64_t to : {17, 18, 19, 20, 24}) {
    for (int64_t saturate : {0, 1}) {
      EXPECT_TRUE(std::isnan(Values(RunOp({"Cast", {nan}, {{"to", to}, {"saturate", saturate}}}))[0])) << to;
    }
  }
}

TEST(Cast, PowersOfTwoRoundAsAsked) {
  const Tensor x = F32({9}, {0.4, 1, 1.2, 1.5, 1.6, 3, 6, 0x1p-126, 3e38});
  const auto to = [&](const std::string& mode) {
    return Codes(RunOp({"Cast", {x}, {{"to", int64_t{24}}, {"round_mode", mode}}}));
  };
  EXPECT_THAT(to("up"), ElementsAre(126, 127, 128, 128, 128, 129, 130, 1, 254));
  EXPECT_THAT(to("down"), ElementsAre(125, 127, 127, 127, 127, 128, 129, 1, 254));
  EXPECT_THAT(to("nearest"), ElementsAre(126, 127, 127, 128, 128, 129, 130, 1, 254));
  EXPECT_EQ(Codes(RunOp({"Cast", {x}, {{"to", int64_t{24}}}})), to("up"));
  EXPECT_THAT(std::string(RunOp({"Cast", {x}, {{"to", int64_t{24}}, {"round_mode", std::string("odd")}}}).status().message()),
              HasSubstr("round_mode is 'odd'"));
}

// Expected values are those of the table on ONNX's page about Cast.
TEST(Cast, PowersOfTwoAtTheEnds) {
  const Tensor x = F32({5}, {0, kInf, 0x1.8p127, 0x1p127, 0x1p-127});
  const auto to = [&](int64_t saturate, const std::string& mode) {
    return Codes(RunOp({"Cast", {x}, {{"to", int64_t{24}}, {"saturate", saturate}, {"round_mode", mode}}}));
  };
  EXPECT_THAT(to(1, "up"), ElementsAre(0, 254, 254, 254, 0));
  EXPECT_THAT(to(0, "nearest"), ElementsAre(255, 255, 255, 254, 0));
}

TEST(Cast, IntegersKeepTheirLowBits) {
  const Tensor x = Tensor::From<int>(DType::kI32, {6}, {-129, 200, 9, 17, -1, 6});
  const auto to = [&](int64_t type) { return Values(RunOp({"Cast", {x}, {{"to", type}}})); };
  EXPECT_THAT(to(22), ElementsAre(-1, -8, -7, 1, -1, 6));
  EXPECT_THAT(to(21), ElementsAre(15, 8, 9, 1, 15, 6));
  EXPECT_THAT(to(26), ElementsAre(-1, 0, 1, 1, -1, -2));
  EXPECT_THAT(to(25), ElementsAre(3, 0, 1, 1, 3, 2));
  // A float loses its fraction first.
  EXPECT_THAT(Values(RunOp({"Cast", {F32({4}, {7.9, -3.7, 9, -8.5})}, {{"to", int64_t{22}}}})),
              ElementsAre(7, -3, -7, -8));
}

TEST(Cast, LikeTakesTheTypeAndTheAttributes) {
  const Tensor x = F32({2}, {1e9, 1}), like = Tensor::From<double>(DType::kF8E5M2, {1}, {0});
  EXPECT_THAT(Codes(RunOp({"CastLike", {x, like}})), ElementsAre(0x7b, 0x3c));
  EXPECT_THAT(Codes(RunOp({"CastLike", {x, like}, {{"saturate", int64_t{0}}}})), ElementsAre(0x7c, 0x3c));
}

TEST(Cast, FromNarrowFloats) {
  const Tensor x = Tensor::From<double>(DType::kF8E4M3FN, {4}, {-448, 0.3, 2.5, 0});
  EXPECT_THAT(Values(RunOp({"Cast", {x}, {{"to", int64_t{1}}}})), ElementsAre(-448, 0.3125, 2.5, 0));
  EXPECT_THAT(Values(RunOp({"Cast", {x}, {{"to", int64_t{6}}}})), ElementsAre(-448, 0, 2, 0));
  EXPECT_THAT(Values(RunOp({"Cast", {x}, {{"to", int64_t{9}}}})), ElementsAre(1, 1, 1, 0));
}

}  // namespace
}  // namespace fusion::ops
