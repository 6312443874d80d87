#include "compiler/movement/constant_transform.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fusion::movement {
namespace {

Tensor Numbers(const Shape& shape, int seed) {
  Tensor tensor(DType::kF32, shape);
  auto* out = tensor.mutable_as<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) out[i] = static_cast<float>((i * 37 + seed) % 23 - 11);
  return tensor;
}

// [a, b, h, w] to Σ(i, j) rows[p, i] · columns[q, j] · x[a, b, i, j], with small whole numbers, so that sums are exact.
Tensor Expected(const Tensor& x, const Tensor& rows, const Tensor& columns) {
  const Shape& s = x.shape();
  const int64_t p_count = rows.shape()[0], q_count = columns.shape()[0];
  Tensor result(DType::kF32, {s[0], s[1], p_count, q_count});
  auto* out = result.mutable_as<float>();
  for (int64_t ab = 0; ab < s[0] * s[1]; ++ab) {
    for (int64_t p = 0; p < p_count; ++p) {
      for (int64_t q = 0; q < q_count; ++q) {
        float sum = 0;
        for (int64_t i = 0; i < s[2]; ++i) {
          for (int64_t j = 0; j < s[3]; ++j) {
            sum += rows.as<float>()[p * s[2] + i] * columns.as<float>()[q * s[3] + j] *
                   x.as<float>()[(ab * s[2] + i) * s[3] + j];
          }
        }
        *out++ = sum;
      }
    }
  }
  return result;
}

void ExpectEqual(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    ASSERT_EQ(actual.as<float>()[i], expected.as<float>()[i]) << i;
  }
}

TEST(ConstantTransform, MultipliesEachDimensionByItsMatrix) {
  // More parts than are transformed beside each other, and no multiple of that number.
  const Tensor x = Numbers({7, 11, 3, 5}, 1), rows = Numbers({6, 3}, 2), columns = Numbers({4, 5}, 3);
  const ConstantTransform transform{{{2, rows}, {3, columns}}};
  const Tensor expected = Expected(x, rows, columns);
  ExpectEqual(Transformed(transform, x), expected);
  ExpectEqual(Transformed({{{3, columns}, {2, rows}}}, x), expected);  // the order does not matter
}

TEST(ConstantTransform, PartsAreIndependent) {
  const Tensor x = Numbers({7, 11, 3, 5}, 4), rows = Numbers({6, 3}, 5), columns = Numbers({4, 5}, 6);
  const ConstantTransform transform{{{2, rows}, {3, columns}}};
  const TransformBlocks blocks = BlocksOf(transform, x.shape());
  EXPECT_EQ(blocks.shape, (Shape{7, 11, 6, 4}));
  EXPECT_EQ(blocks.blocks, 77);
  EXPECT_EQ(blocks.source_elements, 15);
  EXPECT_EQ(blocks.result_elements, 24);
  Tensor result(DType::kF32, blocks.shape);
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{70, 77}, {0, 1}, {1, 70}}) {
    TransformRange(transform, x, begin, end, result.mutable_as<float>());
  }
  ExpectEqual(result, Expected(x, rows, columns));
}

TEST(ConstantTransform, WithoutAMatrixNothingChanges) {
  const Tensor x = Numbers({3, 4}, 7);
  ExpectEqual(Transformed({}, x), x);
}

}  // namespace
}  // namespace fusion::movement
