// Tests of the reshape, transpose, slice, pad, expand and shape families.
#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

Tensor Iota(const Shape& shape) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, static_cast<double>(i));
  return tensor;
}
Tensor List(const Ints& values) { return I64({static_cast<int64_t>(values.size())}, values); }
std::vector<double> Counting(int n) {
  std::vector<double> values(n);
  for (int i = 0; i < n; ++i) values[i] = i;
  return values;
}

TEST(Reshape, ShapesAndErrors) {
  const auto shape_of = [](const Ints& shape, int64_t allowzero) {
    return TypeOf({"Reshape", {Iota({2, 3, 4}), List(shape)}, {{"allowzero", allowzero}}, {1}});
  };
  EXPECT_EQ(shape_of({0, -1}, 0)->shape, Shape({2, 12}));
  EXPECT_EQ(shape_of({4, 6}, 0)->shape, Shape({4, 6}));
  EXPECT_THAT(std::string(shape_of({5, -1}, 0).status().message()), HasSubstr("cannot reshape [2, 3, 4] to [5, -1]"));
  EXPECT_FALSE(shape_of({-1, -1}, 0).ok());
  EXPECT_FALSE(shape_of({0, 24}, 1).ok());
  EXPECT_EQ(TypeOf({"Reshape", {Iota({0, 3}), List({3, 0})}, {{"allowzero", int64_t{1}}}, {1}})->shape, Shape({3, 0}));
  EXPECT_EQ(TypeOf({"Reshape", {Iota({2}), List({2})}, {}, {}}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Reshape, KeepsRowMajorOrder) {
  EXPECT_EQ(Values(RunOp({"Reshape", {Iota({2, 3, 4}), List({3, 1, 8})}, {}, {1}})), Counting(24));
  EXPECT_EQ(Values(RunOp({"Reshape", {Iota({0, 3}), List({0, 5})}, {}, {1}})), Counting(0));
  EXPECT_EQ(Values(RunOp({"Flatten", {Iota({2, 3, 4})}, {{"axis", int64_t{2}}}})), Counting(24));
  EXPECT_EQ(TypeOf({"Flatten", {Iota({2, 3, 4})}, {{"axis", int64_t{3}}}})->shape, Shape({24, 1}));
  EXPECT_EQ(TypeOf({"Flatten", {Iota({2, 3, 4})}, {{"axis", int64_t{-1}}}})->shape, Shape({6, 4}));
}

TEST(Squeeze, AxesAndErrors) {
  EXPECT_EQ(TypeOf({"Squeeze", {Iota({1, 3, 1})}})->shape, Shape({3}));
  EXPECT_EQ(TypeOf({"Squeeze", {Iota({1, 3, 1}), List({-1})}, {}, {1}})->shape, Shape({1, 3}));
  EXPECT_FALSE(TypeOf({"Squeeze", {Iota({1, 3, 1}), List({1})}, {}, {1}}).ok());
  EXPECT_EQ(TypeOf({"Unsqueeze", {Iota({3, 4}), List({-1, 0})}, {}, {1}})->shape, Shape({1, 3, 4, 1}));
  EXPECT_FALSE(TypeOf({"Unsqueeze", {Iota({3, 4}), List({0, 0})}, {}, {1}}).ok());
  EXPECT_EQ(MappingOf({"Squeeze", {Iota({1, 3, 1})}}), MappingType::kReorganize);
}

TEST(Transpose, Permutes) {
  EXPECT_THAT(Values(RunOp({"Transpose", {Iota({2, 3})}})), ElementsAre(0, 3, 1, 4, 2, 5));
  const OpCase permuted{"Transpose", {Iota({2, 1, 3})}, {{"perm", Ints{2, 0, 1}}}};
  EXPECT_EQ(TypeOf(permuted)->shape, Shape({3, 2, 1}));
  EXPECT_THAT(Values(RunOp(permuted)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(MappingOf(permuted), MappingType::kShuffle);
  EXPECT_FALSE(TypeOf({"Transpose", {Iota({2, 3})}, {{"perm", Ints{0, 0}}}}).ok());
}

TEST(DepthToSpace, InverseOfSpaceToDepth) {
  const Tensor x = Iota({1, 4, 1, 2});
  const OpCase dcr{"DepthToSpace", {x}, {{"blocksize", int64_t{2}}}};
  EXPECT_THAT(Values(RunOp(dcr)), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  const auto spread = RunOp(dcr);
  EXPECT_EQ(Values(RunOp({"SpaceToDepth", {(*spread)[0]}, {{"blocksize", int64_t{2}}}})), Counting(8));
  const OpCase crd{"DepthToSpace", {Iota({1, 8, 1, 1})}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}};
  EXPECT_EQ(Values(RunOp(crd)), Counting(8));
}

TEST(Slice, StepsAndClamping) {
  const auto slice = [](const Ints& starts, const Ints& ends, const Ints& axes, const Ints& steps) {
    return OpCase{"Slice", {Iota({2, 5}), List(starts), List(ends), List(axes), List(steps)}, {}, {1, 2, 3, 4}};
  };
  EXPECT_THAT(Values(RunOp(slice({1}, {100}, {-1}, {2}))), ElementsAre(1, 3, 6, 8));
  EXPECT_THAT(Values(RunOp(slice({-1}, {INT64_MIN}, {1}, {-2}))), ElementsAre(4, 2, 0, 9, 7, 5));
  EXPECT_THAT(Values(RunOp(slice({1, 0}, {2, 1}, {0, 1}, {1, 1}))), ElementsAre(5));
  EXPECT_EQ(TypeOf(slice({3}, {1}, {1}, {1}))->shape, Shape({2, 0}));
  EXPECT_THAT(Values(RunOp(slice({3}, {1}, {1}, {1}))), ElementsAre());
  EXPECT_THAT(Values(RunOp(slice({4}, {INT64_MAX}, {1}, {INT64_MAX}))), ElementsAre(4, 9));
  EXPECT_FALSE(TypeOf(slice({0}, {1}, {1}, {0})).ok());
  EXPECT_EQ(MappingOf(slice({0}, {1}, {1}, {1})), MappingType::kOneToOne);
}

TEST(Split, SizesAndRemainder) {
  const OpCase sized{"Split", {Iota({5}), List({2, 3})}, {}, {1}, 2};
  EXPECT_THAT(Values(RunOp(sized), 0), ElementsAre(0, 1));
  EXPECT_THAT(Values(RunOp(sized), 1), ElementsAre(2, 3, 4));
  const OpCase counted{"Split", {Iota({5})}, {{"num_outputs", int64_t{2}}}, {}, 2};
  EXPECT_THAT(Values(RunOp(counted), 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(RunOp(counted), 1), ElementsAre(3, 4));
  EXPECT_FALSE(TypeOf({"Split", {Iota({5})}, {}, {}, 2}).ok());
  EXPECT_FALSE(TypeOf({"Split", {Iota({5}), List({2, 2})}, {}, {1}, 2}).ok());
}

TEST(Concat, AnyAxis) {
  const std::vector<std::pair<std::string, ecg::Attribute>> axis = {{"axis", int64_t{-1}}};
  const OpCase three{"Concat", {Iota({2, 1}), Iota({2, 0}), Iota({2, 2}), Iota({2, 1})}, axis};
  EXPECT_THAT(Values(RunOp(three)), ElementsAre(0, 0, 1, 0, 1, 2, 3, 1));
  EXPECT_THAT(std::string(TypeOf({"Concat", {Iota({2, 1}), Iota({3, 1})}, axis}).status().message()),
              HasSubstr("input 1 is f32[3, 1]"));
}

TEST(Pad, Modes) {
  const auto pad = [](const char* mode, const Ints& pads, const Tensor& x) {
    return Values(RunOp({"Pad", {x, List(pads), F32({}, {9})}, {{"mode", std::string(mode)}}, {1, 2}}));
  };
  EXPECT_THAT(pad("constant", {1, 2}, Iota({3})), ElementsAre(9, 0, 1, 2, 9, 9));
  EXPECT_THAT(pad("constant", {-1, 1}, Iota({3})), ElementsAre(1, 2, 9));
  EXPECT_THAT(pad("reflect", {2, 2}, Iota({3})), ElementsAre(2, 1, 0, 1, 2, 1, 0));
  EXPECT_THAT(pad("reflect", {5, 5}, Iota({3})), ElementsAre(1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1));
  EXPECT_THAT(pad("edge", {2, 1}, Iota({3})), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(pad("wrap", {1, 4}, Iota({3})), ElementsAre(2, 0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(pad("edge", {1, 0, 0, 1}, Iota({2, 2})), ElementsAre(0, 1, 1, 0, 1, 1, 2, 3, 3));
  EXPECT_THAT(pad("constant", {1, 1}, Iota({0})), ElementsAre(9, 9));
}

TEST(Pad, ValueKnownOnlyAtRunTime) {
  EXPECT_THAT(Values(RunOp({"Pad", {Iota({2}), List({1, 0}), F32({}, {7})}, {}, {1}})), ElementsAre(7, 0, 1));
}

TEST(Pad, SomeAxes) {
  const OpCase one{"Pad", {Iota({2, 2}), List({1, 0}), Absent(), List({-1})}, {}, {1, 3}};
  EXPECT_THAT(Values(RunOp(one)), ElementsAre(0, 0, 1, 0, 2, 3));
}

TEST(CenterCropPad, CropsAndPads) {
  EXPECT_THAT(Values(RunOp({"CenterCropPad", {Iota({2, 4}), List({3, 2})}, {}, {1}})), ElementsAre(1, 2, 5, 6, 0, 0));
}

TEST(Expand, BroadcastsBothWays) {
  const OpCase grown{"Expand", {Iota({3, 1}), List({2, 1, 2})}, {}, {1}};
  EXPECT_EQ(TypeOf(grown)->shape, Shape({2, 3, 2}));
  EXPECT_THAT(Values(RunOp(grown)), ElementsAre(0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2));
  EXPECT_EQ(MappingOf(grown), MappingType::kOneToMany);
  EXPECT_EQ(MappingOf({"Expand", {Iota({3, 1}), List({3, 1})}, {}, {1}}), MappingType::kOneToOne);
  EXPECT_FALSE(TypeOf({"Expand", {Iota({3}), List({2})}, {}, {1}}).ok());
  EXPECT_FALSE(TypeOf({"Expand", {Iota({1}), List({int64_t{1} << 50})}, {}, {1}}).ok());
}

TEST(Tile, Repeats) {
  EXPECT_THAT(Values(RunOp({"Tile", {Iota({1, 2}), List({2, 2})}, {}, {1}})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Values(RunOp({"Tile", {Iota({2}), List({0})}, {}, {1}})), ElementsAre());
}

TEST(Trilu, BothTriangles) {
  const auto trilu = [](int64_t upper, int64_t k, const std::set<int>& constants) {
    return Values(RunOp({"Trilu", {Iota({2, 3}), I64({}, {k})}, {{"upper", upper}}, constants}));
  };
  EXPECT_THAT(trilu(1, 0, {1}), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(trilu(0, 0, {1}), ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(trilu(1, 1, {}), ElementsAre(0, 1, 2, 0, 0, 5));
  EXPECT_THAT(trilu(0, -1, {}), ElementsAre(0, 0, 0, 3, 0, 0));
  EXPECT_THAT(trilu(0, INT64_MAX, {1}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ReverseSequence, EachRowItsLength) {
  const OpCase rows{
      "ReverseSequence", {Iota({2, 3}), List({2, 3})}, {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}}};
  EXPECT_THAT(Values(RunOp(rows)), ElementsAre(1, 0, 2, 5, 4, 3));
}

TEST(Shape, StaticFacts) {
  EXPECT_THAT(Values(RunOp({"Shape", {Iota({2, 3, 4})}, {{"start", int64_t{-2}}}})), ElementsAre(3, 4));
  EXPECT_THAT(Values(RunOp({"Size", {Iota({2, 3, 4})}})), ElementsAre(24));
  EXPECT_THAT(Values(RunOp({"ConstantOfShape", {List({2})}, {{"value", I64({1}, {5})}}, {0}})), ElementsAre(5, 5));
  EXPECT_THAT(Values(RunOp({"Range", {I64({}, {7}), I64({}, {0}), I64({}, {-3})}, {}, {0, 1, 2}})),
              ElementsAre(7, 4, 1));
  EXPECT_THAT(Values(RunOp({"Range", {F32({}, {1}), F32({}, {2}), F32({}, {0.4})}, {}, {0, 1, 2}})),
              ElementsAre(1, ::testing::DoubleNear(1.4, 1e-6), ::testing::DoubleNear(1.8, 1e-6)));
  EXPECT_THAT(Values(RunOp({"Range", {I64({}, {3}), I64({}, {1}), I64({}, {1})}, {}, {0, 1, 2}})), ElementsAre());
  EXPECT_THAT(Values(RunOp({"EyeLike", {Iota({2, 3})}, {{"k", int64_t{1}}}})), ElementsAre(0, 1, 0, 0, 0, 1));
}

TEST(Shape, RangeOfHalvesCountsInF32) {
  const auto half = [](double value) { return Tensor::From<double>(DType::kF16, {}, {value}); };
  const std::vector<double> values = Values(RunOp({"Range", {half(0), half(8192), half(4)}, {}, {0, 1, 2}}));
  ASSERT_EQ(values.size(), 2048);
  EXPECT_EQ(values[2047], 8188);  // 4 · 2047; every multiple of 4 below 8192 is a half
  // Index 2049 is not representable as a half (it would become 2048), so the indices must count in f32.
  const std::vector<double> fine = Values(RunOp({"Range", {half(0), half(1026), half(0.5)}, {}, {0, 1, 2}}));
  ASSERT_EQ(fine.size(), 2052);
  EXPECT_EQ(fine[2051], Tensor::From<double>(DType::kF16, {}, {1025.5}).GetDouble(0));
  EXPECT_FALSE(TypeOf({"Range", {half(0), half(8), half(4)}, {{"stash_type", int64_t{10}}}, {0, 1, 2}}).ok());
}

TEST(SpaceToDepth, BothModes) {
  const auto run = [](const std::string& mode) {
    return Values(RunOp({"SpaceToDepth", {Iota({1, 2, 2, 2})}, {{"blocksize", int64_t{2}}, {"mode", mode}}}));
  };
  EXPECT_THAT(run("DCR"), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(run("CRD"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(TensorScatter, WritesEachBatchAtItsPlace) {
  const Tensor past = Iota({2, 4, 2}), update = F32({2, 2, 2}, {-1, -2, -3, -4, -5, -6, -7, -8});
  const auto run = [&](const std::vector<Tensor>& inputs, const std::string& mode,
                       const std::set<int>& constants = {}) {
    return Values(RunOp({"TensorScatter", inputs, {{"mode", mode}}, constants}));
  };
  EXPECT_THAT(run({past, update}, "linear"), ElementsAre(-1, -2, -3, -4, 4, 5, 6, 7, -5, -6, -7, -8, 12, 13, 14, 15));
  for (const std::set<int>& constants : {std::set<int>{}, std::set<int>{2}}) {
    EXPECT_THAT(run({past, update, List({2, 1})}, "linear", constants),
                ElementsAre(0, 1, 2, 3, -1, -2, -3, -4, 8, 9, -5, -6, -7, -8, 14, 15));
    EXPECT_THAT(run({past, update, List({3, 6})}, "circular", constants),
                ElementsAre(-3, -4, 2, 3, 4, 5, -1, -2, 8, 9, 10, 11, -5, -6, -7, -8));
  }
  // An update outside the cache is not written.
  EXPECT_THAT(run({past, update, List({3, -1})}, "linear"),
              ElementsAre(0, 1, 2, 3, 4, 5, -1, -2, -7, -8, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(std::string(TypeOf({"TensorScatter", {past, Iota({2, 5, 2})}}).status().message()),
              HasSubstr("update [2, 5, 2] must be past_cache [2, 4, 2]"));
  EXPECT_FALSE(TypeOf({"TensorScatter", {past, update}, {{"axis", int64_t{0}}}}).ok());
}

TEST(Movement, EveryOperatorSaysWhatIsWrong) {
  const auto message = [](const OpCase& op_case) { return std::string(TypeOf(op_case).status().message()); };
  EXPECT_THAT(message({"Concat", {Iota({2})}}), HasSubstr("attribute 'axis' is missing"));
  EXPECT_THAT(message({"Transpose", {Iota({2})}, {{"axes", Ints{0}}}}), HasSubstr("unknown attribute 'axes'"));
  EXPECT_THAT(message({"Slice", {Iota({2}), List({0}), List({1})}}), HasSubstr("must be a constant"));
}

}  // namespace
}  // namespace fusion::ops
