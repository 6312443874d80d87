#include "compiler/schedule/tile/register_tile.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/cost/byte_dots.h"
#include "compiler/cost/caches.h"
#include "compiler/movement/tile_reads.h"
#include "compiler/movement/vector_form.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/tile/pack_operands.h"
#include "compiler/schedule/tile/rank_lanes.h"
#include "compiler/schedule/tile/tile_form.h"
#include "compiler/schedule/tile/tile_operands.h"
#include "compiler/schedule/tile/tile_shape.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

std::string LabelOf(const te::Axis& axis) { return absl::StrCat("i", axis.id, "<", axis.extent); }

using te::Axis;
using te::Index;
using te::Scalar;

// Share of the core's own cache that a packed operand or a row chunk may take, to leave room for the other.
constexpr double kCacheShare = 0.5;
// At most so many axes of rows are worth a measurement.
constexpr size_t kMostRowAxes = 2;
// Vector rows of a packed panel between a load and its prefetch into the first-level cache: a few dozen cycles of
// arithmetic, more than the second-level cache takes to answer.
constexpr int64_t kPrefetchRows = 8;
// Registers that signed products take beside the tile where there is an instruction for four products of bytes. It wants
// one factor unsigned, so a sum of each vector of the shared operand is kept as a correction.
constexpr int kDotRegisters = 4;
// A hot nest of more than about 600 instructions does not fit the decoded-instruction cache.
constexpr double kMostInBody = 360;
// An innermost axis up to this extent (a block of channels, a few taps) leaves no loop. One of two trips, which blocks of
// eight channels had, took a quarter of a 1 × 1 convolution's time on a core without AVX-512.
constexpr int kWholeAxis = 8;

// Does some comparison test the axis together with one that is not of the reduction, or with a loaded index? Such a
// border cannot be told from the row alone.
bool PredMixesSpatial(const Nest& nest, const Axis& row) {
  bool mixes = false;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    for (const te::Comparison& c : node.pred) {
      std::vector<Axis> used;
      te::CollectAxes(c.lhs, &used);
      te::CollectAxes(c.rhs, &used);
      if (std::none_of(used.begin(), used.end(), [&](const Axis& axis) { return axis.id == row.id; })) continue;
      mixes = mixes || c.lhs.HasLoad() || c.rhs.HasLoad();
      for (const Axis& axis : used) {
        mixes = mixes ||
                (axis.id != row.id && std::none_of(nest.reduction->axes.begin(), nest.reduction->axes.end(),
                                                   [&](const Axis& reduction) { return reduction.id == axis.id; }));
      }
    }
  });
  return mixes;
}

// Does some comparison use the axis together with another one of `axes`?
bool PredMixes(const Nest& nest, int axis_id, const std::vector<Axis>& axes) {
  bool mixes = false;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    for (const te::Comparison& c : node.pred) {
      auto uses = [&](int id) { return c.lhs.UsesAxis(id) || c.rhs.UsesAxis(id); };
      if (!uses(axis_id)) continue;
      for (const Axis& other : axes) mixes = mixes || (other.id != axis_id && uses(other.id));
    }
  });
  return mixes;
}

// The decisions of one tile, in the order in which they depend on each other.
class TileBuilder {
 public:
  TileBuilder(Nest nest, const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices,
              TileHome home)
      : nest_(std::move(nest)), device_(device), kernel_(*kernel), axes_(*axes), choices_(*choices) {
    tile_.in_task = home == TileHome::kTask || home == TileHome::kTaskOrPhase;
    could_be_phase_ = home == TileHome::kTaskOrPhase;
  }

  absl::StatusOr<movement::Phase> Make() {
    RETURN_IF_ERROR(CheckForm());
    loads_ = BodyLoads(nest_);
    tile_.outside = AxesOutside(loads_, nest_);
    RETURN_IF_ERROR(ChooseLanes());
    FindVectors();
    ChooseRows();
    ChooseSlide();
    RETURN_IF_ERROR(ChooseShape());
    OrderReduction();
    RETURN_IF_ERROR(CheckDot());
    ChooseUnroll();
    SplitVectors();
    ChoosePanel();
    ASSIGN_OR_RETURN(packed_, PackOperands(tile_, loads_, device_, &kernel_, &axes_, &nest_));
    MeasureOperands();
    FindFarRows();
    CutRows();
    MakeGrid();
    return Assemble();
  }

 private:
  absl::Status CheckForm() const {
    if (!nest_.reduction || nest_.reduction->kind == te::ReductionKind::kGeneral) {
      return absl::FailedPreconditionError("the reduction is not a sum, product, maximum or minimum");
    }
    if ((nest_.reduction->acc != DType::kF32 && nest_.reduction->acc != DType::kI32) ||
        !nest_.reduction->pred.empty()) {
      return absl::FailedPreconditionError("the reduction does not accumulate in f32 or i32, or has a predicate");
    }
    // Where windows lie in padding alone, their task needs no point of the stage in front of them.
    if (std::any_of(nest_.axes.begin(), nest_.axes.end(), [](const Axis& axis) { return axis.extent == 0; })) {
      return absl::FailedPreconditionError("no task reads a result of the stage");
    }
    if (nest_.stores.size() != 1) return absl::FailedPreconditionError("the stage has more than one output");
    if (!HasTileForm(nest_.body[0])) {
      return absl::FailedPreconditionError("an operation of the reduction has no vector form inside a tile");
    }
    if (MaskedLanesReadPast(nest_, kernel_)) {
      return absl::FailedPreconditionError("masked lanes would read beyond the end of a buffer");
    }
    return absl::OkStatus();
  }

  bool UsesLane(const Operand& load) const { return load.address.UsesAxis(tile_.lane.id); }

  // Splits the chosen axis into (vector, lane).
  absl::Status ChooseLanes() {
    const int64_t lanes = device_.vector_bytes / 4;
    const std::vector<LaneChoice> ranked = RankLanes(nest_, loads_, lanes, kernel_, device_.ports, tile_.in_task);
    if (ranked.empty()) return absl::FailedPreconditionError("no axis can become the lanes of a vector");
    tile_.lane = ranked[choices_.Pick("lanes", ranked, [](const LaneChoice& one) { return LabelOf(one.axis); })].axis;
    if (tile_.lane.extent == lanes) return absl::OkStatus();
    const Axis whole = tile_.lane;
    vectors_ = axes_.New((whole.extent + lanes - 1) / lanes);
    tile_.lane = axes_.New(lanes);
    const Index split = Index(vectors_) * lanes + Index(tile_.lane);
    for (Axis& axis : nest_.axes) {
      if (axis.id == whole.id) axis = vectors_;
    }
    nest_.axes.push_back(tile_.lane);
    Substitute(whole, split);
    if (whole.extent % lanes != 0) LimitStores(split, whole.extent);
    return absl::OkStatus();
  }

  void Substitute(const Axis& from, const Index& to) {
    SubstituteBehindPacking(from, to);
    loads_ = BodyLoads(nest_);
  }

  void SubstituteBehindPacking(const Axis& from, const Index& to) {
    const auto map = [&](const Axis& axis) -> const Index* { return axis.id == from.id ? &to : nullptr; };
    nest_.Substitute(map);
    tile_.store_index = te::Substitute(tile_.store_index, map);
  }

  void LimitStores(const Index& index, int64_t limit) {
    tile_.store_index = index;
    tile_.store_limit = limit;
  }

  // Where the lanes' axis is a single vector, finds another axis for adjacent vectors: one that a vector operand moves
  // with and no broadcast operand does. Where the results of the lanes lie apart, a short axis along which results are
  // neighbours (the phases of a transposed convolution) is better than more lanes: the tile then has whole runs, which
  // are transposed in registers and stored as vectors.
  void FindVectors() {
    constexpr int64_t kShort = 4;  // vectors of a tile
    const te::Index& stored = nest_.stores[0].address;
    const auto lanes = device_.vector_bytes / 4;
    const bool apart = te::ClassifyLanes(stored, tile_.lane, lanes) != te::LaneAccess::kContiguous;
    if (vectors_.id >= 0 && !apart) return;
    for (size_t a = nest_.axes.size(); a-- > 0;) {
      const Axis& axis = nest_.axes[a];
      if (axis.id == tile_.lane.id || PredUses(nest_, axis.id)) continue;
      if (nest_.limits.count(axis.id) || nest_.LimitsUse(axis)) continue;
      int64_t stride = 0;
      const bool neighbours =
          stored.AffineIn(axis.id, &stride) && stride == 1 && axis.extent > 1 && axis.extent <= kShort;
      if (vectors_.id >= 0 && !neighbours) continue;
      bool broadcast_still = false, vector_moves = false, bad = false;
      for (const Operand& load : loads_) {
        if (UsesLane(load)) {
          vector_moves = vector_moves || load.address.UsesAxis(axis.id);
        } else {
          broadcast_still = true;
          bad = bad || load.address.UsesAxis(axis.id);
        }
      }
      if (broadcast_still && vector_moves && !bad) {
        vectors_ = axis;
        return;
      }
    }
  }

  // Rates an axis as rows: best if some vector operand does not move with it, then if it is long, then if its results
  // lie near each other. Negative where the axis cannot be the rows.
  double ScoreAsRows(const Axis& axis) const {
    constexpr double kNever = -1e300;
    bool shared = false;
    int64_t stride = 0;
    for (const Operand& load : loads_) {
      if (UsesLane(load) && !load.address.UsesAxis(axis.id)) shared = true;
      int64_t c = 0;
      if (load.address.UsesAxis(axis.id) && !load.address.AffineIn(axis.id, &c)) return kNever;
    }
    if (!nest_.stores[0].address.AffineIn(axis.id, &stride)) return kNever;
    return (shared ? 1e12 : 0) + std::min<double>(static_cast<double>(axis.extent), 28) * 1e9 / 28 -
           std::min<double>(static_cast<double>(std::abs(stride)), 1e8);
  }

  void ChooseRows() {
    std::vector<std::pair<double, Axis>> ranked;
    for (const Axis& axis : nest_.axes) {
      if (axis.id == tile_.lane.id || axis.id == vectors_.id || axis.extent == 1) continue;
      if (PredMixesSpatial(nest_, axis) || nest_.LimitsUse(axis)) continue;
      // The runs of rows with equal border tests are found from the whole row, so it must not be cut.
      if (nest_.limits.count(axis.id) && PredUses(nest_, axis.id)) continue;
      const double score = ScoreAsRows(axis);
      if (score > -1) ranked.emplace_back(score, axis);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (ranked.size() > kMostRowAxes) ranked.resize(kMostRowAxes);
    if (!ranked.empty()) tile_.row = ranked[choices_.Pick("rows", ranked, [](const auto& one) { return LabelOf(one.second); })].second;
  }

  // Gives up where other reduction axes have border tests on the row: they would be unrolled beside the taps.
  void ChooseSlide() {
    const Slide slide = FindSlide(nest_, tile_.lane, tile_.row);
    if (slide.axis.id < 0) return;
    for (const Axis& axis : nest_.reduction->axes) {
      const bool border = PredMixes(nest_, axis.id, {tile_.row});
      if (axis.id == slide.axis.id ? PredUses(nest_, axis.id) && !border : border) return;
    }
    if (choices_.Pick("slide", {"yes", "no"}) == 0) slide_ = slide;
  }

  absl::Status ChooseShape() {
    const TileReads reads = movement::ReadsOfTile(nest_.body[0], *nest_.reduction, tile_.lane.id, tile_.row.id);
    is_dot_ = device_.byte_dots && IsDotProduct(nest_, tile_.lane, tile_.row, kernel_);
    DeviceModel registers = device_;
    if (is_dot_ && HasByteDots(device_)) registers.vector_registers -= kDotRegisters;
    const int64_t rows = tile_.row.extent;
    std::vector<TileShape> ranked = RankTileShapes(rows, vectors_.extent, reads, registers);
    // Vectors past the end of the axis are read from a packed copy, unless the operand is a constant or has room.
    const bool copies_tail =
        vectors_.id >= 0 && tile_.store_limit < 0 &&
        std::any_of(loads_.begin(), loads_.end(), [&](const Operand& load) {
          return load.address.UsesAxis(vectors_.id) && !IsPackable(load, kernel_) && !CanHaveRoom(load, kernel_);
        });
    if (copies_tail && vectors_.extent % ranked[0].vectors != 0) {
      const std::vector<TileShape> whole = WholeTileShapes(rows, vectors_.extent, reads, registers);
      if (!whole.empty()) ranked = whole;
    }
    if (slide_.axis.id >= 0) {
      ranked =
          RankSlidingShapes(rows, slide_.axis.extent, slide_.row_stride, slide_.tap_stride, slide_.weighted, device_);
    }
    if (nest_.limits.count(tile_.row.id)) {
      // The tile must divide the rows, so that only the last task has a remainder.
      std::erase_if(ranked, [&](const TileShape& s) { return rows % s.rows != 0; });
      if (ranked.empty()) return absl::FailedPreconditionError("no tile height divides the rows of a task");
    }
    shape_ = ranked[choices_.Pick(
        "tile", ranked, [](const TileShape& one) { return absl::StrCat(one.rows, "x", one.vectors); })];
    return absl::OkStatus();
  }

  // The axis along which a broadcast operand is contiguous goes innermost and is unrolled. Axes whose border tests
  // involve the rows are unrolled completely inside it.
  void OrderReduction() {
    for (const Axis& axis : nest_.reduction->axes) {
      const bool border = tile_.row.id >= 0 && PredMixes(nest_, axis.id, {tile_.row});
      (border || axis.id == slide_.axis.id ? unrolled_ : rolled_).push_back(axis);
    }
    int inner = -1;
    for (size_t f = 0; f < rolled_.size(); ++f) {
      if (PredUses(nest_, rolled_[f].id)) continue;
      for (const Operand& load : loads_) {
        int64_t c = 0;
        if (!UsesLane(load) && load.address.AffineIn(rolled_[f].id, &c) && c == 1) inner = static_cast<int>(f);
      }
    }
    if (inner >= 0) {
      const Axis axis = rolled_[inner];
      rolled_.erase(rolled_.begin() + inner);
      rolled_.push_back(is_dot_ ? InFours(axis) : axis);
    }
    // The innermost axis is settled; any of the others may be the outermost.
    if (rolled_.size() > 2) {
      const std::vector<Axis> others(rolled_.begin(), rolled_.end() - 1);
      const int first = choices_.Pick("reduction", others, LabelOf);
      std::rotate(rolled_.begin(), rolled_.begin() + first, rolled_.begin() + first + 1);
    }
  }

  // Splits the axis into groups of four products, one dot instruction each. Past the end the packed operand is zero.
  Axis InFours(const Axis& whole) {
    const Axis fours = axes_.New((whole.extent + movement::kDotLength - 1) / movement::kDotLength);
    tile_.dot = axes_.New(movement::kDotLength);
    dot_extent_ = whole.extent;
    const Index split = Index(fours) * movement::kDotLength + Index(tile_.dot);
    Substitute(whole, split);
    if (whole.extent % movement::kDotLength != 0) {
      nest_.padding.push_back({split, te::Cmp::kLt, Index(whole.extent)});
    }
    return fours;
  }

  // Inside a task the image of a convolution is scratch whose channels lie apart, so that a lane would add the taps of a
  // row, three or seven, and single bytes would be copied for it. An image that is an argument may have its channels
  // beside each other.
  absl::Status CheckDot() const {
    const bool taps = could_be_phase_ && tile_.dot.id >= 0 && dot_extent_ < movement::kDotLength;
    const bool others = std::any_of(rolled_.begin(), rolled_.end() - (taps ? 1 : 0),
                                    [](const Axis& axis) { return axis.extent >= movement::kDotLength; });
    if (!taps || !others) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("a lane would add products of ", dot_extent_, " taps, where it can add ", movement::kDotLength,
                     " of channels that lie beside each other"));
  }

  void ChooseUnroll() {
    if (!rolled_.empty() && !PredUses(nest_, rolled_.back().id)) {
      const double points = std::max(1.0, Extent(unrolled_));
      const auto size = [&](int u) { return u * points * shape_.rows * shape_.vectors; };
      const int64_t extent = rolled_.back().extent;
      const int whole = static_cast<int>(std::clamp<int64_t>(extent, 1, kWholeAxis + 1));
      std::vector<int> unrolls = {whole <= kWholeAxis && size(whole) <= kMostInBody ? whole
                                  : extent % 4 == 0 && size(4) <= kMostInBody       ? 4
                                  : extent % 2 == 0 && size(2) <= kMostInBody       ? 2
                                                                                    : 1};
      for (int u : {1, 2, 4, 8}) {
        if (u != unrolls[0] && extent % u == 0 && size(u) <= 2 * kMostInBody) unrolls.push_back(u);
      }
      unroll_ = unrolls[choices_.Pick("unroll", unrolls, NumberLabel)];
    }
    tile_.reduction_order = rolled_;
    tile_.reduction_order.insert(tile_.reduction_order.end(), unrolled_.begin(), unrolled_.end());
    nest_.reduction->axes = tile_.reduction_order;
    if (tile_.dot.id >= 0) nest_.reduction->axes.push_back(tile_.dot);
  }

  // Splits the vectors' axis into (tile, vector in tile).
  void SplitVectors() {
    if (vectors_.id >= 0) {
      tile_.vector_tile = axes_.New((vectors_.extent + shape_.vectors - 1) / shape_.vectors);
      tile_.vector_in = axes_.New(shape_.vectors);
      const Index split = Index(tile_.vector_tile) * shape_.vectors + Index(tile_.vector_in);
      Substitute(vectors_, split);
      if (tile_.store_limit < 0 && vectors_.extent % shape_.vectors != 0) LimitStores(split, vectors_.extent);
    }
    for (const Axis& axis : nest_.axes) {
      if (axis.id != tile_.lane.id && axis.id != vectors_.id && axis.id != tile_.row.id) tile_.others.push_back(axis);
    }
  }

  // Where tasks share columns out, each task has panels of its own, as wide as its tile. Panels may also lie in the order
  // of all columns and have another width, as other kernels have them; the tile then reads a part of one, or several.
  void ChoosePanel() {
    if (!tile_.in_task) return;
    const std::optional<Axis> across = PanelAxis(tile_, loads_, nest_, kernel_);
    if (!across) return;
    const int64_t own = tile_.vector_in.extent, all = across->extent * tile_.vector_tile.extent * own;
    std::vector<int64_t> widths = {0};
    for (int64_t width = 1; width <= kMostTileVectors; ++width) {
      const bool same = width == own && tile_.others.empty();  // nothing lies outside of the panels
      if (!same && (width % own == 0 || own % width == 0) && all % width == 0) widths.push_back(width);
    }
    if (widths.size() == 1) return;
    const auto label = [](int64_t width) { return width == 0 ? std::string("own") : NumberLabel(width); };
    const int64_t width = widths[choices_.Pick("panel", widths, label)];
    if (width == 0) return;
    tile_.across = *across;
    tile_.panel_vectors = width;
  }

  void MeasureOperands() {
    std::vector<Axis> all = tile_.others;
    all.insert(all.end(), {tile_.row, tile_.vector_tile, tile_.vector_in, tile_.lane});
    all.insert(all.end(), nest_.reduction->axes.begin(), nest_.reduction->axes.end());
    std::vector<Axis> of_task = nest_.reduction->axes;
    of_task.push_back(tile_.row);
    for (const Operand& load : loads_) {
      (UsesLane(load) ? vector_bytes_ : row_bytes_) += TouchedBytes(load, all);
      if (!UsesLane(load)) task_row_bytes_ += TouchedBytes(load, of_task);
    }
  }

  // Finds arguments of the rows in far memory that each step of the reduction reads elsewhere, at more places than the
  // hardware's own prefetch follows. Results of an earlier phase of the kernel are nearer: their prefetch costs minimal
  // filtering in phases an eighth of its time.
  void FindFarRows() {
    constexpr double kStreams = 16;
    if (!StrategyOf(device_).prefetches || tile_.row.id < 0 || rolled_.size() < 2 || !unrolled_.empty()) return;
    const Axis& innermost = rolled_.back();
    for (const Operand& load : BodyLoads(nest_)) {
      const movement::Buffer& buffer = kernel_.buffers[load.buffer];
      int64_t row = 0, along = 0;
      if (UsesLane(load) || !load.address.AffineIn(tile_.row.id, &row) || row <= 0) continue;
      if (!load.address.AffineIn(innermost.id, &along) || along != 1) continue;
      if (innermost.extent * DTypeBytes(load.dtype) > device_.line_bytes) continue;
      if (buffer.scope != Scope::kKernel || !LeavesPrivateCache(static_cast<double>(SizeBytes(buffer)), device_))
        continue;
      double places = 1;
      for (const Axis& axis : rolled_) {
        if (axis.id != innermost.id && load.address.UsesAxis(axis.id)) places *= static_cast<double>(axis.extent);
      }
      if (places > kStreams) far_rows_.insert(load.buffer);
    }
  }

  // The model's choice of how many rows a task has.
  int64_t RowsOfTask() const {
    const int64_t rows = tile_.row.extent, tile = shape_.rows;
    int64_t chunk = rows;
    const double budget = kCacheShare * static_cast<double>(PrivateCacheBytes(device_));
    if (task_row_bytes_ > budget) {
      chunk = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(rows) * budget / task_row_bytes_));
    }
    const int64_t parts = static_cast<int64_t>(Extent(tile_.others)) * tile_.vector_tile.extent;
    const int64_t wanted = WantedTasks(device_);
    if (parts * ((rows + chunk - 1) / chunk) < wanted) {
      chunk = std::min(chunk, std::max<int64_t>(tile, rows * parts / wanted));
    }
    return EvenRows(std::clamp<int64_t>((chunk + tile / 2) / tile * tile, tile, rows));
  }

  // Rounds `chunk` so that all tasks have equally many rows: if the last task had a few only, units would wait for
  // those that have one task more.
  int64_t EvenRows(int64_t chunk) const {
    const int64_t rows = tile_.row.extent, tile = shape_.rows;
    if (chunk >= rows) return rows;
    const int64_t tiles = (rows + tile - 1) / tile, units = LikelyUnits(device_);
    const int64_t parts = static_cast<int64_t>(Extent(tile_.others)) * tile_.vector_tile.extent;
    int64_t count = (rows + chunk - 1) / chunk;
    for (int64_t more = count; more < std::min(tiles + 1, count + units); ++more) {
      if (parts * more % units != 0) continue;
      count = more;
      break;
    }
    return std::min(rows, (tiles + count - 1) / count * tile);
  }

  // Cuts the rows where that balances tasks or keeps their operand in the cache.
  void CutRows() {
    if (tile_.row.id < 0) return;
    const Axis whole = tile_.row;
    int64_t chunk = whole.extent;
    if (!PredUses(nest_, whole.id) && packed_.steps.empty() && !tile_.in_task) {
      chunk = RowsOfTask();
      std::vector<int64_t> chunks = {chunk};
      for (const int64_t other : {chunk / 2, 2 * chunk, chunk / 4, whole.extent}) {
        if (other < shape_.rows) continue;
        const int64_t rows = EvenRows(std::min(other / shape_.rows * shape_.rows, whole.extent));
        if (rows >= shape_.rows && std::find(chunks.begin(), chunks.end(), rows) == chunks.end()) {
          chunks.push_back(rows);
        }
      }
      chunk = chunks[choices_.Pick("chunk", chunks, NumberLabel)];
    }
    if (chunk >= whole.extent) {
      step_.loops.push_back(LoopOf(nest_, whole));
      return;
    }
    row_chunk_ = axes_.New((whole.extent + chunk - 1) / chunk);
    tile_.row = axes_.New(chunk);
    SubstituteBehindPacking(whole, Index(row_chunk_) * chunk + Index(tile_.row));
    movement::Loop loop{tile_.row, std::nullopt};
    if (whole.extent % chunk != 0) loop.limit = Index(whole.extent) - Index(row_chunk_) * chunk;
    step_.loops.push_back(loop);
  }

  // The grid has all axes but the rows and the lanes. The axes of the larger operand go outside, so that it is streamed
  // through once.
  void MakeGrid() {
    std::vector<Axis> vector_side, batch;
    if (tile_.vector_tile.id >= 0) vector_side.push_back(tile_.vector_tile);
    for (const Axis& axis : tile_.others) {
      bool in_vectors = false, in_rows = false;
      for (const Operand& load : loads_) {
        if (load.address.UsesAxis(axis.id)) (UsesLane(load) ? in_vectors : in_rows) = true;
      }
      (in_rows && !in_vectors ? row_side_ : batch).push_back(axis);
    }
    if (row_chunk_.id >= 0) row_side_.push_back(row_chunk_);
    stream_rows_ = row_bytes_ > vector_bytes_;
    if (!row_side_.empty() && !vector_side.empty() && choices_.Pick("stream", {stream_rows_ ? "rows" : "vectors", stream_rows_ ? "vectors" : "rows"}) == 1) stream_rows_ = !stream_rows_;
    grid_ = std::move(batch);
    const std::vector<Axis>& first = stream_rows_ ? row_side_ : vector_side;
    const std::vector<Axis>& second = stream_rows_ ? vector_side : row_side_;
    grid_.insert(grid_.end(), first.begin(), first.end());
    grid_.insert(grid_.end(), second.begin(), second.end());
  }

  // Prefetches for panels that do not stay in a cache while their tiles run, and for rows in far memory.
  std::vector<movement::Prefetch> Prefetches(const movement::RegisterTile& tile) const {
    std::vector<movement::Prefetch> prefetches;
    const int64_t row_tiles = tile_.row.id < 0 ? 1 : (tile_.row.extent + tile.row_count - 1) / tile.row_count;
    for (const PackedOperands::Panel& panel : packed_.panels) {
      movement::Prefetch prefetch{panel.buffer, 0, 0, row_tiles, Index(0)};
      std::vector<Index> number;
      std::vector<int64_t> extents;
      for (const Axis& axis : stream_rows_ ? std::vector<Axis>() : row_side_) {  // tasks along these share a panel
        number.push_back(Index(axis));
        extents.push_back(axis.extent);
        prefetch.tiles *= axis.extent;
      }
      if (prefetch.tiles < 2) continue;  // read once: the hardware's own prefetch follows a stream
      prefetch.first = te::Linearize(number, extents) * row_tiles;
      const auto bytes = static_cast<double>(DTypeBytes(kernel_.buffers[panel.buffer].dtype) * panel.elements);
      if (bytes > kCacheShare * static_cast<double>(NearestCacheBytes(device_))) {
        prefetch.ahead = kPrefetchRows * tile.outer_count * tile_.lane.extent * tile_.dot.extent;
      }
      const double all_panels = bytes * static_cast<double>(panel.panels);
      if (panel.panels > 1 && all_panels > kCacheShare * static_cast<double>(PrivateCacheBytes(device_))) {
        prefetch.panel = panel.elements;
      }
      if (prefetch.ahead > 0 || prefetch.panel > 0) prefetches.push_back(prefetch);
    }
    for (const int buffer : far_rows_) prefetches.push_back({.buffer = buffer, .next_rows = true});
    return prefetches;
  }

  movement::Phase Assemble() {
    step_.label = nest_.label;
    if (tile_.vector_in.id >= 0) step_.loops.push_back({tile_.vector_in, std::nullopt});
    step_.loops.push_back({tile_.lane, std::nullopt});
    step_.reduction = nest_.reduction;
    step_.body = nest_.body;
    step_.then = nest_.then;
    step_.stores = nest_.stores;
    step_.store_types = nest_.store_types;
    step_.lane_limit = LaneLimitOf(nest_);
    movement::RegisterTile tile;
    tile.lane_axis = tile_.lane.id;
    tile.outer_axis = tile_.vector_in.id;
    tile.outer_count = tile_.vector_in.id >= 0 ? shape_.vectors : 1;
    tile.row_axis = tile_.row.id;
    tile.row_count = std::min<int>(shape_.rows, static_cast<int>(tile_.row.extent));
    tile.unroll = unroll_;
    tile.dot_axis = tile_.dot.id;
    tile.slide_axis = slide_.axis.id;
    tile.prefetch = Prefetches(tile);
    if (tile_.store_limit >= 0) tile.store_limit = movement::Bound{tile_.store_index, tile_.store_limit};
    if (tile_.in_task) {
      std::vector<movement::Loop> around;
      for (const Axis& axis : grid_) around.push_back(LoopOf(nest_, axis));
      // A loop with a limit runs inside the loop that its limit depends on.
      std::stable_partition(around.begin(), around.end(), [](const movement::Loop& loop) { return !loop.limit; });
      step_.loops.insert(step_.loops.begin(), around.begin(), around.end());
      grid_.clear();
    }
    if (!tile.prefetch.empty() && choices_.Pick("prefetch", {"yes", "no"}) == 1) tile.prefetch.clear();
    step_.strategy = std::move(tile);
    movement::Phase phase;
    phase.grid = std::move(grid_);
    phase.steps = std::move(packed_.steps);
    phase.steps.push_back(std::move(step_));
    return phase;
  }

  Nest nest_;
  const DeviceModel& device_;
  movement::Kernel& kernel_;
  AxisSource& axes_;
  ChoiceLog& choices_;

  TileAxes tile_;
  std::vector<Operand> loads_;           // loads of the nest's body before packing
  Axis vectors_{-1, 1};                  // before it is split into tiles
  std::vector<Axis> rolled_, unrolled_;  // the reduction's axes
  bool could_be_phase_ = false;
  bool is_dot_ = false;
  int64_t dot_extent_ = 0;  // of the axis that is split into groups of four products
  Slide slide_;
  TileShape shape_;
  int unroll_ = 1;
  PackedOperands packed_;
  double row_bytes_ = 0, vector_bytes_ = 0;  // bytes of the operands that move with rows; with lanes
  double task_row_bytes_ = 0;                // bytes of the former in a task of whole rows
  std::set<int> far_rows_;                   // buffers of which the next tile's rows are prefetched
  Axis row_chunk_{-1, 1};
  std::vector<Axis> grid_, row_side_;
  bool stream_rows_ = false;
  movement::Step step_;
};

}  // namespace

absl::StatusOr<movement::Phase> TilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                          AxisSource* axes, ChoiceLog* choices, TileHome home) {
  return TileBuilder(std::move(nest), device, kernel, axes, choices, home).Make();
}

}  // namespace fusion
