#include "compiler/schedule/tile/pack_operands.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
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

// There are 28 results of a row, and in the last row as many elements of the operand.
struct ShortRow : Tile {
  explicit ShortRow(Scope scope) : Tile("%1: f32[32, 32]", "%1[i3, 16*i1 + i2]") {
    operand().elements = 32 * 32 - 4;
    axes.store_limit = 28;
    axes.store_index = te::Index(axes.vector_in) * 16 + te::Index(axes.lane);
    operand().scope = scope;
  }
  movement::Buffer& operand() { return drafted.draft.kernel.buffers.at(BodyLoads(nest).at(1).buffer); }
};

TEST(PackOperands, ScratchHasRoomPastItsEnd) {
  ShortRow scratch(Scope::kBlock);
  EXPECT_TRUE(OrFail(scratch.Pack()).steps.empty());
  EXPECT_EQ(scratch.operand().elements, 32 * 32);
  ShortRow argument(Scope::kKernel);
  EXPECT_EQ(OrFail(argument.Pack()).steps.size(), 1u) << "copied, with zeros past its end";
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

// Four tasks of two vectors each. Panels lie in the order of the columns: outside of them is only what moves otherwise.
struct TaskOfColumns : Tile {
  explicit TaskOfColumns(int64_t panel_vectors) : Tile("%1: f32[32, 128] const", "%1[i3, 16*i1 + i2]") {
    const Axis task = drafted.draft.axes.New(4);
    const te::Index more = te::Index(nest.axes[1]) + te::Index(task) * 2;
    nest.Substitute([&](const Axis& axis) { return axis.id == axes.vector_in.id ? &more : nullptr; });
    axes.in_task = true;
    axes.outside = {task};
    axes.across = PanelAxis(axes, BodyLoads(nest), nest, drafted.draft.kernel).value_or(Axis{-1, 1});
    axes.panel_vectors = panel_vectors;
  }
};

// The last task of a grid that does not divide computes fewer places than there is room for.
TEST(PackOperands, ACopyFromPlacesOfDataEndsWhereTheTileDoes) {
  Tile picked("%1: f32[4, 16, 32], %3: i64[2]", "%1[%3[i1]{0..3}, i2, i3]");
  const Axis task = picked.drafted.draft.axes.New(2);
  picked.axes.in_task = true;
  picked.axes.others = {picked.axes.vector_in};
  picked.axes.vector_in = {-1, 1};
  const int pick = picked.axes.others[0].id;
  picked.nest.limits[pick] = te::Index(2) - te::Index(task);
  const PackedOperands packed = OrFail(picked.Pack());
  ASSERT_EQ(packed.steps.size(), 1u) << "the lanes lie 32 elements apart";
  for (const movement::Loop& loop : packed.steps[0].loops) {
    EXPECT_EQ(loop.limit.has_value(), loop.axis.extent == 2) << loop.axis.extent;
    if (loop.limit) EXPECT_TRUE(*loop.limit == picked.nest.limits[pick]);
  }
  Tile inner("%1: f32[4, 16, 32], %3: i64[2]", "%1[%3[i1]{0..3}, i2, i3]");
  inner.axes = picked.axes;
  inner.axes.others = {inner.nest.axes[1]}, inner.axes.lane = inner.nest.axes[2], inner.axes.row = inner.nest.axes[0];
  inner.axes.reduction_order = inner.nest.reduction->axes;
  inner.nest.limits[inner.nest.axes[1].id] = te::Index(9) - te::Index(inner.axes.row);
  EXPECT_FALSE(inner.Pack().ok()) << "the copy has no loop over the rows";
}

TEST(PackOperands, PanelsMayBeWiderOrNarrowerThanATile) {
  for (const int64_t vectors : {1, 2, 4, 8}) {
    TaskOfColumns tile(vectors);
    ASSERT_EQ(tile.axes.across.id, tile.axes.outside[0].id);
    OrFail(tile.Pack());
    const movement::Kernel& kernel = tile.drafted.draft.kernel;
    ASSERT_EQ(kernel.packs.size(), 1u);
    std::vector<int64_t> extents;
    for (const Axis& axis : kernel.packs[0].axes) extents.push_back(axis.extent);
    EXPECT_EQ(extents, (std::vector<int64_t>{8 / vectors, 32, vectors, 16})) << "panel, reduction, vector, lane";
    // Task 3 reads column 16 * (2 * 3 + 1) + 5 of row 7 there.
    const auto at = [](const te::Index& index, const std::map<int, te::Index>& values) {
      static const te::Index kZero;
      return te::Substitute(index,
                            [&](const Axis& axis) {
                              const auto value = values.find(axis.id);
                              return value == values.end() ? &kZero : &value->second;
                            })
          .constant();
    };
    const std::vector<Axis>& box = kernel.packs[0].axes;
    EXPECT_EQ(at(kernel.packs[0].address,
                 {{box[0].id, 7 / vectors}, {box[1].id, 7}, {box[2].id, 7 % vectors}, {box[3].id, 5}}),
              7 * 128 + 16 * 7 + 5);
    EXPECT_EQ(at(BodyLoads(tile.nest).at(1).address, {{tile.axes.outside[0].id, 3},
                                                      {tile.axes.vector_in.id, 1},
                                                      {tile.axes.reduction_order[0].id, 7},
                                                      {tile.axes.lane.id, 5}}),
              ((7 / vectors * 32 + 7) * vectors + 7 % vectors) * 16 + 5);
  }
}

TEST(PackOperands, ColumnsThatDoNotFollowEachOtherHaveNoSharedPanels) {
  TaskOfColumns tile(2);
  tile.axes.outside[0] = tile.drafted.draft.axes.New(4);  // the operand does not move with it
  EXPECT_FALSE(PanelAxis(tile.axes, BodyLoads(tile.nest), tile.nest, tile.drafted.draft.kernel).has_value());
  TaskOfColumns cut(2);
  cut.axes.store_limit = 120;
  EXPECT_FALSE(PanelAxis(cut.axes, BodyLoads(cut.nest), cut.nest, cut.drafted.draft.kernel).has_value());
}

TEST(PackOperands, RefusesWhatACopyWouldRepeat) {
  Tile rows("%1: f32[64, 64]", "%1[16*i1 + i2, i0 + i3]");
  EXPECT_EQ(rows.Pack().status().message(), "an operand that moves with the lanes is not contiguous along them");
  Tile toeplitz("%1: f32[1056] const", "%1[16*i1 + i2 + i3]", "i3<1024");
  EXPECT_EQ(toeplitz.Pack().status().message(), "packing would repeat a constant operand many times");
}

}  // namespace
}  // namespace fusion
