#include "compiler/schedule/register_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/cost/port_model.h"
#include "compiler/movement/vector_form.h"
#include "compiler/schedule/task_size.h"
#include "compiler/schedule/vectorize.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// Tile shapes this close in time are told apart by their loads.
constexpr double kTie = 1.01;
// Of choosing the lanes: cycles to copy an element while packing at run time; and what share of the arithmetic is lost
// where every broadcast comes from another line.
constexpr double kPackCycles = 2, kStridedBroadcast = 0.5;
// A packed operand or a row block should leave room for the other in the core's own cache.
constexpr double kCacheShare = 0.5;
// A shape that the port model puts this far behind the best is not worth a measurement.
constexpr double kWorthTrying = 1.25;
constexpr size_t kMostShapes = 12;
// The same for axes of lanes, whose model is coarser; and how many axes of rows are worth one.
constexpr double kLanesWorthTrying = 2;
constexpr size_t kMostRowAxes = 2;
// Vector rows of a packed panel between a load and the prefetch into the first-level cache: a few dozen cycles of
// arithmetic, more than the second level takes to answer.
constexpr int64_t kPrefetchRows = 8;

// A runtime operand that fewer rows than this read again is not worth packing.
constexpr int64_t kPackReuse = 8;

// Signed products by an unsigned instruction keep the sum of each vector of the shared operand beside the tile.
constexpr int kDotRegisters = 4;

// Zero padding may grow a packed constant this much; more means that the packing repeats it.
constexpr int64_t kMaxPackGrowth = 4, kPackSlack = 1 << 14;

struct Operand {
  const te::ScalarNode* node;
  Index address;
  int buffer;
  DType dtype;
};

std::vector<Operand> BodyLoads(const Nest& nest) {
  std::vector<Operand> loads;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    if (node.kind == te::ScalarKind::kLoad) loads.push_back({&node, node.indices[0], node.tensor, node.dtype});
  });
  return loads;
}

// Some comparison tests the axis together with another than the fold's: no border that could be told from the row
// alone.
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
        mixes = mixes || (axis.id != row.id && std::none_of(nest.fold->axes.begin(), nest.fold->axes.end(),
                                                            [&](const Axis& fold) { return fold.id == axis.id; }));
      }
    }
  });
  return mixes;
}

// Some comparison mixes the axis with another of `axes`.
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

// How far the addresses of masked lanes, those past a blocked tensor's extent, go beyond every address of real ones:
// `address` with what does not move with the mask at zero.
int64_t Overshoot(const Index& address, const Index& mask_index, int64_t limit) {
  std::vector<Axis> axes;
  te::CollectAxes(mask_index, &axes);
  int64_t points = 1;
  for (const Axis& axis : axes) points *= axis.extent;
  constexpr int64_t kMostPoints = 1 << 14;
  if (points > kMostPoints) return std::numeric_limits<int64_t>::max();
  int64_t real = 0, masked = 0;
  for (int64_t point = 0; point < points; ++point) {
    std::vector<Index> at(axes.size());
    int64_t rest = point;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].extent) at[a] = Index(rest % axes[a].extent);
    const Index zero(0);
    const auto value = [&](const Axis& axis) -> const Index* {
      for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].id == axis.id) return &at[a];
      }
      return &zero;
    };
    int64_t& highest = te::Substitute(mask_index, value).constant() < limit ? real : masked;
    highest = std::max(highest, te::Substitute(address, value).Range().hi);
  }
  return masked - real;
}

// Lanes past a blocked tensor's extent are computed like the others and stored as zero. Would they read past a buffer?
bool MaskedLanesReadPast(const Nest& nest, const movement::Kernel& kernel) {
  if (nest.mask_limit < 0) return false;
  constexpr int64_t kSlackElements = 16;  // readable behind every buffer
  bool past = false;
  for (const std::vector<Scalar>* scalars : {&nest.body, &nest.then}) {
    for (const Scalar& s : *scalars) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (past || node.kind != te::ScalarKind::kLoad) return;
        // A constant of the body that moves with the lanes is packed, with zeros there.
        if (scalars == &nest.body && kernel.buffers[node.tensor].is_constant) return;
        past = Overshoot(node.indices[0], nest.mask_index, nest.mask_limit) >= kSlackElements;
      });
    }
  }
  return past;
}

double Extent(const std::vector<Axis>& axes) {
  double product = 1;
  for (const Axis& axis : axes) product *= static_cast<double>(axis.extent);
  return product;
}

// Elements of the result that read the same element of `load`, one vector of `lane` apart.
double Reuse(const Operand& load, const Axis& lane, const std::vector<Axis>& spatial) {
  double reuse = 1;
  for (const Axis& axis : spatial) {
    if (axis.id != lane.id && !load.address.UsesAxis(axis.id)) reuse *= static_cast<double>(axis.extent);
  }
  return reuse;
}

// The axes in the operands' addresses that are none of the nest's: of the grid around the task.
std::vector<Axis> AxesOutside(const std::vector<Operand>& loads, const Nest& nest) {
  std::vector<Axis> axes;
  for (const Operand& load : loads) te::CollectAxes(load.address, &axes);
  std::set<int> inside;
  for (const Axis& axis : nest.axes) inside.insert(axis.id);
  for (const Axis& axis : nest.fold->axes) inside.insert(axis.id);
  std::erase_if(axes, [&](const Axis& axis) { return inside.count(axis.id) > 0; });
  return axes;
}

// The fold walks through the operand, but along no axis from one element to the next.
bool StridesOverFold(const Nest& nest, const Operand& load) {
  bool moves = false;
  for (const Axis& axis : nest.fold->axes) {
    int64_t stride = 0;
    if (!load.address.UsesAxis(axis.id)) continue;
    moves = true;
    if (load.address.AffineIn(axis.id, &stride) && stride == 1) return false;
  }
  return moves;
}

enum class LaneUse { kBroadcast, kVector, kPackConstant, kPackRuntime, kImpossible };

LaneUse UseOfLanes(const Operand& load, const Axis& lane, int64_t lanes, const std::vector<Axis>& spatial,
                   const movement::Kernel& kernel) {
  const te::LaneAccess access = te::ClassifyLanes(load.address, lane, lanes);
  if (access == te::LaneAccess::kInvariant) return LaneUse::kBroadcast;
  if (load.address.HasLoad()) return LaneUse::kImpossible;
  const movement::Buffer& buffer = kernel.buffers[load.buffer];
  if (buffer.is_constant && buffer.packed_from < 0) return LaneUse::kPackConstant;
  const bool whole_vectors = lane.extent % lanes == 0;
  if (access == te::LaneAccess::kContiguous && whole_vectors) return LaneUse::kVector;
  // Packing at run time pays only where many rows read the packed values again.
  if (Reuse(load, lane, spatial) >= kPackReuse) return LaneUse::kPackRuntime;
  return access == te::LaneAccess::kContiguous ? LaneUse::kVector : LaneUse::kImpossible;
}

struct LaneChoice {
  Axis axis;
  double cycles = 0;  // per element of the result
};

// Best first.
std::vector<LaneChoice> RankLanes(const Nest& nest, const std::vector<Operand>& loads, int64_t lanes,
                                  const movement::Kernel& kernel) {
  std::vector<LaneChoice> ranked;
  const double points = Extent(nest.fold->axes);
  for (const Axis& axis : nest.axes) {
    if (PredUses(nest, axis.id) || axis.extent * 4 < lanes || nest.limits.count(axis.id) || nest.LimitsUse(axis))
      continue;
    const int64_t whole_vectors = (axis.extent + lanes - 1) / lanes;
    const auto vectors = static_cast<double>(whole_vectors);
    // Two multiply-adds a cycle; half-empty vectors waste their lanes.
    const double arithmetic = points * vectors / (2 * static_cast<double>(axis.extent));
    bool varying = false, impossible = false;
    LaneChoice choice{axis, arithmetic};
    for (const Operand& load : loads) {
      switch (UseOfLanes(load, axis, lanes, nest.axes, kernel)) {
        case LaneUse::kBroadcast:
          if (StridesOverFold(nest, load)) choice.cycles += kStridedBroadcast * arithmetic;
          break;
        case LaneUse::kVector:
        case LaneUse::kPackConstant:
          varying = true;
          break;
        case LaneUse::kPackRuntime: {
          double packed = 1;
          for (const Axis& fold : nest.fold->axes) {
            if (load.address.UsesAxis(fold.id)) packed *= static_cast<double>(fold.extent);
          }
          choice.cycles += kPackCycles * packed / Reuse(load, axis, nest.axes);
          varying = true;
          break;
        }
        case LaneUse::kImpossible:
          impossible = true;
          break;
      }
    }
    if (impossible || !varying) continue;
    for (const movement::Store& store : nest.stores) {
      if (te::ClassifyLanes(store.address, axis, lanes) != te::LaneAccess::kContiguous) choice.cycles += kScatterCycles;
    }
    ranked.push_back(choice);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const LaneChoice& a, const LaneChoice& b) { return a.cycles < b.cycles; });
  std::erase_if(ranked, [&](const LaneChoice& c) { return c.cycles > kLanesWorthTrying * ranked[0].cycles; });
  return ranked;
}

// Bytes of the elements of `load` touched when `axes` run; windows that overlap count once.
double TouchedBytes(const Operand& load, const std::vector<Axis>& axes) {
  double elements = 1;
  for (const Axis& axis : axes) {
    if (axis.id >= 0 && load.address.UsesAxis(axis.id)) elements *= static_cast<double>(axis.extent);
  }
  const te::Interval range = load.address.Range();
  return static_cast<double>(DTypeBytes(load.dtype)) * std::min(elements, static_cast<double>(range.hi - range.lo + 1));
}

// The load of `side` of an integer product when it is an 8-bit element, widened, and zero outside a border.
const te::ScalarNode* ByteLoad(const Scalar& side) {
  if (side->kind != te::ScalarKind::kCast || side->dtype != DType::kI32) return nullptr;
  const te::ScalarNode* node = side->args[0].get();
  if (node->kind == te::ScalarKind::kIf && te::IsImm(node->args[1], 0)) node = node->args[0].get();
  const bool byte = node->dtype == DType::kI8 || node->dtype == DType::kU8;
  return byte && node->kind == te::ScalarKind::kLoad ? node : nullptr;
}

// Are both factors of the fold's body bytes, one broadcast and the other moving with the lanes (and packed)?
bool IsDotProduct(const Nest& nest, const Axis& lane, const Axis& row, const movement::Kernel& kernel) {
  const Scalar& body = nest.body[0];
  if (nest.fold->kind != te::FoldKind::kSum || nest.fold->acc != DType::kI32 || body->kind != te::ScalarKind::kOp ||
      body->op != te::Op::kMul) {
    return false;
  }
  const te::ScalarNode *a = ByteLoad(body->args[0]), *b = ByteLoad(body->args[1]);
  if (a == nullptr || b == nullptr) return false;
  if (a->indices[0].UsesAxis(lane.id)) std::swap(a, b);
  const Index &still = a->indices[0], &moving = b->indices[0];
  if (still.UsesAxis(lane.id) || !moving.UsesAxis(lane.id) || moving.HasLoad()) return false;
  const movement::Buffer& buffer = kernel.buffers[b->tensor];
  const bool constant = buffer.is_constant && buffer.packed_from < 0;
  return constant || (row.extent >= kPackReuse && !moving.UsesAxis(row.id));
}

}  // namespace

bool HasTileForm(const Scalar& body) {
  bool known = true;
  te::Visit(body, [&](const te::ScalarNode& node) { known = known && movement::HasVectorForm(node); });
  return known;
}

std::vector<TileShape> RankTileShapes(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                                      const DeviceModel& device) {
  const int registers = device.vector_registers;
  const auto cycles = [&](int64_t r, int64_t v) { return TileCycles(r, v, has_broadcast, has_shared); };
  std::vector<TileShape> shapes;
  double least = std::numeric_limits<double>::infinity();
  for (int v = 1; v <= std::min<int64_t>(vectors, 8); ++v) {
    for (int r = 1; r <= std::min<int64_t>(rows, 28); ++r) {
      // One row of shared vectors, one broadcast, one spare so that the compiler's scheduling cannot spill.
      if (r * v + (has_shared ? v : 0) + 2 > registers && r * v > 1) continue;
      const int64_t full = rows / r, rest = rows % r;
      const double per_column = static_cast<double>(full) * cycles(r, v) + (rest > 0 ? cycles(rest, v) : 0);
      const int64_t groups = (vectors + v - 1) / v;
      shapes.push_back({r, v, per_column * static_cast<double>(groups)});
      least = std::min(least, shapes.back().cycles_per_step);
    }
  }
  // Many shapes keep the FMA ports busy on paper; among them, the one that loads least has the most slack for the rest.
  TileShape best;
  double best_reuse = -1;
  for (const TileShape& shape : shapes) {
    const double reuse = has_shared ? shape.rows * shape.vectors / (shape.rows + 2 * kStreamCycles * shape.vectors) : 0;
    if (shape.cycles_per_step > kTie * least || reuse <= best_reuse) continue;
    best = shape;
    best_reuse = reuse;
  }
  std::vector<TileShape> ranked = {best};
  for (const TileShape& shape : shapes) {
    if (shape.rows == best.rows && shape.vectors == best.vectors) continue;
    if (shape.cycles_per_step <= kWorthTrying * least) ranked.push_back(shape);
  }
  std::stable_sort(ranked.begin() + 1, ranked.end(),
                   [](const TileShape& a, const TileShape& b) { return a.cycles_per_step < b.cycles_per_step; });
  if (ranked.size() > kMostShapes) ranked.resize(kMostShapes);
  return ranked;
}

namespace {

// Of RankTileShapes, those whose vectors divide the axis.
std::vector<TileShape> WholeShapes(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                                   const DeviceModel& device) {
  std::vector<TileShape> whole;
  for (int64_t divisor = 1; divisor <= vectors; ++divisor) {
    if (vectors % divisor != 0) continue;
    for (TileShape shape : RankTileShapes(rows, divisor, has_broadcast, has_shared, device)) {
      if (shape.vectors != divisor) continue;
      shape.cycles_per_step *= static_cast<double>(vectors) / static_cast<double>(divisor);
      whole.push_back(shape);
    }
  }
  std::stable_sort(whole.begin(), whole.end(),
                   [](const TileShape& a, const TileShape& b) { return a.cycles_per_step < b.cycles_per_step; });
  std::erase_if(whole, [&](const TileShape& s) { return s.cycles_per_step > kWorthTrying * whole[0].cycles_per_step; });
  if (whole.size() > kMostShapes) whole.resize(kMostShapes);
  return whole;
}

}  // namespace

TileShape ChooseTileShape(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                          const DeviceModel& device) {
  return RankTileShapes(rows, vectors, has_broadcast, has_shared, device).front();
}

absl::StatusOr<movement::Phase> TilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                          AxisSource* axes, ChoiceLog* choices, TileHome home) {
  const bool in_task = home == TileHome::kTask;
  if (!nest.fold || nest.fold->kind == te::FoldKind::kGeneral || nest.fold->kind == te::FoldKind::kProd) {
    return absl::FailedPreconditionError("no sum, max or min");
  }
  if ((nest.fold->acc != DType::kF32 && nest.fold->acc != DType::kI32) || !nest.fold->pred.empty())
    return absl::FailedPreconditionError("not a plain fold in f32 or i32");
  if (nest.stores.size() != 1) return absl::FailedPreconditionError("not one output");
  if (!HasTileForm(nest.body[0])) return absl::FailedPreconditionError("the body has no vector form inside a tile");
  const int64_t lanes = device.vector_bytes / 4;
  std::vector<Operand> loads = BodyLoads(nest);
  const std::vector<Axis> outside = AxesOutside(loads, nest);
  if (MaskedLanesReadPast(nest, *kernel)) return absl::FailedPreconditionError("masked lanes would read past a buffer");
  const std::vector<LaneChoice> lane_choices = RankLanes(nest, loads, lanes, *kernel);
  if (lane_choices.empty()) return absl::FailedPreconditionError("no axis can be the vector lanes");

  // Lanes: the chosen axis, split into whole vectors.
  Axis lane = lane_choices[choices->Pick("lanes", static_cast<int>(lane_choices.size()))].axis, outer{-1, 1};
  movement::Step step;
  step.label = nest.label;
  step.strategy = movement::Strategy::kTile;
  Index store_index;
  int64_t store_limit = -1;
  if (lane.extent != lanes) {
    const Axis whole = lane;
    outer = axes->New((whole.extent + lanes - 1) / lanes);
    lane = axes->New(lanes);
    const Index split = Index(outer) * lanes + Index(lane);
    for (Axis& axis : nest.axes) {
      if (axis.id == whole.id) axis = outer;
    }
    nest.axes.push_back(lane);
    nest.Substitute([&](const Axis& axis) -> const Index* { return axis.id == whole.id ? &split : nullptr; });
    if (whole.extent % lanes != 0) {
      store_index = split;
      store_limit = whole.extent;
    }
  }
  loads = BodyLoads(nest);

  auto uses_lane = [&](const Operand& load) { return load.address.UsesAxis(lane.id); };
  // Vectors beside each other: an axis along which the broadcast operands stand still and a vector operand moves.
  if (outer.id < 0) {
    for (size_t a = nest.axes.size(); a-- > 0;) {
      const Axis& axis = nest.axes[a];
      if (axis.id == lane.id || PredUses(nest, axis.id) || nest.limits.count(axis.id) || nest.LimitsUse(axis)) continue;
      bool broadcast_still = false, vector_moves = false, bad = false;
      for (const Operand& load : loads) {
        if (uses_lane(load)) {
          vector_moves = vector_moves || load.address.UsesAxis(axis.id);
        } else {
          broadcast_still = true;
          bad = bad || load.address.UsesAxis(axis.id);
        }
      }
      if (broadcast_still && vector_moves && !bad) {
        outer = axis;
        break;
      }
    }
  }
  // Rows: the innermost remaining axis along which some vector operand stands still; else any innermost axis.
  std::vector<std::pair<double, Axis>> row_choices;
  for (const Axis& axis : nest.axes) {
    if (axis.id == lane.id || axis.id == outer.id || axis.extent == 1 || PredMixesSpatial(nest, axis)) continue;
    if (nest.LimitsUse(axis)) continue;
    // The runs of equal border tests are told from the whole row.
    if (nest.limits.count(axis.id) && PredUses(nest, axis.id)) continue;
    bool shared = false;
    int64_t stride = 0;
    bool affine = true;
    for (const Operand& load : loads) {
      if (uses_lane(load) && !load.address.UsesAxis(axis.id)) shared = true;
      int64_t c = 0;
      affine = affine && (!load.address.UsesAxis(axis.id) || load.address.AffineIn(axis.id, &c));
    }
    affine = affine && nest.stores[0].address.AffineIn(axis.id, &stride);
    if (!affine) continue;
    const double score = (shared ? 1e12 : 0) + std::min<double>(static_cast<double>(axis.extent), 28) * 1e9 / 28 -
                         std::min<double>(static_cast<double>(std::abs(stride)), 1e8);
    if (score > -1) row_choices.emplace_back(score, axis);
  }
  std::stable_sort(row_choices.begin(), row_choices.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (row_choices.size() > kMostRowAxes) row_choices.resize(kMostRowAxes);
  Axis row{-1, 1};
  if (!row_choices.empty()) row = row_choices[choices->Pick("rows", static_cast<int>(row_choices.size()))].second;

  const bool has_broadcast = std::any_of(loads.begin(), loads.end(), [&](const Operand& l) { return !uses_lane(l); });
  const bool has_shared = std::any_of(loads.begin(), loads.end(),
                                      [&](const Operand& l) { return uses_lane(l) && !l.address.UsesAxis(row.id); });
  const bool is_dot = device.byte_dots && IsDotProduct(nest, lane, row, *kernel);
  DeviceModel registers = device;
  if (is_dot) registers.vector_registers -= kDotRegisters;
  std::vector<TileShape> ranked =
      RankTileShapes(row.extent, outer.extent, has_broadcast && has_shared, has_shared, registers);
  // A vector past the end of the axis is read from a copy, where the operand is no constant.
  const bool copies_tail =
      outer.id >= 0 && store_limit < 0 && std::any_of(loads.begin(), loads.end(), [&](const Operand& l) {
        return l.address.UsesAxis(outer.id) && !kernel->buffers[l.buffer].is_constant;
      });
  if (copies_tail && outer.extent % ranked[0].vectors != 0) {
    const std::vector<TileShape> whole =
        WholeShapes(row.extent, outer.extent, has_broadcast && has_shared, has_shared, registers);
    if (!whole.empty()) ranked = whole;
  }
  if (nest.limits.count(row.id)) {
    // Whole tiles and one remainder, of the last task.
    std::erase_if(ranked, [&](const TileShape& s) { return row.extent % s.rows != 0; });
    if (ranked.empty()) return absl::FailedPreconditionError("no tile divides the rows of a task");
  }
  const TileShape shape = ranked[choices->Pick("tile", static_cast<int>(ranked.size()))];

  // Fold order: the axis along which a broadcast operand is contiguous goes innermost and is unrolled; axes whose
  // border tests involve the rows are unrolled completely inside it.
  std::vector<Axis> rolled, unrolled;
  for (const Axis& axis : nest.fold->axes) {
    const bool border = row.id >= 0 && PredMixes(nest, axis.id, {row});
    (border ? unrolled : rolled).push_back(axis);
  }
  int inner = -1;
  for (size_t f = 0; f < rolled.size(); ++f) {
    if (PredUses(nest, rolled[f].id)) continue;
    for (const Operand& load : loads) {
      int64_t c = 0;
      if (!uses_lane(load) && load.address.AffineIn(rolled[f].id, &c) && c == 1) inner = static_cast<int>(f);
    }
  }
  Axis dot{-1, 1};
  if (inner >= 0) {
    Axis axis = rolled[inner];
    rolled.erase(rolled.begin() + inner);
    if (is_dot) {
      // Groups of four; past the end the packed operand is zero.
      const Axis whole = axis;
      axis = axes->New((whole.extent + movement::kDotLength - 1) / movement::kDotLength);
      dot = axes->New(movement::kDotLength);
      const Index split = Index(axis) * movement::kDotLength + Index(dot);
      nest.Substitute([&](const Axis& a) -> const Index* { return a.id == whole.id ? &split : nullptr; });
      if (whole.extent % movement::kDotLength != 0) {
        nest.padding.push_back({split, te::Cmp::kLt, Index(whole.extent)});
      }
    }
    rolled.push_back(axis);
  }
  // The innermost one is settled; of the others any may be the outermost.
  if (rolled.size() > 2) {
    const int first = choices->Pick("fold", static_cast<int>(rolled.size()) - 1);
    std::rotate(rolled.begin(), rolled.begin() + first, rolled.begin() + first + 1);
  }
  const double unrolled_points = std::max(1.0, Extent(unrolled));
  int unroll = 1;
  if (!rolled.empty() && !PredUses(nest, rolled.back().id)) {
    // A hot nest beyond about 600 instructions leaves the decoded-instruction cache.
    constexpr double kMostInBody = 360;
    const auto size = [&](int u) { return u * unrolled_points * shape.rows * shape.vectors; };
    const int64_t extent = rolled.back().extent;
    std::vector<int> unrolls = {extent % 4 == 0 && size(4) <= kMostInBody   ? 4
                                : extent % 2 == 0 && size(2) <= kMostInBody ? 2
                                                                            : 1};
    for (int u : {1, 2, 4, 8}) {
      if (u != unrolls[0] && extent % u == 0 && size(u) <= 2 * kMostInBody) unrolls.push_back(u);
    }
    unroll = unrolls[choices->Pick("unroll", static_cast<int>(unrolls.size()))];
  }
  std::vector<Axis> fold_order = rolled;
  fold_order.insert(fold_order.end(), unrolled.begin(), unrolled.end());
  nest.fold->axes = fold_order;
  if (dot.id >= 0) nest.fold->axes.push_back(dot);

  // The vectors' axis becomes (tile, vector in tile).
  const int64_t vector_tiles = (outer.extent + shape.vectors - 1) / shape.vectors;
  Axis vector_tile{-1, 1}, vector_in{-1, 1};
  if (outer.id >= 0) {
    vector_tile = axes->New(vector_tiles);
    vector_in = axes->New(shape.vectors);
    const Index split = Index(vector_tile) * shape.vectors + Index(vector_in);
    auto map = [&](const Axis& axis) -> const Index* { return axis.id == outer.id ? &split : nullptr; };
    nest.Substitute(map);
    store_index = te::Substitute(store_index, map);
    if (store_limit < 0 && outer.extent % shape.vectors != 0) {
      store_index = split;
      store_limit = outer.extent;
    }
  }
  loads = BodyLoads(nest);

  std::vector<Axis> others;
  for (const Axis& axis : nest.axes) {
    if (axis.id != lane.id && axis.id != outer.id && axis.id != row.id) others.push_back(axis);
  }

  // Packed operands.
  struct Panel {
    int buffer;
    int64_t elements;  // read by one register tile, contiguous
    int64_t panels;    // beside each other
  };
  std::vector<Panel> panels;
  movement::Phase phase;
  std::vector<movement::Step> pack_steps;
  bool runtime_pack = false;
  const Scalar unpacked = nest.body[0];  // keeps the nodes that `loads` names
  for (const Operand& load : loads) {
    const movement::Buffer source = kernel->buffers[load.buffer];
    const bool constant = source.is_constant && source.packed_from < 0;
    const bool by_lane = uses_lane(load);
    // A broadcast weight is read as it is, unless the fold is rounded up: past its end nothing is zero.
    const bool rounded_up =
        constant && std::any_of(nest.padding.begin(), nest.padding.end(), [&](const te::Comparison& c) {
          std::vector<Axis> used;
          te::CollectAxes(c.lhs, &used);
          return std::any_of(used.begin(), used.end(),
                             [&](const Axis& axis) { return load.address.UsesAxis(axis.id); });
        });
    if (!by_lane && !rounded_up) continue;
    const bool contiguous = te::ClassifyLanes(load.address, lane, lanes) == te::LaneAccess::kContiguous;
    const bool overruns = store_limit >= 0 && !constant;
    if (!constant && contiguous && !overruns && dot.id < 0) continue;
    const bool vectors_move = by_lane && vector_tile.id >= 0;
    std::vector<Axis> box;
    for (const Axis& axis : outside) {
      if (constant && load.address.UsesAxis(axis.id)) box.push_back(axis);
    }
    for (const Axis& axis : others) {
      if ((constant || in_task) && load.address.UsesAxis(axis.id)) box.push_back(axis);
    }
    if (row.id >= 0 && load.address.UsesAxis(row.id)) {
      if (!constant) return absl::FailedPreconditionError("a moving operand is not contiguous in the lanes");
      box.push_back(row);
    }
    if ((constant || in_task) && vectors_move) box.push_back(vector_tile);
    for (const Axis& axis : fold_order) {
      if (load.address.UsesAxis(axis.id)) box.push_back(axis);
    }
    if (vectors_move) box.push_back(vector_in);
    if (by_lane) box.push_back(lane);
    if (dot.id >= 0) box.push_back(dot);
    std::vector<Index> coordinates;
    std::vector<int64_t> extents;
    for (const Axis& axis : box) {
      coordinates.push_back(Index(axis));
      extents.push_back(axis.extent);
    }
    te::Pred pred = nest.padding;
    if (store_limit >= 0) pred.push_back({store_index, te::Cmp::kLt, Index(store_limit)});
    if (nest.mask_limit >= 0) pred.push_back({nest.mask_index, te::Cmp::kLt, Index(nest.mask_limit)});
    // A padding test on axes the operand does not have is somebody else's.
    std::erase_if(pred, [&](const te::Comparison& c) {
      std::vector<Axis> used;
      te::CollectAxes(c.lhs, &used);
      for (const Axis& axis : used) {
        if (!load.address.UsesAxis(axis.id)) return true;
      }
      return false;
    });
    // The last task of a grid that does not divide goes past the end.
    if (constant && load.address.Range().hi >= source.elements) {
      pred.push_back({load.address, te::Cmp::kLt, Index(source.elements)});
    }
    const int packed = static_cast<int>(kernel->buffers.size());
    movement::Buffer buffer;
    buffer.dtype = source.dtype;
    buffer.elements = 1;
    for (int64_t extent : extents) buffer.elements *= extent;
    if (constant && buffer.elements > kMaxPackGrowth * source.elements + kPackSlack) {
      return absl::FailedPreconditionError("packing would repeat a constant operand many times over");
    }
    const Scalar old_load = te::Load(load.buffer, source.dtype, {load.address});
    if (constant) {
      buffer.is_constant = true;
      buffer.packed_from = static_cast<int>(kernel->packs.size());
      kernel->packs.push_back({source.tensor, box, load.address, pred});
      if (by_lane && vectors_move && (row.id < 0 || !load.address.UsesAxis(row.id))) {
        panels.push_back({packed, buffer.elements, 1});
        for (const Axis& axis : box) {
          panels.back().elements /= axis.extent;
          panels.back().panels *= axis.extent;
          if (axis.id == vector_tile.id) break;
        }
      }
    } else {
      runtime_pack = true;
      buffer.scope = movement::BufferScope::kBlock;
      // The body reads these under its own tests (the borders of a window); a copy of all of it must not leave the
      // buffer.
      const te::Interval touched = load.address.Range();
      if (touched.lo < 0) pred.push_back({load.address, te::Cmp::kGe, Index(0)});
      if (touched.hi >= source.elements) pred.push_back({load.address, te::Cmp::kLt, Index(source.elements)});
      movement::Step copy;
      copy.label = "pack";
      Nest pack;
      pack.axes = box;
      pack.body = {pred.empty() ? old_load : te::If(pred, old_load, te::Imm(source.dtype, 0))};
      pack.stores = {{packed, te::Linearize(coordinates, extents)}};
      std::vector<Index> fresh_index;
      fresh_index.reserve(box.size());
      std::vector<std::pair<int, size_t>> renamed;
      for (Axis& axis : pack.axes) {
        const Axis fresh = axes->New(axis.extent);
        renamed.push_back({axis.id, fresh_index.size()});
        fresh_index.push_back(Index(fresh));
        axis = fresh;
      }
      pack.Substitute([&](const Axis& axis) -> const Index* {
        for (const auto& [id, at] : renamed) {
          if (id == axis.id) return &fresh_index[at];
        }
        return nullptr;
      });
      for (const Axis& axis : pack.axes) copy.loops.push_back({axis, std::nullopt});
      copy.body = pack.body;
      copy.stores = pack.stores;
      copy.store_types = {source.dtype};
      VectorizeMap(device, &copy);
      pack_steps.push_back(std::move(copy));
    }
    kernel->buffers.push_back(buffer);
    nest.body[0] =
        ReplaceLoad(nest.body[0], load.node, te::Load(packed, source.dtype, {te::Linearize(coordinates, extents)}));
  }

  // Grid: everything but the rows and the lanes; rows are cut where that balances tasks or keeps their operand in
  // cache.
  const bool row_borders = row.id >= 0 && PredUses(nest, row.id);
  double row_bytes = 0, vector_bytes = 0, task_row_bytes = 0;
  std::vector<Axis> spatial = others;
  spatial.insert(spatial.end(), {row, vector_tile, vector_in, lane});
  spatial.insert(spatial.end(), fold_order.begin(), fold_order.end());
  if (dot.id >= 0) spatial.push_back(dot);
  std::vector<Axis> of_task = nest.fold->axes;
  of_task.push_back(row);
  for (const Operand& load : loads) {
    if (uses_lane(load)) {
      vector_bytes += TouchedBytes(load, spatial);
    } else {
      row_bytes += TouchedBytes(load, spatial);
      task_row_bytes += TouchedBytes(load, of_task);
    }
  }
  int64_t row_chunk = row.extent;
  const bool cut_rows = row.id >= 0 && !row_borders && !runtime_pack && !in_task;
  if (cut_rows) {
    const double budget = kCacheShare * static_cast<double>(PrivateCacheBytes(device));
    if (task_row_bytes > budget)
      row_chunk = static_cast<int64_t>(static_cast<double>(row.extent) * budget / task_row_bytes);
    const int64_t parts = static_cast<int64_t>(Extent(others)) * vector_tiles;
    const int64_t wanted = WantedTasks(device);
    if (parts * ((row.extent + row_chunk - 1) / row_chunk) < wanted) {
      row_chunk = std::min(row_chunk, std::max<int64_t>(shape.rows, row.extent * parts / wanted));
    }
    row_chunk = std::clamp<int64_t>((row_chunk + shape.rows / 2) / shape.rows * shape.rows, shape.rows, row.extent);
  }
  std::vector<Axis> row_grid;
  if (row.id >= 0) {
    if (cut_rows) {
      std::vector<int64_t> chunks = {row_chunk};
      for (const int64_t other : {row_chunk / 2, 2 * row_chunk, row_chunk / 4, row.extent}) {
        const int64_t whole = std::min(other / shape.rows * shape.rows, row.extent);
        if (whole >= shape.rows && std::find(chunks.begin(), chunks.end(), whole) == chunks.end()) {
          chunks.push_back(whole);
        }
      }
      row_chunk = chunks[choices->Pick("chunk", static_cast<int>(chunks.size()))];
    }
    if (row_chunk < row.extent) {
      const Axis chunk = axes->New((row.extent + row_chunk - 1) / row_chunk);
      const Axis in_chunk = axes->New(row_chunk);
      const Index split = Index(chunk) * row_chunk + Index(in_chunk);
      nest.Substitute([&](const Axis& axis) -> const Index* { return axis.id == row.id ? &split : nullptr; });
      movement::Loop loop{in_chunk, std::nullopt};
      if (row.extent % row_chunk != 0) loop.limit = Index(row.extent) - Index(chunk) * row_chunk;
      step.loops.push_back(loop);
      row_grid.push_back(chunk);
      row = in_chunk;
    } else {
      step.loops.push_back(LoopOf(nest, row));
    }
  }
  // The larger operand is streamed once, so its axes go outside.
  std::vector<Axis> vector_grid;
  if (vector_tile.id >= 0) vector_grid.push_back(vector_tile);
  std::vector<Axis> batch, row_side = row_grid;
  for (const Axis& axis : others) {
    bool in_vectors = false, in_rows = false;
    for (const Operand& load : loads) {
      if (load.address.UsesAxis(axis.id)) (uses_lane(load) ? in_vectors : in_rows) = true;
    }
    if (in_rows && !in_vectors) {
      row_side.insert(row_side.begin() + static_cast<int64_t>(row_side.size() - row_grid.size()), axis);
    } else {
      batch.push_back(axis);
    }
  }
  phase.grid = batch;
  bool stream_rows = row_bytes > vector_bytes;
  if (!row_side.empty() && !vector_grid.empty() && choices->Pick("stream", 2) == 1) stream_rows = !stream_rows;
  const std::vector<Axis>& first = stream_rows ? row_side : vector_grid;
  const std::vector<Axis>& second = stream_rows ? vector_grid : row_side;
  phase.grid.insert(phase.grid.end(), first.begin(), first.end());
  phase.grid.insert(phase.grid.end(), second.begin(), second.end());

  if (vector_in.id >= 0) step.loops.push_back({vector_in, std::nullopt});
  step.loops.push_back({lane, std::nullopt});
  step.fold = nest.fold;
  step.body = nest.body;
  step.then = nest.then;
  step.stores = nest.stores;
  step.store_types = nest.store_types;
  step.tile = {lane.id, vector_in.id, shape.vectors, row.id, std::min<int>(shape.rows, static_cast<int>(row.extent)),
               unroll,  {},           dot.id};
  if (vector_in.id < 0) step.tile.outer_count = 1;
  const int64_t chunk_tiles = row.id < 0 ? 1 : (row.extent + step.tile.row_count - 1) / step.tile.row_count;
  const std::vector<Axis> chunks = stream_rows ? std::vector<Axis>() : row_side;  // that share a panel
  for (const Panel& panel : panels) {
    movement::Prefetch prefetch{panel.buffer, 0, 0, chunk_tiles, Index(0)};
    std::vector<Index> number;
    std::vector<int64_t> extents;
    for (const Axis& axis : chunks) {
      number.push_back(Index(axis));
      extents.push_back(axis.extent);
      prefetch.tiles *= axis.extent;
    }
    if (prefetch.tiles < 2) continue;  // read once: the hardware's own prefetch follows a stream
    prefetch.first = te::Linearize(number, extents) * chunk_tiles;
    const double bytes = static_cast<double>(DTypeBytes(kernel->buffers[panel.buffer].dtype) * panel.elements);
    if (bytes > kCacheShare * static_cast<double>(NearestCacheBytes(device))) {
      prefetch.ahead = kPrefetchRows * step.tile.outer_count * lanes * dot.extent;
    }
    if (panel.panels > 1 &&
        bytes * static_cast<double>(panel.panels) > kCacheShare * static_cast<double>(PrivateCacheBytes(device))) {
      prefetch.panel = panel.elements;
    }
    if (prefetch.ahead > 0 || prefetch.panel > 0) step.tile.prefetch.push_back(prefetch);
  }
  if (in_task) {
    std::vector<movement::Loop> around;
    for (const Axis& axis : phase.grid) around.push_back(LoopOf(nest, axis));
    // A loop that another one cuts short runs inside it.
    std::stable_partition(around.begin(), around.end(), [](const movement::Loop& loop) { return !loop.limit; });
    step.loops.insert(step.loops.begin(), around.begin(), around.end());
    phase.grid.clear();
  }
  if (!step.tile.prefetch.empty() && choices->Pick("prefetch", 2) == 1) step.tile.prefetch.clear();
  step.lane_mask_index = nest.mask_index;
  step.lane_limit = nest.mask_limit;
  step.store_limit_index = store_index;
  step.store_limit = store_limit;
  for (movement::Step& copy : pack_steps) phase.steps.push_back(std::move(copy));
  phase.steps.push_back(std::move(step));
  return phase;
}

}  // namespace fusion
