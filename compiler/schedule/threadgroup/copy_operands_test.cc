#include "compiler/schedule/threadgroup/copy_operands.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

const te::Axis kTask{0, 6}, kRow{1, 8}, kDepth{2, 16};

// A kernel with one constant of 8 × 16 elements that lie along the rows.
movement::Kernel OneConstant() {
  movement::Kernel kernel;
  movement::Buffer buffer;
  buffer.dtype = DType::kF32;
  buffer.elements = 8 * 16;
  buffer.is_constant = true;
  kernel.buffers.push_back(buffer);
  return kernel;
}

te::Scalar Along(const te::Index& address) { return te::Load(0, DType::kF32, {address}); }

TEST(PackConstants, TheCopyIsReadInTheOrderOfTheBox) {
  movement::Kernel kernel = OneConstant();
  const te::Scalar packed =
      PackConstants(Along(te::Index(kDepth) * 8 + te::Index(kRow)), {kTask, kRow, kDepth}, {}, &kernel);
  ASSERT_EQ(kernel.packs.size(), 1u);
  ASSERT_EQ(kernel.buffers.size(), 2u);
  EXPECT_EQ(kernel.buffers[1].elements, 8 * 16);  // the task's axis does not move it
  EXPECT_EQ(kernel.buffers[1].packed_from, 0);
  EXPECT_EQ(packed->tensor, 1);
  EXPECT_EQ(packed->indices, std::vector<te::Index>{te::Index(kRow) * 16 + te::Index(kDepth)});
}

TEST(PackConstants, LeavesWhatAnAxisOutsideTheBoxMoves) {
  movement::Kernel kernel = OneConstant();
  PackConstants(Along(te::Index(kDepth) * 8 + te::Index(kRow)), {kDepth}, {}, &kernel);
  EXPECT_TRUE(kernel.packs.empty());
}

TEST(PackConstants, LeavesWhatIsNoConstantOrPackedAlready) {
  movement::Kernel plain = OneConstant();
  plain.buffers[0].is_constant = false;
  PackConstants(Along(te::Index(kDepth) * 8 + te::Index(kRow)), {kRow, kDepth}, {}, &plain);
  EXPECT_TRUE(plain.packs.empty());
  movement::Kernel packed = OneConstant();
  packed.buffers[0].packed_from = 0;
  PackConstants(Along(te::Index(kDepth) * 8 + te::Index(kRow)), {kRow, kDepth}, {}, &packed);
  EXPECT_TRUE(packed.packs.empty());
}

// Windows overlap: 200 × 500 reads of 300 elements would be a copy of 100,000.
TEST(PackConstants, LeavesAConstantThatWouldGrowTooMuch) {
  movement::Kernel kernel = OneConstant();
  kernel.buffers[0].elements = 300;
  const te::Axis row{1, 200}, depth{2, 500};
  PackConstants(Along(te::FloorDiv(te::Index(row) + te::Index(depth), 3)), {row, depth}, {}, &kernel);
  EXPECT_TRUE(kernel.packs.empty());
}

// Only a test of axes that move the constant can be settled when it is packed.
TEST(PackConstants, KeepsTheTestsOfItsOwnAxes) {
  movement::Kernel kernel = OneConstant();
  const te::Pred inside = {{te::Index(kRow), te::Cmp::kLt, te::Index(5)},
                           {te::Index(kTask), te::Cmp::kLt, te::Index(3)}};
  PackConstants(Along(te::Index(kDepth) * 8 + te::Index(kRow)), {kTask, kRow, kDepth}, inside, &kernel);
  ASSERT_EQ(kernel.packs.size(), 1u);
  ASSERT_EQ(kernel.packs[0].pred.size(), 1u);
  EXPECT_EQ(kernel.packs[0].pred[0].lhs, te::Index(kRow));
}

movement::Step CopyOf(const te::Axis& inner, const te::Index& from, const te::Index& to) {
  movement::Step step;
  step.loops = {{inner, std::nullopt}};
  step.body = {Along(from)};
  step.stores = {{1, to}};
  step.store_types = {DType::kF32};
  return step;
}

TEST(VectorizeAligned, OnlyWholeAlignedVectorsBecomeVectors) {
  const te::Index x = te::Index(kDepth), row = te::Index(kRow);
  movement::Step aligned = CopyOf(kDepth, row * 16 + x, x);
  VectorizeAligned(4, &aligned);
  EXPECT_TRUE(aligned.Is<movement::VectorMap>());
  for (const te::Index& from : {row * 17 + x, x + 1, x * 2, te::Index(15) - x}) {
    movement::Step step = CopyOf(kDepth, from, x);
    VectorizeAligned(4, &step);
    EXPECT_TRUE(step.Is<movement::ScalarLoops>());
  }
  movement::Step rest = CopyOf({2, 18}, te::Index(te::Axis{2, 18}), te::Index(te::Axis{2, 18}));
  VectorizeAligned(4, &rest);
  EXPECT_TRUE(rest.Is<movement::ScalarLoops>());  // 18 is no multiple of 4
}

}  // namespace
}  // namespace fusion
