#include "compiler/backends/text/print_tile.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/text/print_tile_results.h"
#include "compiler/backends/text/tile_border.h"
#include "compiler/backends/text/tile_values.h"

namespace fusion::text {
namespace {

using te::Axis;
using te::Index;
using te::Op;
using te::Scalar;
using te::ScalarKind;

bool Uses(const te::Comparison& c, int axis) { return axis >= 0 && (c.lhs.UsesAxis(axis) || c.rhs.UsesAxis(axis)); }

class TilePrinter {
 public:
  TilePrinter(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
              const TaskShape& shape, int* next_temp, CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        tile_(tile),
        shape_(shape),
        lanes_(shape.lanes),
        work_group_size_(shape.work_group_size),
        next_temp_(next_temp),
        out_(out) {}

  void Print() {
    te::Pred guards;
    body_ = TakeGuards(step_.body[0], step_.reduction->kind, &guards);
    const int row = tile_.row_axis;
    for (const movement::Loop& loop : step_.loops) {
      if (loop.axis.id == row) row_loop_ = &loop;
      if (loop.axis.id == tile_.lane_axis) lane_loop_ = &loop;
    }
    for (const te::Comparison& guard : guards) (Uses(guard, row) ? row_guards_ : free_guards_).push_back(guard);
    SplitReductionAxes();
    if (step_.look) out_->Line("vf look = bc(0.f);");
    // Opens the loops over tiles. Where there is no axis but the rows, the tiles are those of the rows.
    std::vector<movement::Loop> loops;
    for (const movement::Loop& loop : step_.loops) {
      if (loop.axis.id != row && loop.axis.id != tile_.outer_axis && loop.axis.id != tile_.lane_axis) {
        loops.push_back(loop);
      }
    }
    int depth = 0;
    const bool many_lanes = lane_loop_->axis.extent > lanes_;
    bool alone = false;
    if (work_group_size_ > 1) {
      const int number = kernel_.next_axis;  // number of the vector: an axis of this text alone
      if (many_lanes) loops.push_back({{number, (lane_loop_->axis.extent + lanes_ - 1) / lanes_}, std::nullopt});
      share_rows_ = loops.empty();
      if (!loops.empty()) depth = OpenPoints(loops, kernel_, work_group_size_, out_);
      const std::string lane = Name(tile_.lane_axis);
      if (many_lanes) {
        out_->Line(absl::StrCat("const ix ", lane, " = ", Name(number), " * ", lanes_, ";"));
        if (lane_loop_->limit) {
          out_->Line(
              absl::StrCat("if (", lane, " >= ", IndexText(*lane_loop_->limit, AxisText, kernel_), ") continue;"));
        }
      }
      alone = share_rows_ && row < 0;
      if (alone) out_->Open("if (lid == 0)");
    } else {
      for (const movement::Loop& loop : loops) OpenLoop(loop, 1), ++depth;
      if (many_lanes) OpenLoop(*lane_loop_, lanes_), ++depth;
    }
    if (!many_lanes) out_->Line(absl::StrCat("const ix ", Name(tile_.lane_axis), " = 0;"));
    if (alone) ++depth;
    PrintRows();
    for (; depth > 0; --depth) out_->Close();
    if (!step_.look) return;
    out_->Line(absl::StrCat("b", step_.look->buffer, "[", IndexText(step_.look->address, AxisText, kernel_),
                            "] = hadd_f32(look);"));
  }

 private:
  std::string Name(int axis) const { return absl::StrCat("x", axis); }

  void OpenLoop(const movement::Loop& loop, int64_t stride) {
    const std::string i = Name(loop.axis.id);
    std::string limit = absl::StrCat(loop.axis.extent);
    if (loop.limit) {
      const std::string bound = IndexText(
          *loop.limit, [this](int a) { return Name(a); }, kernel_);
      limit = absl::StrCat("smin_i64(", limit, ", ", bound, ")");
    }
    out_->Open(
        absl::StrCat("for (ix ", i, " = 0, e_", i, " = ", limit, "; ", i, " < e_", i, "; ", i, " += ", stride, ")"));
  }

  // Unrolls the reduction axes that share a border test with the rows (they come last in the order), and the innermost
  // other one by tile.unroll. The schedule counts every border test, but only tests outside of which a product is zero
  // guard the rows, so the innermost axis may differ from the one for which tile.unroll was chosen.
  void SplitReductionAxes() {
    for (const Axis& axis : step_.reduction->axes) {
      if (axis.id == tile_.dot_axis) continue;  // runs inside a lane
      bool border = axis.id == tile_.slide_axis;
      for (const te::Comparison& guard : row_guards_) border = border || Uses(guard, axis.id);
      (border ? unrolled_ : rolled_).push_back(axis);
    }
    // Lists the points of the unrolled axes, row-major.
    points_ = {{}};
    for (const Axis& axis : unrolled_) {
      std::vector<std::map<int, int64_t>> next;
      for (const auto& point : points_) {
        for (int64_t v = 0; v < axis.extent; ++v) {
          auto extended = point;
          extended[axis.id] = v;
          next.push_back(extended);
        }
      }
      points_ = std::move(next);
    }
  }

  int64_t RowStride(int64_t rows) const { return share_rows_ ? rows * work_group_size_ : rows; }

  void PrintRows() {
    const int row = tile_.row_axis;
    if (row < 0) {
      PrintTileText({0, 1, 1, {}}, "0");
      return;
    }
    if (row_loop_->limit) {
      // The last chunk is shorter: it has whole tiles, then one remainder, whose row count is known.
      const std::string bound = IndexText(
          *row_loop_->limit, [this](int a) { return Name(a); }, kernel_);
      out_->Line(absl::StrCat("const ix rows = smin_i64(", row_loop_->axis.extent, ", ", bound, ");"));
      if (share_rows_) {
        out_->Line(absl::StrCat("ix r0 = lid * ", tile_.row_count, ";"));
      } else {
        out_->Line("ix r0 = 0;");
      }
      out_->Open(absl::StrCat("for (; r0 + ", tile_.row_count, " <= rows; r0 += ", RowStride(tile_.row_count), ")"));
      PrintTileText({0, 1, tile_.row_count, {}}, "r0");
      out_->Close();
      const te::Interval range = row_loop_->limit->Range();
      const int rest = static_cast<int>(((range.lo % tile_.row_count) + tile_.row_count) % tile_.row_count);
      if (rest > 0) {
        out_->Open("if (r0 < rows)");
        PrintTileText({0, 1, rest, {}}, "r0");
        out_->Close();
      }
      return;
    }
    for (const TileRun& run : RunsOfTiles(row_loop_->axis, tile_.row_count, row_guards_, points_)) {
      if (run.count == 1) {
        out_->Open(share_rows_ ? "if (lid == 0)" : "");
        PrintTileText(run, absl::StrCat(run.first, "L"));
      } else {
        out_->Open(absl::StrCat("for (ix r0 = ", run.first, share_rows_ ? absl::StrCat(" + lid * ", run.rows) : "",
                                "; r0 < ", run.first + run.count * run.rows, "; r0 += ", RowStride(run.rows), ")"));
        PrintTileText(run, "r0");
      }
      out_->Close();
    }
  }

  // The number of an axis among the loops of the reduction that are not unrolled; -1: it is.
  int RolledNumber(const Axis& axis) const {
    const auto at = std::find_if(rolled_.begin(), rolled_.end(), [&](const Axis& a) { return a.id == axis.id; });
    return at == rolled_.end() ? -1 : static_cast<int>(at - rolled_.begin());
  }

  // How often the text of a rolled loop is repeated.
  int UnrollOf(size_t rolled) const {
    return rolled + 1 == rolled_.size() && rolled_[rolled].extent % tile_.unroll == 0 ? tile_.unroll : 1;
  }

  // Is this a load of a ring whose address wraps around along a loop that has one text? Then the operand's base is
  // computed there, and everything else of the address is a line.
  bool WrapsInLoop(const te::ScalarNode& load, const Axis& axis) const {
    const int rolled = RolledNumber(axis);
    return kernel_.buffers[load.tensor].ring && rolled >= 0 && UnrollOf(rolled) == 1;
  }

  std::string OperandPointer(const TileOperand& operand) const {
    return PointerType(kernel_.buffers[operand.node->tensor], /*read_only=*/true);
  }

  void PrintTileText(const TileRun& run, const std::string& r0) {
    const movement::RegisterTile& tile = tile_;
    const int vectors = tile.outer_axis >= 0 ? tile.outer_count : 1;
    const int rows = run.rows;
    auto name = [&](int axis) -> std::string {
      if (axis == tile.row_axis) return absl::StrCat("(", r0, ")");
      if (axis == tile.outer_axis) return "0L";
      for (const Axis& a : step_.reduction->axes) {
        if (a.id == axis) return "0L";
      }
      return Name(axis);
    };
    std::vector<TileOperand> operands;
    te::Visit(body_, [&](const te::ScalarNode& node) {
      if (node.kind != ScalarKind::kLoad) return;
      TileOperand operand;
      operand.node = &node;
      const Index& address = node.indices[0];
      // A fused lane axis may occur in an address that is the same for all lanes of a vector (i//16).
      operand.by_lane = te::ClassifyLanes(address, lane_loop_->axis, lanes_) != te::LaneAccess::kInvariant;
      if (address.UsesAxis(tile.row_axis))
        operand.affine = operand.affine && address.AffineIn(tile.row_axis, &operand.row);
      if (address.UsesAxis(tile.outer_axis))
        operand.affine = operand.affine && address.AffineIn(tile.outer_axis, &operand.vector);
      for (const Axis& axis : step_.reduction->axes) {
        if (!address.UsesAxis(axis.id) || axis.id == tile.dot_axis) continue;
        int64_t c = 0;
        const bool line = address.AffineIn(axis.id, &c);
        if (!line && WrapsInLoop(node, axis)) {
          operand.base_in_loop = std::max(operand.base_in_loop, RolledNumber(axis));
          continue;
        }
        operand.affine = operand.affine && line;
        const bool unrolled =
            std::any_of(unrolled_.begin(), unrolled_.end(), [&](const Axis& a) { return a.id == axis.id; });
        (unrolled ? operand.unrolled : operand.step)[axis.id] = c;
      }
      operands.push_back(operand);
    });
    for (size_t i = 0; i < operands.size(); ++i) {
      TileOperand& operand = operands[i];
      if (!operand.affine || operand.base_in_loop >= 0) continue;
      operand.pointer = absl::StrCat("p", (*next_temp_)++);
      out_->Line(absl::StrCat(OperandPointer(operand), " ", operand.pointer, " = b", operand.node->tensor, " + ",
                              IndexText(operand.node->indices[0], name, kernel_), ";"));
      for (const movement::Prefetch& prefetch : tile.prefetch) {
        if (prefetch.buffer == operand.node->tensor) operand.prefetch = &prefetch;
      }
      if (operand.prefetch != nullptr && operand.prefetch->panel > 0) {
        operand.next_panel = absl::StrCat("p", (*next_temp_)++);
        const std::string tile_number = absl::StrCat("(", IndexText(operand.prefetch->first, name, kernel_), " + (", r0,
                                                     ") / ", tile.row_count, ")");
        out_->Line(absl::StrCat(OperandPointer(operand), " ", operand.next_panel, " = ", operand.pointer, " + ",
                                operand.prefetch->panel, " + ", tile_number, " * ",
                                LinesPerTile(*operand.prefetch) * LineElements(*operand.prefetch), ";"));
      }
    }
    const std::string init =
        BroadcastText(step_.reduction->acc, ReductionIdentity(step_.reduction->kind, step_.reduction->acc));
    for (int r = 0; r < rows; ++r) {
      std::vector<std::string> names;
      names.reserve(vectors);
      for (int v = 0; v < vectors; ++v) names.push_back(absl::StrCat("c", r, "_", v, " = ", init));
      out_->Line(absl::StrCat(VectorType(step_.reduction->acc), " ", absl::StrJoin(names, ", "), ";"));
    }
    const bool offset = SignedDot() && run.mask.empty();
    const int offset_rows = OffsetsByRow() ? rows : 1;
    for (int r = 0; offset && r < offset_rows; ++r) {
      for (int v = 0; v < vectors; ++v) out_->Line(absl::StrCat("vi ", DotOffset(r, v), " = bi(0);"));
    }
    PrintReduction(run, r0, operands, rows, vectors);
    for (int r = 0; offset && r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) {
        const std::string acc = absl::StrCat("c", r, "_", v);
        out_->Line(absl::StrCat(acc, " = isub(", acc, ", ", DotOffset(r, v), ");"));
      }
    }
    PrintTileResults(kernel_, step_, tile_, shape_, {rows, vectors, r0}, next_temp_, out_);
  }

  void PrintReduction(const TileRun& run, const std::string& r0, std::vector<TileOperand> operands, int rows,
                      int vectors) {
    int depth = 0;
    std::set<int> bound;
    for (const Axis& axis : step_.reduction->axes) bound.insert(axis.id);
    std::set<int> open;
    te::Pred pending = free_guards_;
    auto guard_name = [&](int axis) { return Name(axis); };
    auto ready = [&](const te::Comparison& guard) {
      std::vector<Axis> used;
      te::CollectAxes(guard.lhs, &used);
      te::CollectAxes(guard.rhs, &used);
      for (const Axis& axis : used) {
        if (bound.count(axis.id) && !open.count(axis.id)) return false;
      }
      return true;
    };
    auto place_guards = [&] {
      te::Pred now;
      std::erase_if(pending, [&](const te::Comparison& guard) {
        if (!ready(guard)) return false;
        now.push_back(guard);
        return true;
      });
      if (now.empty()) return;
      out_->Open(absl::StrCat("if (", PredText(now, guard_name, kernel_), ")"));
      ++depth;
    };
    place_guards();
    int unroll = 1;
    for (size_t a = 0; a < rolled_.size(); ++a) {
      const Axis& axis = rolled_[a];
      unroll = UnrollOf(a);
      int64_t first = 0;
      if (a + 1 == rolled_.size()) PrintNextRows(operands, rows);
      if (a + 1 == rolled_.size() && pending.empty() && Widens(run, operands)) {
        first = axis.extent / lanes_ * lanes_;
        PrintWidenedDot(operands, rows, vectors);
        if (first == axis.extent) break;
        unroll = 1;
      }
      const std::string i = Name(axis.id);
      out_->Open(absl::StrCat("for (ix ", i, " = ", first, "; ", i, " < ", axis.extent, "; ", i, " += ", unroll, ")"));
      ++depth;
      open.insert(axis.id);
      for (TileOperand& operand : operands) {
        if (operand.affine && operand.base_in_loop == static_cast<int>(a))
          operand.pointer = PrintBase(operand, r0, open);
        if (!operand.affine || operand.base_in_loop >= static_cast<int>(a) || !operand.step.count(axis.id)) continue;
        const std::string next = absl::StrCat("p", (*next_temp_)++);
        out_->Line(absl::StrCat(OperandPointer(operand), " ", next, " = ", operand.pointer, " + ",
                                operand.step[axis.id], "L*", i, ";"));
        operand.pointer = next;
      }
      place_guards();
    }
    if (open.size() < rolled_.size()) {  // the innermost loop is there already
      for (; depth > 0; --depth) out_->Close();
      return;
    }
    PrintNextPanel(operands, unroll);
    const bool slides = tile_.slide_axis >= 0 && pending.empty() && Slides(operands);
    for (int u = 0; u < unroll && slides; ++u) {
      out_->Open("");
      if (unroll > 1) out_->Line("STEP_BOUNDARY");
      PrintSliding(run, operands, rows, vectors, u);
      out_->Close();
    }
    for (int u = 0; u < unroll && !slides; ++u) {
      for (size_t point = 0; point < points_.size(); ++point) {
        std::map<int, int64_t> at = points_[point];
        if (!rolled_.empty()) at[-1] = u;
        // These guards involve unrolled axes, but not the rows.
        te::Pred late;
        for (const te::Comparison& guard : pending) late.push_back(guard);
        auto late_name = [&](int axis) {
          auto it = at.find(axis);
          return it != at.end() ? absl::StrCat(it->second, "L") : Name(axis);
        };
        out_->Open(late.empty() ? "" : absl::StrCat("if (", PredText(late, late_name, kernel_), ")"));
        // Neighbouring taps read the same elements. If the compiler keeps these in registers from one tap to the next,
        // or moves a load ahead of the step before it, accumulators go to the stack. A load from the first-level cache
        // is cheaper.
        if (unroll * points_.size() > 1) out_->Line("STEP_BOUNDARY");
        PrintPoint(run, r0, operands, rows, vectors, point, at, u);
        out_->Close();
      }
    }
    for (; depth > 0; --depth) out_->Close();
  }

  // Prints the base of an operand's addresses inside the loops over the axes `open`. Returns its name.
  std::string PrintBase(const TileOperand& operand, const std::string& r0, const std::set<int>& open) {
    const auto name = [&](int axis) -> std::string {
      if (axis == tile_.row_axis) return absl::StrCat("(", r0, ")");
      const bool reduced = std::any_of(step_.reduction->axes.begin(), step_.reduction->axes.end(),
                                       [&](const Axis& a) { return a.id == axis; });
      return axis == tile_.outer_axis || (reduced && !open.count(axis)) ? "0L" : Name(axis);
    };
    const std::string base = absl::StrCat("p", (*next_temp_)++);
    out_->Line(absl::StrCat(OperandPointer(operand), " ", base, " = b", operand.node->tensor, " + ",
                            IndexText(operand.node->indices[0], name, kernel_), ";"));
    return base;
  }

  // Is the body a load that moves with the rows, or its product with a load that does not?
  bool Slides(const std::vector<TileOperand>& operands) const {
    const bool product = body_->kind == ScalarKind::kOp && body_->op == Op::kMul &&
                         step_.reduction->kind == te::ReductionKind::kSum && operands.size() == 2;
    if (!product && body_->kind != ScalarKind::kLoad) return false;
    int moving = 0;
    for (const TileOperand& operand : operands) {
      if (!operand.affine || operand.node->dtype != DType::kF32 || operand.prefetch != nullptr) return false;
      if (product && body_->args[0].get() != operand.node && body_->args[1].get() != operand.node) return false;
      if (operand.row != 0) ++moving;
    }
    return moving == 1;
  }

  int64_t OffsetAt(const TileOperand& operand, int row, int vector, size_t point, int u) const {
    int64_t offset = operand.row * row + operand.vector * vector;
    for (const auto& [axis, c] : operand.unrolled) offset += c * points_[point].at(axis);
    const auto step = rolled_.empty() ? operand.step.end() : operand.step.find(rolled_.back().id);
    return step == operand.step.end() ? offset : offset + step->second * u;
  }

  // Prints all unrolled points of all rows. A vector of the operand that moves with the rows is loaded once for all
  // rows and points that use it; the operand that does not move with the rows is loaded first and stays in registers.
  void PrintSliding(const TileRun& run, const std::vector<TileOperand>& operands, int rows, int vectors, int u) {
    const TileOperand* moving = nullptr;
    const TileOperand* still = nullptr;
    for (const TileOperand& operand : operands) (operand.row != 0 ? moving : still) = &operand;
    const auto load = [&](const TileOperand& operand, int64_t offset) {
      const movement::Buffer& buffer = kernel_.buffers[operand.node->tensor];
      const std::string place = absl::StrCat(operand.pointer, " + ", offset), name = absl::StrCat("t", (*next_temp_)++);
      out_->Line(absl::StrCat("const vf ", name, " = ",
                              operand.by_lane
                                  ? VectorLoadText(buffer.dtype, place)
                                  : absl::StrCat("bc(", LoadText(buffer, absl::StrCat("*(", place, ")")), ")"),
                              ";"));
      return name;
    };
    for (int v = 0; v < vectors; ++v) {
      std::map<int64_t, std::string> weights;                           // by offset
      std::map<int64_t, std::vector<std::pair<int, size_t>>> meetings;  // rows and points that use it, by offset
      for (size_t point = 0; point < points_.size(); ++point) {
        for (int r = 0; r < rows; ++r) {
          if (!run.mask.empty() && !run.mask[r * points_.size() + point]) continue;
          meetings[OffsetAt(*moving, r, v, point, u)].emplace_back(r, point);
          if (still == nullptr) continue;
          std::string& weight = weights[OffsetAt(*still, 0, v, point, u)];
          if (weight.empty()) weight = load(*still, OffsetAt(*still, 0, v, point, u));
        }
      }
      for (const auto& [offset, met] : meetings) {
        const std::string x = load(*moving, offset);
        for (const auto& [r, point] : met) {
          const std::string acc = absl::StrCat("c", r, "_", v);
          out_->Line(still == nullptr
                         ? VectorCombine(*step_.reduction, acc, x)
                         : absl::StrCat(acc, " += ", x, " * ", weights.at(OffsetAt(*still, 0, v, point, u)), ";"));
        }
      }
    }
  }

  // Elements of a prefetched operand in a cache line.
  int64_t LineElements(const movement::Prefetch& prefetch) const {
    return 64 / DTypeBytes(kernel_.buffers[prefetch.buffer].dtype);
  }

  int64_t LinesPerTile(const movement::Prefetch& prefetch) const {
    const int64_t lines = (prefetch.panel + LineElements(prefetch) - 1) / LineElements(prefetch);
    return (lines + prefetch.tiles - 1) / prefetch.tiles;
  }

  // Prefetches a few lines of the next panel in each iteration of the innermost rolled loop, so that they are spread
  // over the whole tile.
  void PrintNextPanel(const std::vector<TileOperand>& operands, int unroll) {
    int64_t iterations = 1;
    std::string number = "0";
    for (size_t a = 0; a < rolled_.size(); ++a) {
      const int64_t stride = a + 1 == rolled_.size() ? unroll : 1;
      const int64_t count = (rolled_[a].extent + stride - 1) / stride;
      number = a == 0 ? absl::StrCat(Name(rolled_[a].id), " / ", stride)
                      : absl::StrCat("(", number, ") * ", count, " + ", Name(rolled_[a].id), " / ", stride);
      iterations *= count;
    }
    for (const TileOperand& operand : operands) {
      if (operand.next_panel.empty()) continue;
      const int64_t lines = std::max<int64_t>(1, (LinesPerTile(*operand.prefetch) + iterations - 1) / iterations);
      for (int64_t line = 0; line < lines; ++line) {
        out_->Line(absl::StrCat("PREFETCH_L2(", operand.next_panel, " + (", number, ") * ",
                                lines * LineElements(*operand.prefetch), " + ", line * LineElements(*operand.prefetch),
                                ");"));
      }
    }
  }

  // Prefetches what the next tile of rows reads while the innermost loop runs.
  void PrintNextRows(const std::vector<TileOperand>& operands, int rows) {
    const Axis& innermost = rolled_.back();
    for (const TileOperand& operand : operands) {
      if (operand.prefetch == nullptr || !operand.prefetch->next_rows) continue;
      if (operand.by_lane || operand.pointer.empty()) continue;
      const auto step = operand.step.find(innermost.id);
      const int64_t along = step == operand.step.end() ? 0 : step->second, line = LineElements(*operand.prefetch);
      std::set<int64_t> lines;
      for (int row = rows; row < 2 * rows; ++row) {
        for (int64_t i = 0; i < innermost.extent; ++i) lines.insert((row * operand.row + i * along) / line);
      }
      for (const int64_t number : lines) {
        out_->Line(absl::StrCat("PREFETCH_L2(", operand.pointer, " + ", number * line, ");"));
      }
    }
  }

  void PrintPoint(const TileRun& run, const std::string& r0, const std::vector<TileOperand>& operands, int rows,
                  int vectors, size_t point, const std::map<int, int64_t>& at, int u) {
    TileValues values(kernel_, tile_, operands, {r0, at, rolled_.empty() ? -1 : rolled_.back().id, u}, next_temp_,
                      out_);
    if (tile_.dot_axis >= 0) return PrintDot(run, rows, vectors, point, &values);
    for (int r = 0; r < rows; ++r) {
      if (!run.mask.empty() && !run.mask[r * points_.size() + point]) continue;
      for (int v = 0; v < vectors; ++v) {
        const std::string acc = absl::StrCat("c", r, "_", v);
        if (step_.reduction->kind == te::ReductionKind::kSum && IsFloat(body_->dtype) &&
            body_->kind == ScalarKind::kOp && body_->op == Op::kMul) {
          const std::string a = values.Emit(body_->args[0], r, v), b = values.Emit(body_->args[1], r, v);
          out_->Line(absl::StrCat(acc, " += ", a, " * ", b, ";"));
        } else {
          out_->Line(VectorCombine(*step_.reduction, acc, values.Emit(body_, r, v)));
        }
      }
    }
  }

  // Adds four products of bytes in each lane. Where both factors are signed, the instruction wants one of them
  // unsigned, so it gets a + 128; `o` keeps 128·Σb of each vector, which is subtracted at the end. Rows share `o`,
  // unless b differs between rows, as in a product whose rows are a batch. Border rows differ in the terms that they
  // sum, and use the exact, longer form.
  bool SignedDot() const {
    return tile_.dot_axis >= 0 && ByteFactor(0)->dtype == DType::kI8 && ByteFactor(1)->dtype == DType::kI8;
  }
  const te::ScalarNode* ByteFactor(int i) const { return body_->args[i]->args[0].get(); }
  // The number of the factor that moves with the lanes.
  int FactorByLane() const {
    return te::ClassifyLanes(ByteFactor(0)->indices[0], lane_loop_->axis, lanes_) != te::LaneAccess::kInvariant ? 0 : 1;
  }
  bool OffsetsByRow() const {
    const int row = tile_.row_axis;
    return SignedDot() && row >= 0 && ByteFactor(FactorByLane())->indices[0].UsesAxis(row);
  }
  std::string DotOffset(int r, int v) const {
    return OffsetsByRow() ? absl::StrCat("o", r, "_", v) : absl::StrCat("o", v);
  }

  void PrintDot(const TileRun& run, int rows, int vectors, size_t point, TileValues* values) {
    const auto sign = [&](int i) { return ByteFactor(i)->dtype == DType::kI8 ? "s" : "u"; };
    const int b = FactorByLane(), a = 1 - b;  // b is shared by rows, a is broadcast
    const bool masked = !run.mask.empty();
    const std::string dot = absl::StrCat("dot_", sign(a), sign(b), SignedDot() && masked ? "_exact" : "");
    for (int r = 0; r < rows; ++r) {
      if (masked && !run.mask[r * points_.size() + point]) continue;
      for (int v = 0; v < vectors; ++v) {
        const std::string x = values->Emit(body_->args[a]->args[0], r, v),
                          y = values->Emit(body_->args[b]->args[0], r, v);
        if (SignedDot() && !masked && (r == 0 || OffsetsByRow())) {
          const std::string offset = DotOffset(r, v);
          out_->Line(absl::StrCat(offset, " = dot_128(", offset, ", ", y, ");"));
        }
        const std::string acc = absl::StrCat("c", r, "_", v);
        out_->Line(absl::StrCat(acc, " = ", dot, "(", acc, ", ", x, ", ", y, ");"));
      }
    }
  }

  // The operand of a product of bytes that moves with the lanes (1), or the one that is broadcast (0).
  const TileOperand& DotOperand(const std::vector<TileOperand>& operands, bool by_lane) const {
    const te::ScalarNode* node = ByteFactor(by_lane ? FactorByLane() : 1 - FactorByLane());
    return *std::find_if(operands.begin(), operands.end(), [&](const TileOperand& o) { return o.node == node; });
  }

  // Without an instruction for four products of bytes, factors are widened to 16 bits. Is the broadcast factor one run
  // of memory along the innermost loop, so that whole vectors of it can be widened before they are broadcast?
  bool Widens(const TileRun& run, const std::vector<TileOperand>& operands) const {
    if (tile_.dot_axis < 0 || shape_.byte_dots || !run.mask.empty() || points_.size() != 1) return false;
    for (int i = 0; i < 2; ++i) {
      if (ByteFactor(i)->kind != ScalarKind::kLoad) return false;
    }
    const TileOperand &a = DotOperand(operands, false), &b = DotOperand(operands, true);
    const int axis = rolled_.back().id;
    const auto step = a.step.find(axis);
    const auto settled = [&](const TileOperand& o) {
      return o.affine && o.base_in_loop < static_cast<int>(rolled_.size()) - 1;
    };
    return settled(a) && settled(b) && b.row == 0 && a.vector == 0 && step != a.step.end() &&
           step->second == movement::kDotLength && rolled_.back().extent >= lanes_;
  }

  // Prints the innermost loop in parts of as many steps as there are lanes. A part begins by widening a vector of each
  // row's bytes, into memory, from where they are broadcast in pairs: as a broadcast is a load, it costs no arithmetic.
  // The first and third of each four bytes come first (evens), because a vector of bytes is widened in halves, and both
  // halves at once would take more registers.
  void PrintWidenedDot(const std::vector<TileOperand>& operands, int rows, int vectors) {
    const TileOperand &a = DotOperand(operands, false), &b = DotOperand(operands, true);
    const auto sign = [](const TileOperand& o) { return o.node->dtype == DType::kI8 ? "s" : "u"; };
    const int own_rows = a.row != 0 ? rows : 1, axis = rolled_.back().id;
    const std::string i = Name(axis), pairs = absl::StrCat("w", (*next_temp_)++);
    const auto begin = [&](const TileOperand& o) {
      const auto step = o.step.find(axis);
      const std::string pointer = absl::StrCat("p", (*next_temp_)++);
      out_->Line(absl::StrCat(OperandPointer(o), " ", pointer, " = ", o.pointer, " + ",
                              step == o.step.end() ? 0 : step->second, "L*", i, ";"));
      return pointer;
    };
    out_->Line(absl::StrCat("i32 ", pairs, "[", 2 * own_rows * lanes_, "];"));
    out_->Open(absl::StrCat("for (ix ", i, " = 0; ", i, " + ", lanes_, " <= ", rolled_.back().extent, "; ", i,
                            " += ", lanes_, ")"));
    const std::string bytes = begin(a), vector = begin(b);
    for (int r = 0; r < own_rows; ++r) {
      out_->Line(absl::StrCat("widen_", sign(a), "(", pairs, " + ", 2 * r * lanes_, ", ", bytes, " + ",
                              OffsetAt(a, r, 0, 0, 0), ");"));
    }
    PrintNextPanel(operands, static_cast<int>(lanes_));
    const std::string s = absl::StrCat("s", (*next_temp_)++);
    const int64_t copies = lanes_ % tile_.unroll == 0 ? tile_.unroll : 1;
    out_->Open(absl::StrCat("for (ix ", s, " = 0; ", s, " < ", lanes_, "; ", s, " += ", copies, ")"));
    const std::string at = absl::StrCat("q", (*next_temp_)++);
    out_->Line(absl::StrCat("const i32* ", at, " = ", pairs, " + ", s, "; IN_MEMORY(", at, ")"));
    const auto step = b.step.find(axis);
    for (int copy = 0; copy < copies; ++copy) {
      for (const bool odd : {false, true}) {
        out_->Open("");
        out_->Line("STEP_BOUNDARY");
        std::vector<std::string> halves;
        for (int v = 0; v < vectors; ++v) {
          const int64_t offset = OffsetAt(b, 0, v, 0, copy);
          const std::string place =
              absl::StrCat(vector, " + ", step == b.step.end() ? 0 : step->second, "L*", s, " + ", offset);
          if (!odd && b.prefetch != nullptr && b.prefetch->ahead > 0) {
            out_->Line(absl::StrCat("PREFETCH_L1(", place, " + ", b.prefetch->ahead, ");"));
          }
          halves.push_back(absl::StrCat("t", (*next_temp_)++));
          out_->Line(absl::StrCat("const vi ", halves.back(), " = ", odd ? "odds_" : "evens_", sign(b), "(ld4(", place,
                                  "));"));
        }
        for (int r = 0; r < rows; ++r) {
          const std::string pair = absl::StrCat("t", (*next_temp_)++);
          const int64_t number = (a.row != 0 ? 2 * r * lanes_ : 0) + (odd ? lanes_ : 0) + copy;
          out_->Line(absl::StrCat("const vi ", pair, " = bi(", at, "[", number, "]);"));
          for (int v = 0; v < vectors; ++v) {
            const std::string acc = absl::StrCat("c", r, "_", v);
            out_->Line(absl::StrCat(acc, " = add_pairs(", acc, ", ", pair, ", ", halves[v], ");"));
          }
        }
        out_->Close();
      }
    }
    out_->Close();
    out_->Close();
  }

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const movement::RegisterTile& tile_;
  const TaskShape& shape_;
  const int64_t lanes_;
  const int work_group_size_;
  int* next_temp_;
  CodeWriter* out_;
  Scalar body_;
  bool share_rows_ = false;  // the work-items share out tiles of rows
  te::Pred row_guards_, free_guards_;
  std::vector<Axis> rolled_, unrolled_;
  std::vector<std::map<int, int64_t>> points_;
  const movement::Loop* row_loop_ = nullptr;
  const movement::Loop* lane_loop_ = nullptr;
};

}  // namespace

void PrintTile(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
               const TaskShape& shape, int* next_temp, CodeWriter* out) {
  TilePrinter(kernel, step, tile, shape, next_temp, out).Print();
}

}  // namespace fusion::text
