#include "compiler/schedule/tile/pack_operands.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;
using testing::OrFail;

using te::Axis;

// 8 rows by two vectors of 16 columns: a product whose axes have their roles already. `right` is the operand that moves
// with the columns.
struct Tile {
  Tile(const std::string& operands, const std::string& right, const char* reduction = "i3<32")
      : drafted(absl::StrCat("te p(%0: f32[8, 4096], ", operands, ") {\n  %2[i0<8, i1<2, i2<16]: f32 = sum.f32(",
                             reduction, ") mul(%0[i0, i3], ", right, ")\n  return %2\n}")),
        nest(drafted.NestOf()) {
    if (nest.axes.size() != 3) return;
    axes.row = nest.axes[0];
    axes.vector_in = nest.axes[1];
    axes.vector_tile = drafted.draft.axes.New(1);
    axes.lane = nest.axes[2];
    axes.reduction_order = nest.reduction->axes;
  }
  absl::StatusOr<PackedOperands> Pack() {
    const std::vector<Operand> loads = BodyLoads(nest);
    return PackOperands(axes, loads, drafted.device, &drafted.draft.kernel, &drafted.draft.axes, &nest);
  }

  DraftedProgram drafted;
  Nest nest;
  TileAxes axes;
};

TEST(PackOperands, AConstantLiesAsTheTileReadsIt) {
  Tile tile("%1: f32[32, 32] const", "%1[i3, 16*i1 + i2]");
  const PackedOperands packed = OrFail(tile.Pack());
  EXPECT_TRUE(packed.steps.empty());
  ASSERT_EQ(packed.panels.size(), 1u);
  EXPECT_EQ(packed.panels[0].elements, 32 * 32);
  EXPECT_EQ(packed.panels[0].panels, 1);
  const movement::Kernel& kernel = tile.drafted.draft.kernel;
  ASSERT_EQ(kernel.packs.size(), 1u);
  std::vector<int64_t> extents;
  for (const Axis& axis : kernel.packs[0].axes) extents.push_back(axis.extent);
  EXPECT_EQ(extents, (std::vector<int64_t>{1, 32, 2, 16})) << "tile of vectors, reduction, vector, lane";
  const Operand read = BodyLoads(tile.nest).at(1);
  EXPECT_EQ(read.buffer, packed.panels[0].buffer);
  int64_t stride = 0;
  EXPECT_TRUE(read.address.AffineIn(tile.axes.lane.id, &stride));
  EXPECT_EQ(stride, 1);
}

TEST(PackOperands, ContiguousOperandsStay) {
  Tile tile("%1: f32[32, 32]", "%1[i3, 16*i1 + i2]");
  const te::Scalar before = tile.nest.body.at(0);
  const PackedOperands packed = OrFail(tile.Pack());
  EXPECT_TRUE(packed.panels.empty() && packed.steps.empty());
  EXPECT_TRUE(te::StructurallyEqual(tile.nest.body[0], before));
}

TEST(PackOperands, AnOperandThatLiesOtherwiseIsCopiedByAStep) {
  Tile tile("%1: f32[32, 32]", "%1[16*i1 + i2, i3]");
  const PackedOperands packed = OrFail(tile.Pack());
  ASSERT_EQ(packed.steps.size(), 1u);
  const movement::Buffer& copy = tile.drafted.draft.kernel.buffers.at(packed.steps[0].stores.at(0).buffer);
  EXPECT_EQ(copy.scope, Scope::kBlock);
  EXPECT_EQ(copy.elements, 32 * 2 * 16) << "of this task: neither rows nor tiles of vectors";
  EXPECT_EQ(BodyLoads(tile.nest).at(1).buffer, packed.steps[0].stores[0].buffer);
}

TEST(PackOperands, RefusesWhatACopyWouldRepeat) {
  Tile rows("%1: f32[64, 64]", "%1[16*i1 + i2, i0 + i3]");
  EXPECT_EQ(rows.Pack().status().message(), "an operand that moves with the lanes is not contiguous along them");
  Tile toeplitz("%1: f32[1056] const", "%1[16*i1 + i2 + i3]", "i3<1024");
  EXPECT_EQ(toeplitz.Pack().status().message(), "packing would repeat a constant operand many times");
}

}  // namespace
}  // namespace fusion
