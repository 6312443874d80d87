#include "compiler/movement/pack_constant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "compiler/movement/constant_transform.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Cmp;
using te::Index;

Tensor Counted(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetInt(i, i + 1);
  return tensor;
}

int64_t ValueOf(const Index& index, const Pack& pack, const std::vector<int64_t>& at) {
  const Index value = te::Substitute(index, [&](const Axis& axis) -> const Index* {
    static thread_local Index constant;
    for (size_t a = 0; a < pack.axes.size(); ++a) {
      if (pack.axes[a].id == axis.id) constant = Index(at[a]);
    }
    return &constant;
  });
  EXPECT_TRUE(value.IsConstant());
  return value.constant();
}

// The packed elements by definition.
std::vector<int64_t> Expected(const Pack& pack, const Tensor& source) {
  Shape shape;
  for (const Axis& axis : pack.axes) shape.push_back(axis.extent);
  std::vector<int64_t> expected(NumElements(shape), 0);
  for (size_t i = 0; i < expected.size(); ++i) {
    std::vector<int64_t> at(shape.size());
    int64_t rest = static_cast<int64_t>(i);
    for (size_t a = shape.size(); a-- > 0;) {
      at[a] = rest % shape[a];
      rest /= shape[a];
    }
    bool holds = true;
    for (const te::Comparison& c : pack.pred) {
      const int64_t lhs = ValueOf(c.lhs, pack, at), rhs = ValueOf(c.rhs, pack, at);
      holds = holds && (c.cmp == Cmp::kLt   ? lhs < rhs
                        : c.cmp == Cmp::kGe ? lhs >= rhs
                        : c.cmp == Cmp::kEq ? lhs == rhs
                                            : lhs != rhs);
    }
    if (holds) expected[i] = source.GetInt(ValueOf(pack.address, pack, at));
  }
  return expected;
}

// Packs the whole at once, and rows from ranges of several lengths.
void ExpectPacks(const Pack& pack, const Tensor& source) {
  const std::vector<int64_t> expected = Expected(pack, source);
  const Tensor packed = PackedConstant(pack, source);
  ASSERT_EQ(packed.num_elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(packed.GetInt(static_cast<int64_t>(i)), expected[i]) << i;
  const ConstantPacker packer(pack, source.num_elements());
  // The sources hold no zero.
  EXPECT_EQ(packer.held(), std::count_if(expected.begin(), expected.end(), [](int64_t x) { return x != 0; }));
  for (int64_t step = 1; step <= packer.rows(); step = step * 2 + 1) {
    std::string bytes(packed.size_bytes(), '\x5a');
    const int64_t row_bytes = packer.columns() * DTypeBytes(source.dtype());
    for (int64_t begin = 0; begin < packer.rows(); begin += step) {
      packer.PackRows(source, begin, std::min(packer.rows(), begin + step), bytes.data() + begin * row_bytes);
    }
    ASSERT_EQ(std::memcmp(bytes.data(), packed.data(), bytes.size()), 0) << "in steps of " << step;
  }
}

TEST(ConstantPacker, PanelsEndWithZeros) {
  // source: [k, n]; packed: (n//4, k, n%4) with zeros past n = 5.
  const Axis tile{0, 2}, k{1, 3}, lane{2, 4};
  const Index n = Index(tile) * 4 + Index(lane);
  Pack pack;
  pack.axes = {tile, k, lane};
  pack.address = Index(k) * 5 + n;
  pack.pred = {{n, Cmp::kLt, Index(5)}};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kI8}) {
    ExpectPacks(pack, Counted(dtype, {3, 5}));
  }
}

TEST(ConstantPacker, LinesOfRowsThatLieBesideEachOther) {
  // source: [n, k]; packed: (n//8, k, n%8), whose rows are adjacent in the source; there are more of them than one line
  // has.
  const Axis tile{0, 3}, k{1, 37}, lane{2, 8};
  Pack pack;
  pack.axes = {tile, k, lane};
  pack.address = (Index(tile) * 8 + Index(lane)) * 37 + Index(k);
  ExpectPacks(pack, Counted(DType::kI32, {24, 37}));
  pack.pred = {{Index(tile) * 8 + Index(lane), Cmp::kLt, Index(21)}};
  ExpectPacks(pack, Counted(DType::kI32, {21, 37}));
}

TEST(ConstantPacker, ConditionsOnRowsAndOnBoth) {
  const Axis a{0, 3}, b{1, 4}, c{2, 5};
  Pack pack;
  pack.axes = {a, b, c};
  pack.address = Index(a) * 20 + Index(b) * 5 + Index(c);
  const Tensor source = Counted(DType::kI32, {60});
  pack.pred = {{Index(b), Cmp::kNe, Index(2)}};
  ExpectPacks(pack, source);
  pack.pred = {{Index(b) + Index(c), Cmp::kLt, Index(4)}, {Index(a), Cmp::kGe, Index(1)}};
  ExpectPacks(pack, source);
  pack.pred = {{Index(c), Cmp::kGe, Index(2)}};  // columns that are no prefix of the row
  ExpectPacks(pack, source);
  pack.pred = {{Index(a), Cmp::kEq, Index(b)}, {Index(c), Cmp::kLt, Index(3)}};
  ExpectPacks(pack, source);
}

TEST(ConstantPacker, TermsOfOneAxisAndOfSeveral) {
  const Axis a{0, 4}, b{1, 6};
  Pack pack;
  pack.axes = {a, b};
  const Tensor source = Counted(DType::kI32, {24});
  pack.address = te::FloorDiv(Index(b), 2) * 8 + te::Mod(Index(b), 2) * 4 + Index(a);
  ExpectPacks(pack, source);
  pack.address = te::Mod(Index(a) * 5 + Index(b) * 3, 24);  // mixes the axes
  ExpectPacks(pack, source);
}

TEST(ConstantPacker, MoreRowsThanATile) {
  const Axis a{0, 3}, b{1, 40}, c{2, 50}, d{3, 2};
  Pack pack;
  pack.axes = {a, b, c, d};
  pack.address = Index(d) * 6000 + Index(c) * 120 + Index(b) * 3 + Index(a);
  ExpectPacks(pack, Counted(DType::kI32, {12000}));
}

TEST(ConstantPacker, OneElement) {
  Pack pack;
  pack.address = Index(3);
  ExpectPacks(pack, Counted(DType::kI32, {5}));
}

TEST(TransformRange, SumsInDoubleWhateverTheRange) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  const auto drawn = [&](const Shape& shape) {
    Tensor tensor(DType::kF32, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_as<float>()[i] = draw(random);
    return tensor;
  };
  const Tensor source = drawn({13, 11, 3, 2}), rows = drawn({6, 3}), columns = drawn({4, 2});
  ConstantTransform transform;
  transform.by_dimension = {{2, rows}, {3, columns}};
  // Transforms one element after another.
  Tensor expected(DType::kF32, {13, 11, 6, 4});
  for (int64_t b = 0; b < 13 * 11; ++b) {
    float half[6][2];
    for (int t = 0; t < 6; ++t) {
      for (int x = 0; x < 2; ++x) {
        double sum = 0;
        for (int f = 0; f < 3; ++f)
          sum += double{rows.as<float>()[t * 3 + f]} * source.as<float>()[(b * 3 + f) * 2 + x];
        half[t][x] = static_cast<float>(sum);
      }
      for (int u = 0; u < 4; ++u) {
        double sum = 0;
        for (int f = 0; f < 2; ++f) sum += double{columns.as<float>()[u * 2 + f]} * half[t][f];
        expected.mutable_as<float>()[(b * 6 + t) * 4 + u] = static_cast<float>(sum);
      }
    }
  }
  const Tensor whole = Transformed(transform, source);
  ASSERT_EQ(whole.shape(), expected.shape());
  EXPECT_EQ(std::memcmp(whole.data(), expected.data(), expected.size_bytes()), 0);
  for (const int64_t step : {1, 5, 64, 100}) {
    Tensor parts(DType::kF32, expected.shape());
    for (int64_t begin = 0; begin < 13 * 11; begin += step) {
      TransformRange(transform, source, begin, std::min<int64_t>(13 * 11, begin + step), parts.mutable_as<float>());
    }
    EXPECT_EQ(std::memcmp(parts.data(), expected.data(), expected.size_bytes()), 0) << "in steps of " << step;
  }
}

}  // namespace
}  // namespace fusion::movement
