#include "compiler/schedule/nest/flatten.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

// Tensor t lies in buffer 10 + t, row by row.
movement::Store RowByRow(te::TensorId tensor, const std::vector<te::Index>& at) {
  return {10 + tensor, at[0] * 8 + at[1]};
}

te::Program TwoTensors() {
  te::Program program;
  for (const char* name : {"x", "y"}) {
    te::TensorInfo info;
    info.name = name;
    info.shape = {4, 8};
    info.dtype = DType::kF32;
    program.tensors.push_back(info);
  }
  return program;
}

// y[i, j] = x[i + moved, j], zero outside x.
PhysicalTe Moved(int64_t moved) {
  const te::Axis row{0, 4}, column{1, 8};
  PhysicalTe physical;
  physical.te.axes = {row, column};
  physical.te.outputs = {1};
  physical.te.body = {
      te::Load(0, DType::kF32, {te::Index(row) + te::Index(moved), te::Index(column)}, te::Imm(DType::kF32, 0))};
  physical.coordinates = {{te::Index(row), te::Index(column)}};
  return physical;
}

TEST(Flatten, AddressesGoThroughThePlaceOfEachTensor) {
  const Nest nest = Flatten(TwoTensors(), Moved(0), RowByRow);
  EXPECT_EQ(nest.label, "y");
  ASSERT_EQ(nest.stores.size(), 1u);
  EXPECT_EQ(nest.stores[0].buffer, 11);
  ASSERT_EQ(nest.body[0]->kind, te::ScalarKind::kLoad);
  EXPECT_EQ(nest.body[0]->tensor, 10);
  EXPECT_EQ(nest.body[0]->indices, std::vector<te::Index>{nest.stores[0].address});
}

TEST(Flatten, APaddedLoadTestsOnlyWhatCanLeaveTheTensor) {
  EXPECT_EQ(Flatten(TwoTensors(), Moved(0), RowByRow).body[0]->kind, te::ScalarKind::kLoad);
  for (const int64_t moved : {-1, 1}) {
    const te::Scalar body = Flatten(TwoTensors(), Moved(moved), RowByRow).body[0];
    ASSERT_EQ(body->kind, te::ScalarKind::kIf) << moved;
    ASSERT_EQ(body->pred.size(), 1u) << moved;  // one end of the rows; columns stay inside
    EXPECT_EQ(body->pred[0].cmp, moved < 0 ? te::Cmp::kGe : te::Cmp::kLt) << moved;
    EXPECT_EQ(body->args[0]->pad, nullptr) << moved;
  }
}

// Lanes past a mask are thrown away, so that a test of the masked index is needed only where the mask lies behind the
// tensor's end.
TEST(Flatten, AMaskStandsForATestOfTheSameIndex) {
  PhysicalTe physical = Moved(1);
  physical.mask_index = te::Index(te::Axis{0, 4}) + te::Index(1);
  physical.mask_limit = 4;
  EXPECT_EQ(Flatten(TwoTensors(), physical, RowByRow).body[0]->kind, te::ScalarKind::kLoad);
  physical.mask_limit = 5;
  EXPECT_EQ(Flatten(TwoTensors(), physical, RowByRow).body[0]->kind, te::ScalarKind::kIf);
}

// x[x[i, j]-th row, j]: the tensor inside an index has a place, too.
TEST(Flatten, LoadsInsideIndicesArePlaced) {
  PhysicalTe physical = Moved(0);
  const te::Index row = te::Index(physical.te.axes[0]), column = te::Index(physical.te.axes[1]);
  const te::Index looked_up = te::Index::Load(0, {row, column}, {0, 3});
  physical.te.body = {te::Load(0, DType::kF32, {looked_up, column})};
  const Nest nest = Flatten(TwoTensors(), physical, RowByRow);
  const te::Index expected = te::Index::Load(10, {row * 8 + column}, {0, 3}) * 8 + column;
  EXPECT_EQ(nest.body[0]->indices, std::vector<te::Index>{expected});
}

}  // namespace
}  // namespace fusion
