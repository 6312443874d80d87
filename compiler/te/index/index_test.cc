#include "compiler/te/index/index.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using Point = std::map<int, int64_t>;

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Loads evaluate to a function of their indices inside the declared range.
int64_t LoadedValue(const std::vector<int64_t>& at, Interval range) {
  int64_t h = 17;
  for (int64_t i : at) h = h * 31 + i;
  return range.lo + ((h % 97) + 97) % (range.hi - range.lo + 1);
}

int64_t Evaluate(const Index& x, const Point& point) {
  int64_t sum = x.constant();
  for (const Index::Part& p : x.parts()) {
    int64_t value = 0;
    switch (p.term.kind) {
      case TermKind::kAxis:
        value = point.at(p.term.axis.id);
        break;
      case TermKind::kFloorDiv:
        value = FloorDivide(Evaluate(*p.term.inner, point), p.term.divisor);
        break;
      case TermKind::kMod: {
        const int64_t inner = Evaluate(*p.term.inner, point);
        value = inner - p.term.divisor * FloorDivide(inner, p.term.divisor);
        break;
      }
      case TermKind::kLoad: {
        std::vector<int64_t> at;
        for (const Index& i : p.term.indices) at.push_back(Evaluate(i, point));
        value = LoadedValue(at, p.term.load_range);
        break;
      }
    }
    sum += p.coefficient * value;
  }
  return sum;
}

// An unsimplified expression: built and evaluated side by side with the Index.
struct Raw {
  Index index;
  std::function<int64_t(const Point&)> value;
};

class RandomIndex {
 public:
  RandomIndex(uint32_t seed, std::vector<Axis> axes) : random_(seed), axes_(std::move(axes)) {}

  Raw Make(int depth) {
    if (depth == 0) return Leaf();
    switch (Pick(9)) {
      case 0:
      case 1:
        return Combine(Make(depth - 1), Make(depth - 1), 1);
      case 2:
        return Combine(Make(depth - 1), Make(depth - 1), -1);
      case 3:
      case 4:
        return Times(Make(depth - 1), kFactors[Pick(std::size(kFactors))]);
      case 5:
      case 6:
        return Divide(Make(depth - 1), kDivisors[Pick(std::size(kDivisors))]);
      case 7:
        return Remainder(Make(depth - 1), kDivisors[Pick(std::size(kDivisors))]);
      default:
        return Rejoin(Make(depth - 1));
    }
  }
  Point MakePoint() {
    Point point;
    for (const Axis& a : axes_) point[a.id] = Pick(a.extent);
    return point;
  }
  int64_t Pick(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }

 private:
  static constexpr int64_t kFactors[] = {2, 3, 4, 8, -1, -4, 5, 12};
  static constexpr int64_t kDivisors[] = {2, 3, 4, 6, 8, 12, 16, 5};

  Raw Leaf() {
    const int64_t kind = Pick(12);
    if (kind == 0) {
      const int64_t c = Pick(20) - 8;
      return {c, [c](const Point&) { return c; }};
    }
    const Axis a = axes_[Pick(axes_.size())];
    if (kind == 1) {
      const Interval range{-3, 9};
      return {Index::Load(1, {a}, range), [a, range](const Point& p) { return LoadedValue({p.at(a.id)}, range); }};
    }
    return {a, [a](const Point& p) { return p.at(a.id); }};
  }
  static Raw Combine(const Raw& a, const Raw& b, int64_t sign) {
    return {sign > 0 ? a.index + b.index : a.index - b.index,
            [=](const Point& p) { return a.value(p) + sign * b.value(p); }};
  }
  static Raw Times(const Raw& a, int64_t c) {
    return {a.index * c, [=](const Point& p) { return a.value(p) * c; }};
  }
  static Raw Divide(const Raw& a, int64_t c) {
    return {FloorDiv(a.index, c), [=](const Point& p) { return FloorDivide(a.value(p), c); }};
  }
  static Raw Remainder(const Raw& a, int64_t c) {
    return {Mod(a.index, c), [=](const Point& p) { return a.value(p) - c * FloorDivide(a.value(p), c); }};
  }
  // Builds a sum of parts of one value, some of which cancel.
  Raw Rejoin(const Raw& a) {
    const int64_t c = kDivisors[Pick(std::size(kDivisors))], d = kDivisors[Pick(std::size(kDivisors))];
    switch (Pick(4)) {
      case 0:
        return Combine(Times(Divide(a, c), c), Remainder(a, c), 1);
      case 1:
        return Combine(a, Times(Divide(a, c), c), -1);
      case 2:
        return Combine(Remainder(a, c), a, -1);
      default:
        return Combine(Times(Remainder(Divide(a, c), d), c), Remainder(a, c), 1);
    }
  }

  std::mt19937 random_;
  std::vector<Axis> axes_;
};

TEST(IndexTest, RandomExpressionsKeepTheirValue) {
  const std::vector<std::vector<int64_t>> extents = {{4, 8, 3, 16}, {2, 6, 12, 5}, {1, 4, 4, 64}, {7, 9, 24, 32}};
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    std::vector<Axis> axes;
    for (int64_t e : extents[seed % extents.size()]) axes.push_back({static_cast<int>(axes.size()), e});
    RandomIndex random(seed, axes);
    const Raw raw = random.Make(2 + seed % 4);
    const Interval range = raw.index.Range();
    for (int i = 0; i < 40; ++i) {
      const Point point = random.MakePoint();
      const int64_t expected = raw.value(point);
      ASSERT_EQ(Evaluate(raw.index, point), expected) << "seed " << seed << ": " << ToString(raw.index);
      ASSERT_GE(expected, range.lo) << "seed " << seed << ": " << ToString(raw.index);
      ASSERT_LE(expected, range.hi) << "seed " << seed << ": " << ToString(raw.index);
    }
    ASSERT_EQ(raw.index, Index::FromParts(raw.index.constant(), raw.index.parts())) << "not a fixed point";
  }
}

TEST(IndexTest, SubstitutionCommutesWithEvaluation) {
  const std::vector<Axis> inner = {{10, 4}, {11, 16}, {12, 3}};
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomIndex outer_random(seed, {{0, 64}, {1, 12}});
    const Raw outer = outer_random.Make(3);
    RandomIndex inner_random(seed, inner);
    // 0 -> 16*i10 + i11 in [0, 64), 1 -> 4*i12 + i10 in [0, 12): ranges promised by the axes hold.
    const Index a = Index(inner[0]) * 16 + inner[1], b = Index(inner[2]) * 4 + inner[0];
    const Index composed = Substitute(outer.index, [&](const Axis& x) {
      return x.id == 0 ? &a : x.id == 1 ? &b : nullptr;
    });
    for (int i = 0; i < 20; ++i) {
      const Point point = inner_random.MakePoint();
      ASSERT_EQ(Evaluate(composed, point), outer.value({{0, Evaluate(a, point)}, {1, Evaluate(b, point)}}))
          << ToString(outer.index) << " became " << ToString(composed);
    }
  }
}

class FormTest : public ::testing::Test {
 protected:
  Axis A(int64_t extent) { return {next_++, extent}; }
  int next_ = 0;
};

TEST_F(FormTest, RulesOfTheHeader) {
  const Axis x = A(1000), y = A(10), z = A(4);
  EXPECT_EQ(FloorDiv(z, 4), Index(0));
  EXPECT_EQ(Mod(Index(z) + 4, 4), Index(z));
  EXPECT_EQ(FloorDiv(Index(y) * 4 + x, 4), Index(y) + FloorDiv(x, 4));
  EXPECT_EQ(Mod(Index(y) * 4 + x, 4), Mod(x, 4));
  EXPECT_EQ(FloorDiv(x, 4) * 4 + Mod(x, 4), Index(x));
  EXPECT_EQ(FloorDiv(FloorDiv(x, 3), 5), FloorDiv(x, 15));
  EXPECT_EQ(Mod(Mod(x, 12), 4), Mod(x, 4));
  EXPECT_EQ(FloorDiv(Mod(x, 12), 4), Mod(FloorDiv(x, 4), 3));
  EXPECT_EQ(FloorDiv(Index(y) * 4 + z, 12), FloorDiv(y, 3));
  EXPECT_EQ(Mod(Index(y) * 4 + z, 12), Mod(y, 3) * 4 + z);
}

TEST_F(FormTest, LargestSplitWins) {
  // g = 8 and g = 2 both split 8a + 2b + c; only 8 leaves no division.
  const Axis a = A(3), b = A(4), c = A(2);
  EXPECT_EQ(FloorDiv(Index(a) * 8 + Index(b) * 2 + c, 24), Index(0));
  EXPECT_EQ(FloorDiv(Index(a) * 8 + Index(b) * 2 + c, 16), FloorDiv(a, 2));
  EXPECT_EQ(Mod(Index(a) * 8 + Index(b) * 2 + c, 16), Mod(a, 2) * 8 + Index(b) * 2 + c);
}

TEST_F(FormTest, EqualValuesMeetInOneForm) {
  const Axis n = A(4096), y = A(8);
  EXPECT_EQ(FloorDiv(n, 64) * 64 + Mod(FloorDiv(n, 4), 16) * 4 + Mod(n, 4), Index(n));
  EXPECT_EQ(Mod(FloorDiv(n, 4), 16) * 4 + Mod(n, 4), Mod(n, 64));
  EXPECT_EQ(Index(n) - FloorDiv(n, 4) * 4, Mod(n, 4));
  EXPECT_EQ(Mod(n, 4) - n, FloorDiv(n, 4) * -4);
  EXPECT_EQ(FloorDiv(Index(y) + FloorDiv(n, 4), 8), FloorDiv(Index(y) * 4 + n, 32));
  EXPECT_EQ(FloorDiv(Index(n) + 9, 4) - FloorDiv(Index(n) + 1, 4), Index(2));
}

TEST_F(FormTest, NegativeCoefficients) {
  const Axis x = A(8), y = A(16);
  EXPECT_EQ(FloorDiv(Index(7) - x, 8), Index(0));
  EXPECT_EQ(FloorDiv(Index(-1) - x, 8), Index(-1));
  EXPECT_EQ(Mod(Index(7) - x, 8), Index(7) - x);
  EXPECT_EQ(FloorDiv(Index(y) * -8 + x, 16), FloorDiv(Index(y) * -1, 2));
  const Interval r = (Index(5) - Index(x) * 3 + y).Range();
  EXPECT_EQ(r.lo, 5 - 21);
  EXPECT_EQ(r.hi, 5 + 15);
  const Interval q = FloorDiv(Index(x) * -1, 3).Range();
  EXPECT_EQ(q.lo, -3);
  EXPECT_EQ(q.hi, 0);
}

TEST_F(FormTest, UnboundedLoadsDoNotOverflow) {
  const Axis x = A(8);
  const Index load = Index::Load(3, {x}, {INT64_MIN, INT64_MAX});
  const Interval r = (load * 1000 + x).Range();
  EXPECT_LT(r.lo, -(int64_t{1} << 60));
  EXPECT_GT(r.hi, int64_t{1} << 60);
  const Interval m = Mod(load, 16).Range();
  EXPECT_EQ(m.lo, 0);
  EXPECT_EQ(m.hi, 15);
}

TEST_F(FormTest, DelinearizeThenLinearizeIsTheIdentity) {
  const Axis n = A(2 * 3 * 5 * 7);
  const std::vector<int64_t> shape = {2, 3, 5, 7};
  EXPECT_EQ(Linearize(Delinearize(n, shape), shape), Index(n));
  const Axis a = A(2), b = A(3), c = A(5), d = A(7);
  const std::vector<Index> indices = {a, b, c, d};
  EXPECT_EQ(Delinearize(Linearize(indices, shape), shape), indices);
}

TEST_F(FormTest, FlatteningReshapesAreOneAddress) {
  // [4, 64, 7, 7] -> [4, 3136] -> [4, 49, 64] and back into the address of the first.
  const Axis n = A(4), f = A(3136);
  const std::vector<int64_t> from = {4, 64, 7, 7};
  EXPECT_EQ(Linearize(Delinearize(Linearize({n, f}, {4, 3136}), from), from), Index(n) * 3136 + f);
}

TEST_F(FormTest, ShuffleNetChannelShuffle) {
  // [1, 2, 58, 28, 28] -> transpose(1, 2) -> [1, 116, 28, 28]: channel c reads (c % 2)*58 + c // 2.
  const Axis c = A(116), y = A(28), x = A(28);
  const Index flat = Index(c) * 784 + Index(y) * 28 + x;
  EXPECT_EQ(FloorDiv(flat, 1568), FloorDiv(c, 2));
  const std::vector<Index> d = Delinearize(flat, {58, 2, 28, 28});
  EXPECT_EQ(d, (std::vector<Index>{FloorDiv(c, 2), Mod(c, 2), y, x}));
  const Index address = Linearize({d[1], d[0], d[2], d[3]}, {2, 58, 28, 28});
  EXPECT_EQ(ClassifyLanes(address, x, 4), LaneAccess::kContiguous);
  // Flattened space: 784 is a multiple of 16 lanes.
  const Axis s = A(784);
  const std::vector<Index> e = Delinearize(Index(c) * 784 + s, {58, 2, 784});
  EXPECT_EQ(ClassifyLanes(Linearize({e[1], e[0], e[2]}, {2, 58, 784}), s, 16), LaneAccess::kContiguous);
}

TEST_F(FormTest, SplitHeadsStoreIsContiguous) {
  const Axis m = A(128), n = A(768);
  const Index address = FloorDiv(n, 64) * 8192 + Index(m) * 64 + Mod(n, 64);
  EXPECT_EQ((FloorDiv(n, 64) * 128 + m) * 64 + Mod(n, 64), address);
  EXPECT_EQ(ClassifyLanes(address, n, 16), LaneAccess::kContiguous);
  EXPECT_EQ(ClassifyLanes(address, m, 16), LaneAccess::kOther);
  EXPECT_EQ(ClassifyLanes(FloorDiv(n, 64) * 8192 + m, n, 16), LaneAccess::kInvariant);
  EXPECT_EQ(ClassifyLanes(address, n, 128), LaneAccess::kOther);  // a vector would cross heads
}

TEST_F(FormTest, SwinWindowPartition) {
  // [56, 56, 96] -> [8, 7, 8, 7, 96] -> [8, 8, 7, 7, 96] flattened to [3136, 96].
  const Axis r = A(3136), ch = A(96);
  const std::vector<Index> w = Delinearize(r, {8, 8, 7, 7});
  const std::vector<Index> pixel = {w[0] * 7 + w[2], w[1] * 7 + w[3]};
  const Index address = Linearize({pixel[0], pixel[1], ch}, {56, 56, 96});
  EXPECT_EQ(ClassifyLanes(address, ch, 16), LaneAccess::kContiguous);
  // Partition, then reverse, is the identity.
  const Axis y = A(56), x = A(56);
  const Index row = Linearize({FloorDiv(y, 7), FloorDiv(x, 7), Mod(y, 7), Mod(x, 7)}, {8, 8, 7, 7});
  const Index back = Substitute(address, [&](const Axis& a) { return a.id == r.id ? &row : nullptr; });
  EXPECT_EQ(back, Linearize({y, x, ch}, {56, 56, 96}));
}

TEST_F(FormTest, BlockedChannelsStore) {
  // NCHW c = 16*co + ci into [co, y, x, ci].
  const Axis c = A(64), y = A(14), x = A(14), co = A(4), ci = A(16);
  const Index address = Linearize({FloorDiv(c, 16), y, x, Mod(c, 16)}, {4, 14, 14, 16});
  EXPECT_EQ(ClassifyLanes(address, c, 16), LaneAccess::kContiguous);
  const Index blocked = Index(co) * 16 + ci;
  const Index split = Substitute(address, [&](const Axis& a) { return a.id == c.id ? &blocked : nullptr; });
  EXPECT_EQ(split, Linearize({co, y, x, ci}, {4, 14, 14, 16}));
}

TEST_F(FormTest, LanesOfTails) {
  const Axis v = A(1001), k = A(13);
  EXPECT_EQ(ClassifyLanes(Index(k) * 1001 + v + 3, v, 16), LaneAccess::kContiguous);
  EXPECT_EQ(ClassifyLanes(Index(v) * 2, v, 16), LaneAccess::kOther);
  EXPECT_EQ(ClassifyLanes(Index(10) - v, v, 16), LaneAccess::kOther);
  EXPECT_EQ(ClassifyLanes(k, v, 16), LaneAccess::kInvariant);
  EXPECT_EQ(ClassifyLanes(Index::Load(1, {v}, {0, 9}), v, 16), LaneAccess::kOther);
  EXPECT_EQ(ClassifyLanes(Index::Load(1, {k}, {0, 9}) * 1001 + v, v, 16), LaneAccess::kContiguous);
  const Axis u = A(1000);
  EXPECT_EQ(ClassifyLanes(FloorDiv(u, 16) * 32 + Mod(u, 16), u, 16), LaneAccess::kContiguous);
}

TEST_F(FormTest, TensorsAndAxes) {
  const Axis a = A(8), b = A(8);
  const Index x = FloorDiv(Index::Load(3, {Index(b) + a}, {0, 99}) + a, 7) + b;
  std::vector<Axis> axes;
  CollectAxes(x, &axes);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_TRUE(x.HasLoad());
  EXPECT_TRUE(x.UsesAxis(a.id));
  EXPECT_FALSE(x.UsesAxis(99));
  int64_t coefficient;
  EXPECT_FALSE(x.AffineIn(b.id, &coefficient));
  EXPECT_TRUE((Index(a) * 3 - b).AffineIn(b.id, &coefficient));
  EXPECT_EQ(coefficient, -1);
  const Index mapped = MapTensors(x, [](TensorId t) { return t + 1; });
  EXPECT_EQ(mapped, FloorDiv(Index::Load(4, {Index(b) + a}, {0, 99}) + a, 7) + b);
}

TEST_F(FormTest, Text) {
  const Axis a = A(80), b = A(80);
  EXPECT_EQ(ToString(Index(a) * 2 + FloorDiv(b, 4) + 3), "2*i0 + i1//4 + 3");
  EXPECT_EQ(ToString(Mod(Index(a) + 1, 5) * -2 - 1), "-2*(i0 + 1)%5 - 1");
  EXPECT_EQ(ToString(0), "0");
  EXPECT_EQ(ToString(Index::Load(7, {a, 2}, {0, 3})), "%t7[i0, 2]");
}

}  // namespace
}  // namespace fusion::te
