// Tests of the gather, scatter and resize families and of the index tables that they share.
#include "compiler/ops/registry/op_testing.h"
#include "compiler/ops/shared/index_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

Tensor List(const Ints& values) { return I64({static_cast<int64_t>(values.size())}, values); }
const Tensor kMatrix = F32({2, 3}, {0, 1, 2, 3, 4, 5});

std::string TableText(const Ints& values) {
  te::Program program;
  te::Builder builder(&program);
  IndexTable table(&builder, "t", {static_cast<int64_t>(values.size())}, values);
  return te::ToString(table({te::Index(program.NewAxis(static_cast<int64_t>(values.size())))}));
}

TEST(IndexTable, RecognisesArithmetic) {
  EXPECT_EQ(TableText({5, 8, 11, 14}), "3*i0 + 5");
  EXPECT_EQ(TableText({3, 2, 1, 0}), "-i0 + 3");
  EXPECT_EQ(TableText({0, 0, 0, 1, 1, 1}), "i0//3");
  EXPECT_EQ(TableText({7}), "7");
  te::Program program;
  te::Builder builder(&program);
  const auto arithmetic = [&](Shape shape, const Ints& values) {
    return IndexTable(&builder, "t", std::move(shape), values).IsArithmetic();
  };
  EXPECT_TRUE(arithmetic({2, 3}, {0, 1, 2, 10, 11, 12}));
  EXPECT_TRUE(arithmetic({5}, {0, 1, 1, 2, 2}));
  EXPECT_TRUE(arithmetic({6}, {0, 0, 1, 2, 2, 3}));
  EXPECT_FALSE(arithmetic({2, 2}, {0, 1, 1, 3}));
  EXPECT_FALSE(arithmetic({4}, {0, 3, 1, 2}));
}

TEST(IndexTable, ReshapeKeepsPreservedDimensions) {
  te::Program program;
  std::vector<te::Index> out;
  const Shape out_shape = {2, 128, 12, 64};
  for (int64_t extent : out_shape) out.push_back(te::Index(program.NewAxis(extent)));
  const std::vector<te::Index> in = ReshapeIndices(out, out_shape, {2, 128, 768});
  EXPECT_EQ(in[0], out[0]);
  EXPECT_EQ(in[1], out[1]);
  EXPECT_EQ(te::ToString(in[2]), "64*i2 + i3");
}

TEST(Gather, AxesAndWraparound) {
  for (const std::set<int>& constants : {std::set<int>{}, std::set<int>{1}}) {
    EXPECT_THAT(Values(RunOp({"Gather", {kMatrix, List({-1, 0})}, {}, constants})), ElementsAre(3, 4, 5, 0, 1, 2));
    EXPECT_THAT(Values(RunOp({"Gather", {kMatrix, I64({1, 2}, {2, 0})}, {{"axis", int64_t{1}}}, constants})),
                ElementsAre(2, 0, 5, 3));
    EXPECT_THAT(Values(RunOp({"Gather", {kMatrix, I64({}, {1})}, {{"axis", int64_t{-1}}}, constants})),
                ElementsAre(1, 4));
  }
  // Import refuses known indices past the extent where they are read in any case.
  EXPECT_THAT(Values(RunOp({"Gather", {kMatrix, List({2, -3})}, {}, {1}})), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_EQ(CountTes({"Gather", {kMatrix, List({1})}, {}, {1}}), 1);
  EXPECT_EQ(CountTes({"Gather", {kMatrix, List({1})}}), 2);
}

TEST(GatherElements, AlongAnAxis) {
  EXPECT_THAT(Values(RunOp({"GatherElements", {kMatrix, I64({2, 2}, {2, 0, -1, 1})}, {{"axis", int64_t{1}}}})),
              ElementsAre(2, 0, 5, 4));
  EXPECT_FALSE(TypeOf({"GatherElements", {kMatrix, I64({3, 2}, {0, 0, 0, 0, 0, 0})}, {{"axis", int64_t{1}}}}).ok());
}

TEST(GatherND, TuplesAndBatch) {
  EXPECT_THAT(Values(RunOp({"GatherND", {kMatrix, I64({2, 2}, {0, 2, 1, -3})}})), ElementsAre(2, 3));
  EXPECT_THAT(Values(RunOp({"GatherND", {kMatrix, I64({1, 1}, {1})}})), ElementsAre(3, 4, 5));
  EXPECT_THAT(Values(RunOp({"GatherND", {kMatrix, I64({2, 1}, {1, 2})}, {{"batch_dims", int64_t{1}}}})),
              ElementsAre(1, 5));
}

TEST(OneHot, AxisAndNegativeIndices) {
  const auto one_hot = [](int64_t axis) {
    return Values(RunOp({"OneHot", {List({1, -1, 7}), I64({}, {3}), F32({2}, {0, 5})}, {{"axis", axis}}, {1}}));
  };
  EXPECT_THAT(one_hot(-1), ElementsAre(0, 5, 0, 0, 0, 5, 0, 0, 0));
  EXPECT_THAT(one_hot(0), ElementsAre(0, 0, 0, 5, 0, 0, 0, 5, 0));
}

TEST(ScatterElements, LastWinsOrReduces) {
  const auto scatter = [](const char* reduction) {
    return Values(RunOp({"ScatterElements",
                         {kMatrix, I64({1, 3}, {2, -1, 0}), F32({1, 3}, {7, 8, 9})},
                         {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}}}));
  };
  EXPECT_THAT(scatter("none"), ElementsAre(9, 1, 8, 3, 4, 5));
  EXPECT_THAT(scatter("add"), ElementsAre(9, 1, 17, 3, 4, 5));
  EXPECT_THAT(scatter("mul"), ElementsAre(0, 1, 112, 3, 4, 5));
  EXPECT_THAT(scatter("max"), ElementsAre(9, 1, 8, 3, 4, 5));
}

// 256 + 1 is 256 in bf16, and 2048 + 1 is 2048 in f16: one rounding is closer to the sum than three.
TEST(Scatter, HalvesAreRoundedOnceAtTheEnd) {
  const auto sum = [](const std::string& op, DType dtype, double large) {
    const Shape indices = op == "ScatterND" ? Shape{3, 1} : Shape{3};
    return Values(RunOp({op,
                         {Tensor::From<double>(dtype, {2}, {0, 5}), I64(indices, {0, 0, 0}),
                          Tensor::From<double>(dtype, {3}, {large, 1, 1})},
                         {{"reduction", std::string("add")}}}));
  };
  for (const std::string op : {"ScatterElements", "ScatterND"}) {
    EXPECT_THAT(sum(op, DType::kBF16, 256), ElementsAre(258, 5)) << op;
    EXPECT_THAT(sum(op, DType::kF16, 2048), ElementsAre(2050, 5)) << op;
  }
}

// Constant indices that address a box are a choice by coordinates, and agree with the search that others need.
TEST(Scatter, ConstantBoxesAreNotSearched) {
  const auto iota = [](const Shape& shape, double from) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i);
    return F32(shape, values);
  };
  struct Case {
    std::string op;
    Tensor indices;
    Shape updates;
    int64_t axis;
    bool is_box;
  };
  const std::vector<Case> cases = {
      {"ScatterElements", I64({3, 2}, {1, 2, 1, 2, 1, 2}), {3, 2}, 1, true},
      {"ScatterElements", I64({3, 1}, {-1, 3, -1}), {3, 1}, 1, true},
      {"ScatterElements", I64({2, 2}, {0, 1, 0, 1}), {2, 2}, 1, true},  // fewer rows than the data
      {"ScatterElements", I64({3, 4}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}), {3, 4}, 1, true},
      {"ScatterElements", I64({2, 4}, {1, 1, 1, 1, 2, 2, 2, 2}), {2, 4}, 0, true},
      {"ScatterElements", I64({3, 2}, {1, 2, 1, 2, 2, 1}), {3, 2}, 1, false},
      {"ScatterElements", I64({3, 2}, {2, 1, 2, 1, 2, 1}), {3, 2}, 1, false},
      {"ScatterElements", I64({3, 2}, {3, 4, 3, 4, 3, 4}), {3, 2}, 1, false},  // one lies outside
      {"ScatterND", I64({2, 1}, {1, 2}), {2, 4}, 0, true},
      {"ScatterND", I64({1, 1}, {-3}), {1, 4}, 0, true},
      {"ScatterND", I64({2, 2, 2}, {0, 2, 0, 3, 1, 2, 1, 3}), {2, 2}, 0, true},
      {"ScatterND", I64({3, 1, 2}, {0, -1, 1, -1, 2, -1}), {3, 1}, 0, true},
      {"ScatterND", I64({2, 1}, {1, 1}), {2, 4}, 0, false},
      {"ScatterND", I64({2, 1}, {2, 3}), {2, 4}, 0, false},
      {"ScatterND", I64({4, 2}, {0, 2, 0, 3, 1, 2, 1, 3}), {4}, 0, false},  // the box's points in a list
  };
  for (const Case& one : cases) {
    for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
      OpCase scatter{one.op, {iota({3, 4}, 0), one.indices, iota(one.updates, -3)}, {{"reduction", reduction}}};
      if (one.op == "ScatterElements") scatter.attrs.emplace_back("axis", one.axis);
      const std::vector<double> searched = Values(RunOp(scatter));
      EXPECT_EQ(MappingOf(scatter), MappingType::kManyToMany);
      scatter.constants = {1};
      const std::string what = one.op + " " + reduction + " of " + ::testing::PrintToString(Elements(one.indices));
      EXPECT_EQ(Values(RunOp(scatter)), searched) << what;
      EXPECT_EQ(MappingOf(scatter), one.is_box ? MappingType::kOneToOne : MappingType::kManyToMany) << what;
      if (one.is_box) {
        EXPECT_EQ(CountTes(scatter), 1) << what;
      }
    }
  }
}

// A routine applies many updates of many elements one after another, because a search would be quadratic.
TEST(Scatter, LongOnesAreRoutinesForEveryReduction) {
  const int64_t slices = 3000, rows = 2000;
  std::vector<double> data(slices * 2), updates(rows * 2), expected;
  std::vector<int64_t> indices(rows);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<double>(i % 7) - 3;
  for (size_t i = 0; i < updates.size(); ++i) updates[i] = static_cast<double>(i % 5) - 2;
  for (int64_t r = 0; r < rows; ++r) indices[r] = r * r % 37 - 11;
  const auto combine = [](const std::string& reduction, double a, double b) {
    return reduction == "none"  ? b
           : reduction == "add" ? a + b
           : reduction == "mul" ? a * b
           : reduction == "max" ? std::max(a, b)
                                : std::min(a, b);
  };
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    std::vector<double> expected = data, expected_elements = data;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < 2; ++i) {
        double& at = expected[(indices[r] + (indices[r] < 0 ? slices : 0)) * 2 + i];
        at = combine(reduction, at, updates[2 * r + i]);
        // Seen as flat data, both elements of a row update one place.
        double& element = expected_elements[indices[r] + (indices[r] < 0 ? 2 * slices : 0)];
        element = combine(reduction, element, updates[2 * r + i]);
      }
    }
    std::vector<int64_t> twice;
    for (int64_t index : indices) twice.insert(twice.end(), {index, index});
    const OpCase nd{"ScatterND",
                    {F32({slices, 2}, data), I64({rows, 1}, indices), F32({rows, 2}, updates)},
                    {{"reduction", reduction}}};
    const OpCase elements{"ScatterElements",
                          {F32({slices * 2}, data), I64({rows * 2}, twice), F32({rows * 2}, updates)},
                          {{"reduction", reduction}}};
    for (const auto& [scatter, by_hand] : {std::pair{nd, expected}, {elements, expected_elements}}) {
      EXPECT_EQ(Values(RunOp(scatter)), by_hand) << scatter.op << " " << reduction;
      EXPECT_TRUE(IsRoutine(scatter)) << scatter.op << " " << reduction;
    }
  }
}

TEST(ScatterND, SlicesAndElements) {
  EXPECT_THAT(Values(RunOp({"ScatterND", {kMatrix, I64({1, 1}, {-1}), F32({1, 3}, {7, 8, 9})}})),
              ElementsAre(0, 1, 2, 7, 8, 9));
  // The last of several updates of one slice wins; an index outside the data writes nothing.
  EXPECT_THAT(
      Values(RunOp({"ScatterND", {kMatrix, I64({3, 1}, {0, 5, 0}), F32({3, 3}, {6, 6, 6, 7, 7, 7, 8, 9, 10})}})),
      ElementsAre(8, 9, 10, 3, 4, 5));
  EXPECT_THAT(
      Values(RunOp(
          {"ScatterND", {kMatrix, I64({2, 2}, {0, 1, 0, 1}), F32({2}, {7, 8})}, {{"reduction", std::string("add")}}})),
      ElementsAre(0, 16, 2, 3, 4, 5));
  EXPECT_FALSE(TypeOf({"ScatterND", {kMatrix, I64({1, 1}, {0}), F32({1, 2}, {7, 8})}}).ok());
}

OpCase Resized(const Tensor& x, const std::vector<double>& scales,
               std::vector<std::pair<std::string, ecg::Attribute>> attrs) {
  return {"Resize", {x, Absent(), F32({static_cast<int64_t>(scales.size())}, scales)}, std::move(attrs), {2}};
}

TEST(Resize, NearestIsAnIndexMap) {
  const OpCase twice =
      Resized(F32({1, 1, 3}, {1, 2, 3}), {1, 1, 2},
              {{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
  EXPECT_THAT(Values(RunOp(twice)), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_EQ(CountTes(twice), 1);
  EXPECT_EQ(MappingOf(twice), MappingType::kOneToMany);
}

TEST(Resize, LinearAndCubic) {
  const Tensor x = F32({4}, {1, 2, 3, 4});
  const std::string linear = "linear", cubic = "cubic";
  EXPECT_THAT(Values(RunOp(Resized(F32({2}, {1, 2}), {2}, {{"mode", linear}}))), ElementsAre(1, 1.25, 1.75, 2));
  EXPECT_THAT(
      Values(RunOp(Resized(F32({2}, {1, 2}), {2},
                           {{"mode", linear}, {"coordinate_transformation_mode", std::string("align_corners")}}))),
      ElementsAre(1, DoubleNear(4.0 / 3, 1e-6), DoubleNear(5.0 / 3, 1e-6), 2));
  // Expected values are those of ONNX's reference implementation.
  EXPECT_THAT(Values(RunOp(Resized(x, {0.8}, {{"mode", cubic}}))),
              ElementsAre(DoubleNear(1.09423828, 1e-6), DoubleNear(2.40429688, 1e-6), DoubleNear(3.70556641, 1e-6)));
  EXPECT_THAT(Values(RunOp(Resized(x, {0.5}, {{"mode", linear}, {"antialias", int64_t{1}}}))),
              ElementsAre(DoubleNear(1.625, 1e-6), DoubleNear(3.375, 1e-6)));
  EXPECT_THAT(Values(RunOp(Resized(F32({7}, {1, 2, 3, 4, 5, 6, 7}), {0.5},
                                   {{"mode", cubic}, {"antialias", int64_t{1}}, {"exclude_outside", int64_t{1}}}))),
              ElementsAre(DoubleNear(1.5031185, 1e-6), DoubleNear(3.43953935, 1e-6), DoubleNear(5.68065693, 1e-6)));
}

// Rows are resized before columns, whether taps are written out or summed by a reduction. Resizing a product of a
// column and a row vector gives the product of the resized vectors.
TEST(Resize, AxisAfterAxis) {
  const std::string linear = "linear";
  const auto shrunk = [&](const Shape& shape, const std::vector<double>& scales, bool antialias) {
    Tensor x(DType::kF32, shape);
    const int64_t columns = shape.back();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double row = std::sin(static_cast<double>(i / columns)),
                   column = std::cos(static_cast<double>(i % columns));
      x.SetDouble(i, shape[0] == 1 ? column : columns == 1 ? row : row * column);
    }
    return Values(RunOp(Resized(x, scales, {{"mode", linear}, {"antialias", int64_t{antialias}}})));
  };
  for (const bool antialias : {false, true}) {
    for (const auto& [by_rows, by_columns] : std::vector<std::pair<double, double>>{{0.1, 0.5}, {0.5, 0.1}, {0.1, 2}}) {
      const std::vector<double> rows = shrunk({40, 1}, {by_rows, 1}, antialias);
      const std::vector<double> columns = shrunk({1, 30}, {1, by_columns}, antialias);
      const std::vector<double> both = shrunk({40, 30}, {by_rows, by_columns}, antialias);
      ASSERT_EQ(both.size(), rows.size() * columns.size());
      for (size_t i = 0; i < both.size(); ++i) {
        EXPECT_NEAR(both[i], rows[i / columns.size()] * columns[i % columns.size()], 1e-6) << by_rows << " " << i;
      }
    }
  }
  EXPECT_EQ(CountTes(Resized(Wave({40, 30}, 1), {0.1, 0.1}, {{"mode", linear}, {"antialias", int64_t{1}}})), 2);
}

TEST(Resize, Cubic) {
  Tensor x(DType::kF32, {4, 4});
  for (int64_t i = 0; i < 16; ++i) x.SetDouble(i, static_cast<double>(i + 1));
  const OpCase cubic = Resized(x, {2, 2}, {{"mode", std::string("cubic")}});
  const auto values = Values(RunOp(cubic));
  ASSERT_EQ(values.size(), 64u);
  EXPECT_NEAR(values[0], 0.47265625, 1e-6);  // ONNX's test resize_upsample_scales_cubic
  EXPECT_NEAR(values[1], 0.76953125, 1e-6);
  EXPECT_NEAR(values[63], 16.52734375, 1e-5);
}

TEST(Resize, CropExtrapolates) {
  const OpCase crop{"Resize",
                    {F32({3}, {1, 2, 3}), F32({2}, {0, 2}), Absent(), List({3})},
                    {{"mode", std::string("linear")},
                     {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                     {"extrapolation_value", 10.0}},
                    {1, 3}};
  EXPECT_THAT(Values(RunOp(crop)), ElementsAre(1, 3, 10));
}

TEST(Resize, AspectRatioPolicy) {
  const auto shape = [](const char* policy) {
    return TypeOf({"Resize",
                   {F32({2, 4}, std::vector<double>(8)), Absent(), Absent(), List({7, 8})},
                   {{"keep_aspect_ratio_policy", std::string(policy)}},
                   {3}})
        ->shape;
  };
  EXPECT_EQ(shape("stretch"), Shape({7, 8}));
  EXPECT_EQ(shape("not_larger"), Shape({4, 8}));
  EXPECT_EQ(shape("not_smaller"), Shape({7, 14}));
}

TEST(Resize, Errors) {
  const auto message = [](const OpCase& op_case) { return std::string(TypeOf(op_case).status().message()); };
  EXPECT_THAT(message({"Resize", {kMatrix}}), HasSubstr("needs scales or sizes"));
  EXPECT_THAT(message(Resized(kMatrix, {1, 2}, {{"mode", std::string("area")}})),
              HasSubstr("attribute 'mode' is 'area', one of nearest, linear, cubic is required"));
  EXPECT_THAT(message(Resized(kMatrix, {1, 0}, {})), HasSubstr("scale 0 is out of range"));
  const OpCase shrinks{"Resize",
                       {Tensor(DType::kF16, {1 << 24}), Absent(), Absent(), List({3})},
                       {{"mode", std::string("linear")}, {"antialias", int64_t{1}}},
                       {3}};
  EXPECT_THAT(message(shrinks), HasSubstr("resizing an axis of 16777216 elements to 3 takes"));
}

}  // namespace
}  // namespace fusion::ops
