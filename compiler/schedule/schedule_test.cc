#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/layout/layout.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/schedule_block.h"
#include "compiler/schedule/tile/register_tile.h"
#include "compiler/schedule/tile/tile_shape.h"

namespace fusion {
namespace {

te::Program Stages(const std::string& text) {
  te::Program program = te::Parse(text).value();
  te::Program staged = FormStages(std::move(program)).value();
  EXPECT_TRUE(te::Verify(staged).ok()) << te::Print(staged);
  return staged;
}

DeviceModel Device(int vector_bytes = 64, int registers = 32) {
  DeviceModel device;
  device.vector_bytes = vector_bytes;
  device.vector_registers = registers;
  device.memory = {{"L1", 32 << 10, 2e11, false}, {"L2", 1 << 20, 7e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

ScheduledBlock Schedule(const std::string& text, const std::map<te::TensorId, Layout>& layouts = {},
                        const DeviceModel& device = Device()) {
  return ScheduleBlock(Stages(text), layouts, device).value();
}

// 128 results are computed in tasks, of which the last has 117: 26 rounds of 5 would go past the end of the full tasks.
TEST(Nest, AnAxisWithALimitIsSplitOnlyByADivisorOfItsExtent) {
  for (const int64_t extent : {125, 128}) {
    AxisSource axes(0);
    const te::Axis task = axes.New(4), local = axes.New(extent);
    Nest nest;
    nest.axes = {local};
    nest.body = {te::Load(0, DType::kF32, {te::FloorDiv(te::Index(local), 5)})};
    nest.limits[local.id] = te::Index(501) - te::Index(task) * extent;
    SplitSpatialAxes(&nest, &axes, 2, /*cut_short=*/true);
    EXPECT_EQ(nest.axes.size(), extent % 5 == 0 ? 2u : 1u) << extent;
  }
}

TEST(RegisterTile, LeavesBodiesWithoutAVectorFormAlone) {
  for (const char* body : {"tan(%0[i1, i0])", "sinh(%0[i1, i0])"}) {
    const ScheduledBlock block =
        Schedule(absl::StrCat("te p(%0: f32[40, 64]) {\n  %1[i0<64]: f32 = sum.f32(i1<40) ", body, "\n  return %1\n}"));
    for (const movement::Step& step : block.kernel.phases[0].steps) {
      EXPECT_NE(step.strategy, movement::Strategy::kTile) << body;
    }
  }
  const ScheduledBlock known =
      Schedule("te p(%0: f32[40, 64]) {\n  %1[i0<64]: f32 = sum.f32(i1<40) exp(%0[i1, i0])\n  return %1\n}");
  EXPECT_EQ(known.kernel.phases[0].steps[0].strategy, movement::Strategy::kTile);
}

TEST(RegisterTile, ChannelsThatFillNoWholeBlockStillAreLanes) {
  const Layout blocked{1, 16};
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[1, 58, 28, 28], %1: f32[58, 3, 3] const) {
  %2[i0<1, i1<58, i2<28, i3<28]: f32 = sum.f32(i4<3, i5<3) mul(%0[i0, i1, i2 + i4 - 1, i3 + i5 - 1]?0.0, %1[i1, i4, i5])
  return %2
})",
                                        {{0, blocked}, {2, blocked}});
  EXPECT_EQ(block.kernel.phases[0].steps[0].strategy, movement::Strategy::kTile);
}

std::vector<movement::Strategy> Strategies(const movement::Phase& phase) {
  std::vector<movement::Strategy> strategies;
  for (const movement::Step& step : phase.steps) strategies.push_back(step.strategy);
  return strategies;
}

// Rows lie half a page apart: vectors are gathered first where many rows of the result read them.
TEST(RegisterTile, FarVectorsArePacked) {
  using S = movement::Strategy;
  const auto product = [](int rows, int pitch) {
    const ScheduledBlock block = Schedule(absl::StrFormat(R"(te p(%%0: f32[%d, 256], %%1: f32[256, %d]) {
  %%2[i0<%d, i1<64]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%1[i2, i1])
  return %%2
})",
                                                          rows, pitch, rows));
    return Strategies(block.kernel.phases[0]);
  };
  EXPECT_EQ(product(128, 768), (std::vector<S>{S::kMapVec, S::kTile}));
  EXPECT_EQ(product(128, 64), (std::vector<S>{S::kTile}));
  EXPECT_EQ(product(14, 768), (std::vector<S>{S::kTile}));
}

// With pixels as lanes every task would copy the image, and the weights of neighbouring rows lie 3 to 48 KiB apart.
// With channels as lanes tasks read neighbouring pixels, and weights that are packed at compile time.
TEST(RegisterTile, APlainImageBehindABlockedResultIsBroadcast) {
  for (int channels : {256, 384, 768}) {
    for (int lanes : {8, 16}) {
      const std::string text = absl::StrFormat(
          "te p(%%0: f32[1, %1$d, 14, 14], %%1: f32[%1$d, %1$d] const) {\n"
          "  %%2[i0<1, i1<%1$d, i2<14, i3<14]: f32 = sum.f32(i4<%1$d) mul(%%0[i0, i4, i2, i3], %%1[i1, i4])\n"
          "  return %%2\n}",
          channels);
      const auto block = ScheduleBlock(Stages(text), {{2, Layout{1, lanes}}}, Device(4 * lanes, lanes == 8 ? 16 : 32));
      ASSERT_TRUE(block.ok()) << block.status();
      EXPECT_EQ(Strategies(block->kernel.phases[0]), std::vector<movement::Strategy>{movement::Strategy::kTile})
          << movement::Print(block->kernel);
    }
  }
}

TEST(ColumnReductions, RowsBeyondTheCachesAreReadAsTheyLie) {
  const auto mean = [](int rows, int columns) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[%d, %d]) {\n  %%1[i0<%d]: f32 = sum.f32(i1<%d) %%0[i1, i0] then "
                        "(mul(acc0, 0.5))\n  return %%1\n}",
                        rows, columns, columns, rows));
  };
  const ScheduledBlock far = mean(4096, 768);
  ASSERT_EQ(far.kernel.phases.size(), 2u);  // parts of the rows, then their sums
  EXPECT_EQ(far.kernel.phases[0].tasks(), 4);
  EXPECT_EQ(Strategies(far.kernel.phases[0]), std::vector<movement::Strategy>(3, movement::Strategy::kMapVec));
  EXPECT_EQ(mean(64, 768).kernel.phases.size(), 1u);    // these rows stay in the cache
  EXPECT_EQ(mean(65536, 64).kernel.phases.size(), 1u);  // these sums fit registers
}

// Rows of 500 columns are not whole vectors, and what is read once is not worth copying.
TEST(ColumnReductions, RowsTimesMatricesReadTheMatricesAsTheyLie) {
  const auto products = [](int rows, int columns) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[8, %d], %%1: f32[8, %d, %d]) {\n  %%2[i0<8, i1<%d]: f32 = sum.f32(i2<%d) "
                        "mul(%%0[i0, i2], %%1[i0, i2, i1])\n  return %%2\n}",
                        rows, rows, columns, columns, rows));
  };
  for (const ScheduledBlock& block : {products(64, 500), products(1024, 500), products(64, 50)}) {
    EXPECT_EQ(Strategies(block.kernel.phases[0]), std::vector<movement::Strategy>(3, movement::Strategy::kMapVec));
  }
  EXPECT_EQ(Strategies(products(64, 256).kernel.phases[0]),
            std::vector<movement::Strategy>{movement::Strategy::kTile});  // within the caches
}

TEST(ColumnReductions, WeightsArePackedInstead) {
  const auto row_by = [](const char* matrix) {
    return Schedule(
        absl::StrFormat("te p(%%0: f32[1024], %%1: f32[1024, 768]%s) {\n  %%2[i0<768]: f32 = sum.f32(i1<1024) "
                        "mul(%%0[i1], %%1[i1, i0]) then (mul(acc0, 0.5))\n  return %%2\n}",
                        matrix));
  };
  EXPECT_EQ(row_by("").kernel.phases.size(), 2u);
  const ScheduledBlock product = row_by(" const");
  EXPECT_EQ(product.kernel.packs.size(), 1u);
  EXPECT_EQ(Strategies(product.kernel.phases.at(0)), std::vector<movement::Strategy>{movement::Strategy::kTile});
  EXPECT_EQ(product.kernel.phases.size(), 1u);
}

TEST(PrefetchReads, CostlyMapsAskForVectorsAhead) {
  const auto map = [](const char* body) {
    return Schedule(absl::StrCat("te p(%0: f32[1048576]) {\n  %1[i0<1048576]: f32 = ", body, "\n  return %1\n}"))
        .kernel.phases[0]
        .steps[0];
  };
  EXPECT_EQ(map("max(%0[i0], 0.0)").read_next.axis, -1);
  const movement::Step step = map("erf(%0[i0])");
  EXPECT_EQ(step.read_next.axis, step.loops.back().axis.id);
  EXPECT_EQ(step.read_next.distance, 256);
}

// Windows that overlap find each element again: their sums are not kept in memory while rows go by.
TEST(ColumnReductions, WindowsThatOverlapAreNone) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 130, 512], %1: f32[64, 3, 3] const) {
  %2[i0<64, i1<128, i2<510]: f32 = sum.f32(i3<3, i4<3) mul(%0[i0, i1 + i3, i2 + i4], %1[i0, i3, i4])
  return %2
})");
  EXPECT_EQ(block.kernel.phases[0].steps.size(), 1u) << movement::Print(block.kernel);
}

TEST(StreamingStores, ResultsBeyondAllCachesMayBe) {
  const auto store = [](int elements, int choice) {
    ScheduleOptions options;
    options.choices = {{"streaming", choice}};
    const ScheduledBlock block =
        ScheduleBlock(
            Stages(absl::StrFormat("te p(%%0: f32[%d]) {\n  %%1[i0<%d]: f32 = max(%%0[i0], 0.0)\n  return %%1\n}",
                                   elements, elements)),
            {}, Device(), options)
            .value();
    return block.kernel.phases[0].steps[0].streaming_stores;
  };
  EXPECT_FALSE(store(16 << 20, 0));
  EXPECT_TRUE(store(16 << 20, 1));
  EXPECT_FALSE(store(1 << 20, 1));
}

// A mask that other kernels read too, and the stage that adds it: tasks take columns, but whole vectors of them.
TEST(TaskGrid, ColumnsAreVectors) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[1024], %1: f32[12, 1024, 1024]) {
  %2[i0<1024]: f32 = exp(%0[i0])
  %3[i1<12, i2<1024, i3<1024]: f32 = add(%1[i1, i2, i3], %2[i3])
  return %2, %3
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  for (const movement::Step& step : block.kernel.phases[0].steps) {
    EXPECT_EQ(step.strategy, movement::Strategy::kMapVec) << movement::Print(block.kernel);
  }
}

// Tasks whose rows read the same keys share them; the scores of a tile of rows stay in the core's own cache.
TEST(TaskGrid, AttentionOfManyKeysIsOneTask) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[12, 1024, 64], %1: f32[12, 1024, 64], %2: f32[12, 1024, 64]) {
  %3[i0<12, i1<1024, i2<1024]: f32 = sum.f32(i3<64) mul(%0[i0, i1, i3], %1[i0, i2, i3])
  %4[i4<12, i5<1024]: f32 = max.f32(i6<1024) %3[i4, i5, i6]
  %5[i7<12, i8<1024, i9<1024]: f32 = exp(sub(%3[i7, i8, i9], %4[i7, i8]))
  %6[i10<12, i11<1024, i12<64]: f32 = sum.f32(i13<1024) mul(%5[i10, i11, i13], %2[i10, i13, i12])
  return %6
})");
  ASSERT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  const movement::Phase& phase = block.kernel.phases[0];
  ASSERT_EQ(phase.grid.size(), 2u);
  EXPECT_EQ(phase.grid[0].extent, 12);
  EXPECT_GE(phase.grid[1].extent, 4);
  EXPECT_LE(phase.grid[1].extent, 32);
  EXPECT_LE(block.kernel.scratch_bytes, 1 << 20);
}

TEST(FormStages, ChainOfMapsIsOneStage) {
  const te::Program p = Stages(R"(te p(%0: f32[8, 32], %1: f32[32]) {
  %2[i0<8, i1<32]: f32 = add(%0[i0, i1], %1[i1])
  %3[i2<8, i3<32]: f32 = exp(%2[i2, i3])
  %4[i4<8, i5<32]: f32 = mul(%3[i4, i5], %2[i4, i5])
  return %4
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, CostlyMapReadOftenIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<32]: f32 = exp(%0[i0])
  %2[i1<100, i2<32]: f32 = mul(%1[i2], 2.0)
  return %2
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, CheapMapReadOftenIsRecomputed) {
  const te::Program p = Stages(R"(te p(%0: f32[50, 32]) {
  %1[i0<50, i1<32]: f32 = add(%0[i0, i1], 1.0)
  %2[i2<50, i3<32]: f32 = exp(add(%1[i2, i3], %1[49 - i2, i3]))
  return %2
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

// Substituting any of these would double the expressions of the last.
TEST(FormStages, MapReadAtSeveralPlacesIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<31]: f32 = div(%0[i0], add(%0[i0 + 1], 3.0))
  %2[i1<30]: f32 = div(%1[i1], add(%1[i1 + 1], 3.0))
  %3[i2<29]: f32 = div(%2[i2], add(%2[i2 + 1], 3.0))
  return %3
})");
  EXPECT_EQ(p.tes.size(), 3u) << te::Print(p);
}

TEST(FormStages, OfTwoBranchesOneReads) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<32]: f32 = exp(%0[i0])
  %2[i1<33]: f32 = if i1 < 20 then %1[i1] else %1[i1 - 1]
  return %2
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, ComputedOperandOfAProductIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64]) {
  %2[i0<16, i1<32]: f32 = exp(%0[i0, i1])
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%2[i2, i4], %1[i4, i3])
  return %3
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, MovedOperandOfAProductIsRead) {
  const te::Program p = Stages(R"(te p(%0: f32[32, 16], %1: f32[32, 64]) {
  %2[i0<16, i1<32]: f32 = %0[i1, i0]
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%2[i2, i4], %1[i4, i3])
  return %3
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, MapAfterAReductionIsItsEpilogue) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64], %2: f32[64]) {
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  %4[i5<16, i6<64]: f32 = erf(add(%3[i5, i6], %2[i6]))
  %5[i7<4, i8<16, i9<16]: f32 = %4[i8, 16*i7 + i9]
  return %5
})");
  ASSERT_EQ(p.tes.size(), 1u) << te::Print(p);
  EXPECT_FALSE(p.tes[0].IsMap());
  EXPECT_EQ(p.tes[0].axes.size(), 3u);
}

// A convolution, its bias, and a pooling whose windows read each element once.
TEST(FormStages, EpilogueStaysWithItsReductionWhereAnotherReductionReadsOn) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64], %2: f32[64]) {
  %3[i0<16, i1<64]: f32 = sum.f32(i2<32) mul(%0[i0, i2], %1[i2, i1])
  %4[i3<16, i4<64]: f32 = add(%3[i3, i4], %2[i4])
  %5[i5<8, i6<64]: f32 = max.f32(i7<2) %4[2*i5 + i7, i6]
  return %5
})");
  ASSERT_EQ(p.tes.size(), 2u) << te::Print(p);
  EXPECT_EQ(p.tes[0].outputs[0], 4) << te::Print(p);
  EXPECT_FALSE(p.tes[0].then.empty());
  EXPECT_EQ(p.tes[1].body[0]->kind, te::ScalarKind::kLoad);
}

TEST(FormStages, ExpandedReductionIsNotRecomputed) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32]) {
  %1[i0<16]: f32 = sum.f32(i1<32) %0[i0, i1]
  %2[i2<16, i3<32]: f32 = div(%0[i2, i3], %1[i2])
  return %2
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, ResultReadInsideStaysAResult) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64]) {
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  %4[i5<16, i6<64]: f32 = erf(%3[i5, i6])
  return %3, %4
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, IndexTensorIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[9, 2], %1: i64[3]) {
  %2[i0<3]: i64 = add(%1[i0], 1:i64)
  %3[i1<3, i2<2]: f32 = %0[%2[i1]{0..8}, i2]
  return %3
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, ScalarConstantBecomesAnImmediate) {
  const te::Program p = Stages(R"(te p(%0: f32[9], %1: f32[] const {0.5}) {
  %2[i0<9]: f32 = mul(%0[i0], %1[])
  return %2
})");
  EXPECT_NE(te::Print(p).find("mul(%0[i0], 0.5)"), std::string::npos) << te::Print(p);
}

TEST(TileShape, FitsTheRegisters) {
  for (int registers : {16, 32}) {
    const DeviceModel device = Device(registers == 32 ? 64 : 32, registers);
    for (int64_t rows : {1, 2, 5, 7, 8, 14, 28, 49, 128, 197, 1000}) {
      for (int64_t vectors : {1, 2, 3, 4, 6, 48}) {
        const TileShape shape = ChooseTileShape(rows, vectors, true, true, device);
        EXPECT_LE(shape.rows, rows);
        EXPECT_LE(shape.vectors, vectors);
        EXPECT_LE(shape.rows * shape.vectors + shape.vectors + 1, registers) << rows << " " << vectors;
        // There are enough independent sums to hide the latency, where the problem has them.
        if (rows >= 8 && vectors >= 3) EXPECT_GE(shape.rows * shape.vectors, 8) << rows << " " << vectors;
      }
    }
  }
}

TEST(TileShape, IsAsGoodAsTheMeasuredOnes) {
  const DeviceModel wide = Device();
  const TileShape gemm = ChooseTileShape(128, 48, true, true, wide);
  EXPECT_EQ(gemm.rows, 8) << gemm.rows << "x" << gemm.vectors;
  const TileShape row28 = ChooseTileShape(28, 4, true, true, wide);
  EXPECT_EQ(28 % row28.rows, 0) << row28.rows << "x" << row28.vectors;
  const TileShape narrow = ChooseTileShape(128, 96, true, true, Device(32, 16));
  EXPECT_EQ(narrow.rows, 6) << narrow.rows << "x" << narrow.vectors;
}

// Nothing is read twice: whole rows of vectors, and few rows, each of which is a stream.
TEST(TileShape, ReadsStreamsInWholeRows) {
  for (const auto& [rows, vectors, of_tile, wide] :
       {std::tuple(32, 2, 4, 2), std::tuple(16, 8, 1, 8), std::tuple(1, 3, 1, 3), std::tuple(100, 4, 2, 4)}) {
    const TileShape shape = ChooseTileShape(rows, vectors, false, false, Device());
    EXPECT_EQ(shape.rows, of_tile) << rows << "x" << vectors;
    EXPECT_EQ(shape.vectors, wide) << rows << "x" << vectors;
  }
  EXPECT_GE(ChooseTileShape(32, 1, false, false, Device()).rows, 8) << "one vector a row: rows cover the latency";
}

TEST(LayoutTest, BlockedMap) {
  const Layout layout{1, 16};
  EXPECT_EQ(layout.PhysicalShape({2, 24, 5, 7}), (Shape{2, 2, 5, 7, 16}));
  EXPECT_EQ(Layout().PhysicalShape({2, 24}), (Shape{2, 24}));
  EXPECT_TRUE(Layout().plain());
  const te::Axis c{0, 24};
  const std::vector<te::Index> at = layout.Apply({te::Index(1), te::Index(c), te::Index(3), te::Index(4)});
  ASSERT_EQ(at.size(), 5u);
  EXPECT_EQ(at[1], te::FloorDiv(te::Index(c), 16));
  EXPECT_EQ(at[4], te::Mod(te::Index(c), 16));
  EXPECT_EQ(layout.ToString(4), "(d0, d1, d2, d3) -> (d0, d1//16, d2, d3, d1%16)");
  EXPECT_EQ(Layout().ToString(4), "plain");
}

TEST(LayoutTest, AxisBehindAllOthers) {
  const Layout layout{1, Layout::kWhole};
  EXPECT_EQ(layout.PhysicalShape({2, 24, 5, 7}), (Shape{2, 5, 7, 24}));
  const std::vector<te::Index> at = layout.Apply({te::Index(1), te::Index(2), te::Index(3), te::Index(4)});
  EXPECT_EQ(at, (std::vector<te::Index>{te::Index(1), te::Index(3), te::Index(4), te::Index(2)}));
  EXPECT_EQ(layout.ToString(4), "(d0, d1, d2, d3) -> (d0, d2, d3, d1)");
}

constexpr char kSoftmax[] = R"(te p(%0: f32[512, 64]) {
  %1[i0<512]: f32 = max.f32(i1<64) %0[i0, i1]
  %2[i2<512, i3<64]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  %3[i4<512]: f32 = sum.f32(i5<64) %2[i4, i5]
  %4[i6<512, i7<64]: f32 = div(%2[i6, i7], %3[i6])
  return %4
})";

TEST(ScheduleBlock, RowsAreStitched) {
  const ScheduledBlock block = Schedule(kSoftmax);
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  EXPECT_EQ(block.kernel.phases[0].tasks(), 512);
  EXPECT_EQ(block.kernel.phases[0].steps.size(), 4u) << movement::Print(block.kernel);
  // The intermediates hold a row each, not the tensor.
  EXPECT_LE(block.kernel.scratch_bytes, 4096);
  EXPECT_EQ(block.kernel.num_args(), 2);
}

TEST(ScheduleBlock, RowsBeyondTheCachesAreAskedForATaskAhead) {
  for (const movement::Step& step : Schedule(kSoftmax).kernel.phases[0].steps) EXPECT_EQ(step.read_next.axis, -1);
  DeviceModel small = Device();
  small.memory[1].size_bytes = 64 << 10;  // the rows that are read take 128 KiB
  const absl::StatusOr<ScheduledBlock> block = ScheduleBlock(Stages(kSoftmax), {}, small);
  ASSERT_TRUE(block.ok()) << block.status();
  const movement::Phase& phase = block->kernel.phases[0];
  ASSERT_EQ(phase.steps.size(), 4u);
  for (size_t s = 0; s < 4; ++s) {
    // The maximum and the exponentials both read the rows; the exponentials take longer, so they prefetch.
    const bool asks = s == 1;
    EXPECT_EQ(phase.steps[s].read_next.axis, asks ? phase.grid.back().id : -1) << s;
    EXPECT_EQ(phase.steps[s].read_next.buffers, asks ? std::vector<int>{0} : std::vector<int>{}) << s;
  }
}

// Each task reads some row of %2 and could compute all rows, but no task needs the rows between.
TEST(ScheduleBlock, AResultThatIsReadInPartIsNotTheTasksOwn) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 64, 512], %1: i64[64, 512]) {
  %2[i0<64, i1<64, i2<512]: f32 = exp(%0[i0, i1, i2])
  %3[i3<64, i4<512]: i64 = min(max(%1[i3, i4], 0:i64), 63:i64)
  %4[i5<64, i6<512]: f32 = exp(%2[%3[i5, i6]{0..63}, 0, i6])
  return %2, %4
})");
  EXPECT_GT(block.kernel.phases.size(), 1u);
}

// A single task computes everything, including the rows that it does not read.
TEST(ScheduleBlock, ASingleTaskComputesAllOfItsResults) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[4, 4, 8], %1: i64[4, 8], %2: f32[3]) {
  %3[i0<4, i1<4, i2<8]: f32 = exp(%0[i0, i1, i2])
  %4[i3<4, i4<8]: i64 = min(max(%1[i3, i4], 0:i64), 3:i64)
  %5[i7<3]: f32 = exp(%2[i7])
  %6[i5<4, i6<8]: f32 = exp(add(%3[%4[i5, i6]{0..3}, 0, i6], %5[2]))
  return %3, %5, %6
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  EXPECT_EQ(block.kernel.phases[0].tasks(), 1);
}

// A row is looked up by column: each task would compute the indices of all columns, so it takes many rows.
TEST(ScheduleBlock, WhatATaskComputesForAllRowsIsSharedByMany) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[512, 512], %1: i64[512], %2: i64[512]) {
  %3[i0<512]: i64 = min(max(%1[i0], 0:i64), 511:i64)
  %4[i1<512]: i64 = min(max(%2[i1], 0:i64), 511:i64)
  %5[i2<512, i3<512]: f32 = %0[%3[i2]{0..511}, %4[i3]{0..511}]
  return %5
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  EXPECT_GE(block.kernel.phases[0].tasks(), 2);
  EXPECT_LE(block.kernel.phases[0].tasks(), 64);
}

// The parts of a Concat behind another stage become loops of their own, in vectors.
TEST(ScheduleBlock, RangesInATaskAreVectors) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 512], %1: f32[64, 512], %2: i64[64]) {
  %3[i0<64]: i64 = min(max(%2[i0], 0:i64), 63:i64)
  %4[i1<128, i2<512]: f32 = if i1 < 64 then %0[%3[i1]{0..63}, i2] else %1[i1 - 64, i2]
  return %4
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  const std::vector<movement::Step>& steps = block.kernel.phases[0].steps;
  EXPECT_EQ(steps.back().strategy, movement::Strategy::kMapVec) << movement::Print(block.kernel);
}

// One output of a stage is a result; the other is read within the fusion block only.
TEST(ScheduleBlock, OutputsOfAStageHaveOneHome) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 32]) {
  %1, %2[i0<64]: f32, f32 = reduce(i1<32)(0.0, 0.0) -> (add(acc0, %0[i0, i1]), max(acc1, %0[i0, i1]))
  %3[i2<64]: f32 = exp(%2[i2])
  %4[i3<64, i4<32]: f32 = sub(%0[i3, i4], %3[i3])
  return %1, %4
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  EXPECT_EQ(block.kernel.num_args(), 4);
}

TEST(ScheduleBlock, AnOutputNobodyWantsHasAHomeToo) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 32]) {
  %1, %2[i0<64]: f32, f32 = reduce(i1<32)(0.0, 0.0) -> (add(acc0, %0[i0, i1]), max(acc1, %0[i0, i1]))
  return %1
})");
  EXPECT_EQ(block.kernel.num_args(), 3);
}

TEST(ScheduleBlock, ReductionOverEverythingIsNotStitched) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})");
  EXPECT_GT(block.kernel.phases.size(), 1u);
  EXPECT_FALSE(block.reason.empty());
  ASSERT_EQ(block.kernel.phases.size(), 2u);
  EXPECT_EQ(block.kernel.num_args(), 3);  // the sum is handed over at device scope
}

// A product, followed by a softmax over the rows without its maximum.
ScheduledBlock ProductAndRows(int64_t columns) {
  return Schedule(absl::StrFormat(R"(te p(%%0: f32[128, 256], %%1: f32[256, %d] const) {
  %%2[i0<128, i1<%d]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%1[i2, i1])
  %%3[i3<128]: f32 = sum.f32(i4<%d) %%2[i3, i4]
  %%4[i5<128, i6<%d]: f32 = div(%%2[i5, i6], %%3[i5])
  return %%4
})",
                                  columns, columns, columns, columns));
}

TEST(ScheduleBlock, ProductTilesInsideATask) {
  const ScheduledBlock block = ProductAndRows(512);
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  const movement::Phase& phase = block.kernel.phases[0];
  EXPECT_EQ(phase.steps[0].strategy, movement::Strategy::kTile) << movement::Print(block.kernel);
  EXPECT_GE(phase.tasks(), 2);   // enough for one core
  EXPECT_LE(phase.tasks(), 16);  // each reads the weights again
  EXPECT_EQ(block.kernel.num_args(), 3);
}

// A step of a recurrent network: no element of the matrix is read again, but a single vector of sums would wait for
// each addition.
TEST(ScheduleBlock, ARowTimesAMatrixInATaskHasSeveralVectorsOfSums) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[128], %1: f32[128, 256] const, %2: f32[256]) {
  %3[i0<256]: f32 = sum.f32(i1<128) mul(%0[i1], %1[i1, i0])
  %4[i2<128]: f32 = tanh(add(%3[i2], %2[i2]))
  %5[i3<128]: f32 = mul(exp(%4[i3]), tanh(add(%3[i3 + 128], %4[i3])))
  return %4, %5
})");
  ASSERT_EQ(block.kernel.phases.size(), 1u) << movement::Print(block.kernel);
  const movement::Step& product = block.kernel.phases[0].steps.at(0);
  ASSERT_EQ(product.strategy, movement::Strategy::kTile) << movement::Print(block.kernel);
  EXPECT_GT(product.tile.outer_count, 1);
  EXPECT_EQ(block.kernel.packs.size(), 1u);
}

TEST(ScheduleBlock, LargeProductIsAPhaseWithATile) {
  const ScheduledBlock block = ProductAndRows(131072);
  EXPECT_GT(block.kernel.phases.size(), 1u);
  EXPECT_EQ(block.kernel.phases[0].steps.back().strategy, movement::Strategy::kTile) << movement::Print(block.kernel);
  // The stages after the product share one grid.
  ASSERT_EQ(block.kernel.phases.size(), 2u) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.phases[1].tasks(), 128);
  EXPECT_EQ(block.kernel.num_args(), 4);  // the product is at device scope, the sums are not
}

TEST(ScheduleBlock, SlicesOfALongProductAreOneStage) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[256, 3072], %1: f32[3072, 512] const, %2: f32[512]) {
  %3[i0<256, i1<512]: f32 = sum.f32(i2<3072) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))
  return %3
})");
  EXPECT_EQ(block.kernel.phases.size(), 6u);
  EXPECT_EQ(block.reason, "");  // the product's epilogue may join it
}

TEST(ScheduleBlock, UnusedConstantIsReplacedByItsPackedCopy) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[16, 32], %1: f32[32, 40] const) {
  %2[i2<16, i3<40]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  return %2
})");
  ASSERT_EQ(block.kernel.packs.size(), 1u) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.num_args(), 3) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.phases[0].steps.back().strategy, movement::Strategy::kTile);
}

TEST(ScheduleBlock, TasksFollowTheDevice) {
  constexpr char kText[] = R"(te p(%0: f32[4096, 1024]) {
  %1[i0<4096, i1<1024]: f32 = exp(%0[i0, i1])
  return %1
})";
  auto tasks = [&](int units, int vector_bytes, double flops_per_s) {
    DeviceModel device = Device(vector_bytes);
    device.parallel_units = units;
    device.fma_f32_flops_per_s = flops_per_s;
    ScheduledBlock block = ScheduleBlock(Stages(kText), {}, device).value();
    return block.kernel.phases[0].tasks();
  };
  EXPECT_LT(tasks(1, 64, 1e11), tasks(16, 64, 1e11));
  EXPECT_EQ(tasks(2, 64, 1e11), tasks(2, 64, 3e11)) << "a measured rate may not change what is built";
}

TEST(ScheduleBlock, PrintsTheSameEveryTime) {
  const std::string text = movement::Print(Schedule(kSoftmax).kernel);
  EXPECT_EQ(movement::Print(Schedule(kSoftmax).kernel), text);
}

// Three parts of 64, 128 and 64 channels, each through its own expression.
const char kParts[] = R"(te p(%0: f32[1, 64, 28, 28], %1: f32[1, 128, 28, 28], %2: f32[1, 64, 28, 28]) {
  %3[i0<1, i1<64, i2<28, i3<28]: f32 = max(0.0, %0[i0, i1, i2, i3])
  %4[i4<1, i5<128, i6<28, i7<28]: f32 = max(0.0, %1[i4, i5, i6, i7])
  %5[i8<1, i9<64, i10<28, i11<28]: f32 = exp(%2[i8, i9, i10, i11])
  %6[i12<1, i13<256, i14<28, i15<28]: f32 = if i13 < 64 then %3[i12, i13, i14, i15] else if i13 < 192 then %4[i12, i13 - 64, i14, i15] else %5[i12, i13 - 192, i14, i15]
  return %6
})";

TEST(FormStages, PartsOfAConcatAreComputedWhereTheyGo) {
  EXPECT_EQ(Stages(kParts).tes.size(), 1u);  // though each is read at a quarter of the points, or half
}

// Scratch of a processor is ordinary memory, which a cache holds in part; the memory of a work-group has a fixed size.
TEST(ScheduleBlock, ScratchOfAGroupIsNoMoreThanItsMemory) {
  const te::Program program = Stages(R"(te p(%0: f32[256, 64], %1: f32[64, 8192] const, %2: f32[8192, 64] const) {
  %3[i0<256, i1<8192]: f32 = sum.f32(i2<64) mul(%0[i0, i2], %1[i2, i1])
  %4[i3<256, i4<64]: f32 = sum.f32(i5<8192) mul(%3[i3, i5], %2[i5, i4])
  return %4
})");
  DeviceModel device = Device();
  for (const auto& [kind, beyond] : {std::pair("cpu", true), std::pair("opencl", false)}) {
    device.kind = kind;
    int64_t most = 0;
    for (int form = 0; form < 2; ++form) {
      const absl::StatusOr<ScheduledBlock> block = ScheduleBlock(program, {}, device, {{{"form", form}}});
      ASSERT_TRUE(block.ok()) << block.status();
      most = std::max(most, block->kernel.scratch_bytes);
    }
    EXPECT_EQ(most > 1 << 20, beyond) << most << " bytes on " << kind;
  }
}

// A sum of everything, then a map over everything. Both are bound by memory, so only the cost between phases differs.
TEST(ScheduleBlock, PersistentWhereABarrierCostsLessThanALaunch) {
  DeviceModel device = Device();
  device.kind = "opencl";
  device.parallel_units = 2;
  device.launch_s = 5e-6;
  const te::Program program = Stages(R"(te p(%0: f32[1, 200000]) {
  %1[i0<1]: f32 = sum.f32(i1<200000) %0[i0, i1]
  %2[i2<1, i3<200000]: f32 = div(%0[i2, i3], %1[i2])
  return %2
})");
  for (const auto& [groups, barrier_s, stay] :
       std::vector<std::tuple<int, double, bool>>{{2, 2e-7, true}, {2, 1e-4, false}, {0, 2e-7, false}}) {
    device.persistent_groups = groups;
    device.barrier_s = barrier_s;
    const absl::StatusOr<ScheduledBlock> block = ScheduleBlock(program, {}, device);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_GT(block->kernel.phases.size(), 1u);
    EXPECT_EQ(block->kernel.persistent, stay) << groups << " groups, " << barrier_s;
  }
}

TEST(ScheduleBlock, PartsOfAConcatAreLoopsOfTheirOwn) {
  const Layout blocked{1, 16};
  for (const bool blocks : {false, true}) {
    std::map<te::TensorId, Layout> layouts;
    if (blocks) layouts = {{0, blocked}, {1, blocked}, {2, blocked}, {6, blocked}};
    const ScheduledBlock block = Schedule(kParts, layouts);
    ASSERT_EQ(block.kernel.phases.size(), 3u) << movement::Print(block.kernel);
    EXPECT_EQ(movement::Print(block.kernel).find(" if "), std::string::npos) << movement::Print(block.kernel);
    for (const movement::Phase& phase : block.kernel.phases) {
      EXPECT_EQ(phase.steps[0].strategy, movement::Strategy::kMapVec);
    }
  }
}

TEST(ScheduleBlock, PartsOfRowsShareTasks) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[512, 384], %1: f32[512, 256]) {
  %2[i0<512, i1<640]: f32 = if i1 < 384 then %0[i0, i1] else %1[i0, i1 - 384]
  return %2
})");
  ASSERT_EQ(block.kernel.phases.size(), 1u) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.phases[0].steps.size(), 2u);
}

// The mirrored border of a Pad runs in one task beside its vectors.
TEST(ScheduleBlock, BordersOfRowsArePeeled) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 100]) {
  %1[i0<64, i1<102]: f32 = if i1 < 1 then %0[i0, 1 - i1] else if i1 < 101 then %0[i0, i1 - 1] else %0[i0, 199 - i1]
  return %1
})");
  ASSERT_EQ(block.kernel.phases.size(), 1u) << movement::Print(block.kernel);
  EXPECT_EQ(Strategies(block.kernel.phases[0]),
            (std::vector{movement::Strategy::kScalar, movement::Strategy::kMapVec, movement::Strategy::kScalar}))
      << movement::Print(block.kernel);
}

TEST(Nest, PeeledRangesHaveNoCondition) {
  for (const bool turned : {false, true}) {  // tests of the axis, and of its negative
    AxisSource axes(0);
    const te::Axis row = axes.New(5), x = axes.New(50);
    const te::Index at = turned ? te::Index(46) - te::Index(x) : te::Index(x) - 3;  // x in [3, 47)
    const te::Pred inside = {{at, te::Cmp::kGe, te::Index(0)},
                             {at, te::Cmp::kLt, te::Index(44)},
                             {te::Index(row), te::Cmp::kLt, te::Index(4)}};
    Nest nest;
    nest.axes = {row, x};
    nest.body = {te::If(inside, te::Load(0, DType::kF32, {at}), te::Imm(DType::kF32, 0))};
    const std::vector<Nest> parts = PeelInnermost(nest, &axes);
    ASSERT_EQ(parts.size(), 3u) << turned;
    const std::vector<int64_t> extents = {parts[0].axes[1].extent, parts[1].axes[1].extent, parts[2].axes[1].extent};
    EXPECT_EQ(extents, (std::vector<int64_t>{3, 44, 3})) << turned;
    EXPECT_EQ(parts[0].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[2].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[1].body[0]->pred.size(), 1u);  // the test of the row
    EXPECT_FALSE(PredUses(parts[1], parts[1].axes[1].id));
  }
}

TEST(ScheduleBlock, APartThatIsNoTasksWorthStaysInTheLoop) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[1, 64], %1: f32[1, 64]) {
  %2[i0<1, i1<128]: f32 = if i1 < 64 then %0[i0, i1] else %1[i0, i1 - 64]
  return %2
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u);
}

// Tiles are transposed in registers whatever the element type is; results are written past the caches only where the
// caches would not hold them.
TEST(BlockedTranspose, TilesOfATransposition) {
  const auto step = [](const char* type, int64_t rows, int64_t columns) {
    DeviceModel device = Device();
    device.memory.insert(device.memory.end() - 1, {"L3", 32 << 20, 2e10, true});
    const ScheduledBlock block =
        Schedule(absl::StrCat("te p(%0: ", type, "[", rows, ", ", columns, "]) {\n  %1[i0<", columns, ", i1<", rows,
                              "]: ", type, " = %0[i1, i0]\n  return %1\n}"),
                 {}, device);
    return block.kernel.phases.at(0).steps.at(0);
  };
  for (const char* type : {"f32", "f16", "u8", "bool", "i32"}) {
    EXPECT_EQ(step(type, 256, 3136).strategy, movement::Strategy::kTranspose) << type;
  }
  EXPECT_EQ(step("i64", 256, 3136).strategy, movement::Strategy::kScalar);
  EXPECT_FALSE(step("f32", 256, 3136).streaming_stores);
  EXPECT_TRUE(step("f32", 4096, 4096).streaming_stores);
}

// Lines that several rows of the result read stay in the nearest cache until the last of them has: a block has all rows.
TEST(BlockedTranspose, RowsThatShareTheirLines) {
  const auto axes_of = [](int64_t rows, int64_t columns) {
    const ScheduledBlock block = Schedule(absl::StrCat("te p(%0: f32[", rows, ", ", columns, "]) {\n  %1[i0<", columns,
                                                       ", i1<", rows, "]: f32 = %0[i1, i0]\n  return %1\n}"));
    const movement::Phase& phase = block.kernel.phases.at(0);
    EXPECT_EQ(phase.steps.at(0).strategy, movement::Strategy::kMapVec) << movement::Print(block.kernel);
    return phase.grid.size() + phase.steps[0].loops.size();
  };
  EXPECT_EQ(axes_of(8192, 7), 3u);
  EXPECT_EQ(axes_of(128, 7), 2u);  // all of it stays
}

TEST(Nest, FusesAxesThatAreWalkedAsOne) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[6, 5, 32]) {
  %1[i0<6, i1<5, i2<32]: f32 = exp(%0[i0, i1, i2])
  return %1
})");
  const movement::Phase& phase = block.kernel.phases[0];
  EXPECT_EQ(phase.grid.size() + phase.steps[0].loops.size(), 1u) << movement::Print(block.kernel);
  EXPECT_EQ(phase.steps[0].strategy, movement::Strategy::kMapVec);
}

}  // namespace
}  // namespace fusion
