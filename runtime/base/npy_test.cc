#include "runtime/base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/random_inputs.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(NpyTest, EveryTypeRoundTrips) {
  for (int i = 0; i < kNumDTypes; ++i) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 5}, Shape{4, 0}}) {
      const Tensor tensor = RandomTensor(static_cast<DType>(i), shape, 7, 100);
      const auto parsed = ParseNpy(SerializeNpy(tensor));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(parsed->shape(), shape);
      if (IsNarrowInt(tensor.dtype()) || IsByteFloat(tensor.dtype())) {
        EXPECT_EQ(parsed->dtype(), IsSigned(tensor.dtype()) && !IsFloat(tensor.dtype()) ? DType::kI8 : DType::kU8);
        for (int64_t e = 0; e < tensor.num_elements(); ++e) EXPECT_EQ(parsed->as<char>()[e], tensor.as<char>()[e]);
        continue;
      }
      EXPECT_EQ(parsed->dtype(), tensor.dtype());
      for (int64_t e = 0; e < tensor.num_elements(); ++e) EXPECT_EQ(parsed->GetDouble(e), tensor.GetDouble(e));
    }
  }
}

std::string Npy(int version, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes.append(version == 1 ? 1 : 3, '\0');
  return bytes + header + data;
}

TEST(NpyTest, ReadsVersionTwoAndForeignSpacing) {
  const auto tensor = ParseNpy(Npy(2, "{\"shape\":(2,),'fortran_order': False,'descr':'<i2'}\n", {"\1\0\2\0", 4}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->GetInt(1), 2);
}

TEST(NpyTest, ReadsBytesOfForeignTypes) {
  for (const char* descr : {"<V1", "|V1", "<f1"}) {
    const auto tensor = ParseNpy(
        Npy(1, absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (2,)}"), {"\x38\x7f", 2}));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), DType::kU8);
    EXPECT_EQ(tensor->GetInt(1), 0x7f);
  }
}

TEST(NpyTest, RejectsWithReason) {
  const std::string four(4, '\0');
  const auto why = [](const std::string& bytes) {
    const auto tensor = ParseNpy(bytes);
    return tensor.ok() ? std::string("accepted") : std::string(tensor.status().message());
  };
  EXPECT_THAT(why("hello world"), HasSubstr("magic"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", four)), HasSubstr("column-major"));
  EXPECT_THAT(why(Npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", four)), HasSubstr("big-endian"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", four)), HasSubstr("'<c8'"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", four)), HasSubstr("needs 8"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", four)), HasSubstr("extent"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False}", four)), HasSubstr("lacks"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4'", four)), HasSubstr("','"));
  EXPECT_THAT(why(Npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\2")), HasSubstr("bool"));
  EXPECT_THAT(why(Npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,99999999999), }", four)),
              HasSubstr("1 TiB"));
}

TEST(NpyTest, EveryTruncationIsRejected) {
  const std::string bytes = SerializeNpy(RandomTensor(DType::kF32, {3, 2}, 1));
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(ParseNpy(bytes.substr(0, length)).ok());
}

}  // namespace
}  // namespace fusion
