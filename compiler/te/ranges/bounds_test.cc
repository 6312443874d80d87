#include "compiler/te/ranges/bounds.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace fusion::te {
namespace {

const Axis kTile{100, 8}, kTile2{101, 4};

// Returns the value of an index without loads.
int64_t At(const Index& x, const std::map<int, int64_t>& point) {
  std::map<int, Index> values;
  for (const auto& [id, v] : point) values[id] = v;
  const Index value = Substitute(x, [&](const Axis& a) { return &values.at(a.id); });
  EXPECT_TRUE(value.IsConstant());
  return value.constant();
}

class SpanTest : public ::testing::Test {
 protected:
  Span Of(const Index& x) {
    auto span = SpanOf(x, [&](const Axis& a) { return spans_.contains(a.id) ? &spans_[a.id] : nullptr; });
    return std::move(span).value();
  }
  Axis Over(int64_t extent, Index origin, int64_t length) {
    const Axis axis{static_cast<int>(spans_.size()), extent};
    spans_[axis.id] = {std::move(origin), length};
    return axis;
  }
  void Expect(const Index& x, const Index& origin, int64_t length) {
    const Span span = Of(x);
    EXPECT_EQ(span.origin, origin) << ToString(span.origin);
    EXPECT_EQ(span.length, length) << ToString(x);
  }
  std::map<int, Span> spans_;
};

TEST_F(SpanTest, Affine) {
  const Axis y = Over(64, Index(kTile) * 8, 8), k = Over(3, 0, 3);
  Expect(Index(y) * 2 + k - 1, Index(kTile) * 16 - 1, 17);
  Expect(Index(63) - y, Index(56) - Index(kTile) * 8, 8);
  Expect(Index(kTile2) * 5 + 2, Index(kTile2) * 5 + 2, 1);
}

TEST_F(SpanTest, AlignedBlocks) {
  const Axis n = Over(768, Index(kTile) * 64, 64);
  Expect(FloorDiv(n, 64), kTile, 1);
  Expect(Mod(n, 64), 0, 64);
  const Axis m = Over(512, Index(kTile) * 16, 16);
  Expect(FloorDiv(m, 64), FloorDiv(kTile, 4), 1);
  Expect(Mod(m, 64), Mod(kTile, 4) * 16, 16);
  Expect(FloorDiv(m, 4), Index(kTile) * 4, 4);
}

TEST_F(SpanTest, UnalignedBlocksAreRoundedOut) {
  const Axis n = Over(80, Index(kTile) * 10, 10);
  const Span span = Of(FloorDiv(n, 4));
  EXPECT_EQ(span.length, 3);  // origins 0, 2 (mod 4)
  Expect(Mod(n, 4), 0, 4);
}

TEST_F(SpanTest, LoadsHaveTheirDeclaredRange) {
  const Axis n = Over(64, Index(kTile) * 8, 8);
  Expect(Index::Load(1, {n}, {0, 29}) * 2 + 1, 1, 59);
  Expect(Index::Load(1, {kTile}, {2, 4}), 2, 3);
  EXPECT_GT(Of(Index::Load(1, {n}, {INT64_MIN, INT64_MAX}) * 1000).length, int64_t{1} << 40);
}

TEST_F(SpanTest, RandomSpansCover) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (int round = 0; round < 3000; ++round) {
    spans_.clear();
    const int64_t length = 1 + pick(9), step = 1 + pick(12);
    const Axis a = Over(step * 8 + length, Index(kTile) * step, length), b = Over(5, 0, 5);
    Index x = Index(a) * (pick(9) - 4) + Index(b) * (pick(7) - 3) + Index(kTile2) * pick(5) + pick(10);
    for (int i = 0; i < 1 + pick(2); ++i) {
      x = pick(2) ? FloorDiv(x, 2 + pick(7)) : Mod(x, 2 + pick(14));
      x = x * (1 + pick(3)) + Index(a) * (pick(3) - 1);
    }
    const Span span = Of(x);
    for (int64_t t = 0; t < kTile.extent; ++t) {
      for (int64_t t2 = 0; t2 < kTile2.extent; ++t2) {
        const int64_t origin = At(span.origin, {{kTile.id, t}, {kTile2.id, t2}});
        for (int64_t i = 0; i < length; ++i) {
          const int64_t v = At(x, {{kTile.id, t}, {kTile2.id, t2}, {a.id, t * step + i}, {b.id, pick(5)}});
          ASSERT_GE(v, origin) << ToString(x);
          ASSERT_LT(v, origin + span.length) << ToString(x);
        }
      }
    }
  }
}

class BoxTest : public ::testing::Test {
 protected:
  Te Map(std::vector<Axis> axes, Scalar body) {
    Te te;
    te.axes = std::move(axes);
    te.outputs = {9};
    te.body = {std::move(body)};
    return te;
  }
  Scalar X(std::vector<Index> i, Scalar pad = nullptr) { return Load(0, DType::kF32, std::move(i), std::move(pad)); }
  const Scalar zero_ = Imm(DType::kF32, 0);
  const Axis y_{0, 56}, x_{1, 56}, ky_{2, 3}, kx_{3, 3};
};

TEST_F(BoxTest, ConvolutionHalo) {
  Te te = Map({y_, x_}, X({Index(y_) * 2 + ky_ - 1, Index(x_) * 2 + kx_ - 1}, zero_));
  te.reduction.emplace().axes = {ky_, kx_};
  auto box = RequiredBox(te, {{Index(kTile) * 7, 7}, {0, 56}}, 0, {112, 112});
  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_EQ((*box)[0].origin, Index(kTile) * 14 - 1);  // symbolic: padding stays with the reader
  EXPECT_EQ((*box)[0].length, 15);
  EXPECT_EQ((*box)[1].origin, Index(0));  // constant: clipped
  EXPECT_EQ((*box)[1].length, 112);
}

TEST_F(BoxTest, SeveralLoadsAreJoined) {
  const Te te = Map({y_}, X({Index(y_) + 3}) + X({Index(y_) - 2}, zero_));
  auto box = RequiredBox(te, {{Index(kTile) * 7, 7}}, 0, {59});
  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_EQ((*box)[0].origin, Index(kTile) * 7 - 2);
  EXPECT_EQ((*box)[0].length, 12);
}

TEST_F(BoxTest, UnrelatedOriginsFail) {
  const Te te = Map({y_, x_}, X({y_}) + X({x_}));
  const auto box = RequiredBox(te, {{Index(kTile) * 7, 7}, {Index(kTile2) * 14, 14}}, 0, {56});
  EXPECT_EQ(box.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(box.status().message().find("length not constant"), std::string::npos);
}

TEST_F(BoxTest, ConcatReadsOnlyTheSideItNeeds) {
  const Axis c{7, 64};
  const Te te = Map({c}, If({{c, Cmp::kLt, 32}}, X({c}), Load(1, DType::kF32, {Index(c) - 32})));
  auto left = RequiredBox(te, {{16, 16}}, 1, {32});
  ASSERT_TRUE(left.ok());
  EXPECT_EQ((*left)[0].length, 0);
  auto both = RequiredBox(te, {{16, 32}}, 1, {32});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)[0].origin, Index(0));
  EXPECT_EQ((*both)[0].length, 16);
}

TEST_F(BoxTest, GatherReadsItsTableAndTheWholeRange) {
  const Index row = Index::Load(1, {y_}, {0, 99});
  const Te te = Map({y_, x_}, X({row, x_}));
  const Box tile = {{Index(kTile) * 7, 7}, {0, 56}};
  auto data = RequiredBox(te, tile, 0, {100, 56});
  auto table = RequiredBox(te, tile, 1, {56});
  ASSERT_TRUE(data.ok() && table.ok());
  EXPECT_EQ((*data)[0].length, 100);
  EXPECT_EQ((*table)[0].origin, Index(kTile) * 7);
  EXPECT_EQ((*table)[0].length, 7);
}

TEST_F(BoxTest, SplitHeadsRowsComeFromOneHead) {
  // q[h, m, d] = c[m, 64*h + d]
  const Axis h{4, 12}, m{5, 128}, d{6, 64};
  const Te te = Map({h, m, d}, X({m, Index(h) * 64 + d}));
  auto box = RequiredBox(te, {{kTile, 1}, {Index(kTile2) * 32, 32}, {0, 64}}, 0, {128, 768});
  ASSERT_TRUE(box.ok());
  EXPECT_EQ((*box)[0].origin, Index(kTile2) * 32);
  EXPECT_EQ((*box)[1].origin, Index(kTile) * 64);
  EXPECT_EQ((*box)[1].length, 64);
}

TEST(Covers, TilesOfADimension) {
  const std::vector<Axis> tasks = {kTile, kTile2};
  EXPECT_TRUE(Covers({{Index(kTile) * 4, 4}, {0, 7}}, {32, 7}, tasks));
  EXPECT_TRUE(Covers({{Index(kTile) * 4, 4}}, {30}, tasks));
  EXPECT_TRUE(Covers({{Index(kTile) * 4 - 1, 6}}, {32}, tasks));
  EXPECT_FALSE(Covers({{Index(kTile) * 4, 3}}, {32}, tasks));
  EXPECT_FALSE(Covers({{Index(kTile) * 4, 4}}, {33}, tasks));
  EXPECT_FALSE(Covers({{Index(kTile) * 4 + 1, 4}}, {32}, tasks));
}

// All tasks compute the same box. Together they compute as many elements as the tensor has, but not all of its
// elements.
TEST(Covers, TheSamePartManyTimes) {
  EXPECT_FALSE(Covers({{0, 4}, {0, 1}, {0, 8}}, {4, 8, 8}, {kTile}));
  EXPECT_FALSE(Covers({{kTile, 1}, {kTile, 1}}, {8, 8}, {kTile, kTile2}));
}

TEST(Covers, AnAxisThatWalksTwoDimensions) {
  EXPECT_TRUE(Covers({{FloorDiv(kTile, 4), 1}, {Mod(kTile, 4), 1}}, {2, 4}, {kTile}));
  EXPECT_TRUE(Covers({{FloorDiv(kTile, 4) * 3, 3}, {Mod(kTile, 4), 1}}, {6, 4}, {kTile}));
  EXPECT_FALSE(Covers({{FloorDiv(kTile, 4), 1}, {Mod(kTile, 2), 1}}, {2, 4}, {kTile}));
}

}  // namespace
}  // namespace fusion::te
