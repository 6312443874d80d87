#include "compiler/schedule/stitch/window_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/te/ranges/bounds.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// A turn's number stands for any of this many turns while spans are inferred, and tensors count as that large, so that
// no span is cut at a border. A ring clips rows itself.
constexpr int64_t kAnyTurn = int64_t{1} << 24, kAnyExtent = int64_t{1} << 40;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }  // b > 0

// The rows of a tensor that one turn of a reader reads.
struct RowSpan {
  size_t dimension = 0;  // of the tensor, logical
  int64_t step = 0, first = 0, rows = 0;
};

class RowPlanner {
 public:
  RowPlanner(const te::Program& program, const std::vector<PhysicalTe>& stages, const LayoutOf& layout_of,
             AxisSource* axes)
      : program_(program), stages_(stages), layout_of_(layout_of), axes_(*axes), any_turn_(axes->New(kAnyTurn)) {}

  absl::StatusOr<RowPlan> Plan(size_t rows, int64_t step) {
    const size_t last = stages_.size() - 1;
    plan_.stages.resize(stages_.size());
    StageRows& main = plan_.stages[last];
    main.physical = rows;
    main.step = step;
    main.turn = axes_.New(CeilDiv(stages_[last].te.axes[rows].extent, step));
    for (size_t s = last; s-- > 0;) RETURN_IF_ERROR(PlanStage(s));
    for (size_t s = 0; s <= last; ++s) FindSliding(s);
    const int64_t least = std::min_element(plan_.stages.begin(), plan_.stages.end(), [](const auto& a, const auto& b) {
                            return a.first < b.first;
                          })->first;
    for (StageRows& stage : plan_.stages) {
      stage.first -= least;
      plan_.iterations = std::max(plan_.iterations, stage.first + stage.turn.extent);
    }
    return std::move(plan_);
  }

 private:
  std::string NameOf(TensorId tensor) const { return absl::StrCat("'", program_.tensors[tensor].name, "'"); }

  // The rows of `tensor` that a turn of stage `reader` reads; nullopt where it reads nothing of it.
  absl::StatusOr<std::optional<RowSpan>> SpanOf(size_t reader, TensorId tensor) const {
    const te::Te& te = stages_[reader].te;
    const StageRows& turns = plan_.stages[reader];
    te::Box box;
    for (size_t d = 0; d < te.axes.size(); ++d) {
      box.push_back(d == turns.physical ? te::Span{Index(any_turn_) * turns.step, turns.step}
                                        : te::Span{Index(0), te.axes[d].extent});
    }
    const Shape shape(program_.tensors[tensor].shape.size(), kAnyExtent);
    ASSIGN_OR_RETURN(const te::Box read, te::RequiredBox(te, box, tensor, shape));
    RowSpan span;
    bool moves = false;
    for (size_t d = 0; d < read.size(); ++d) {
      if (read[d].length == 0) return std::nullopt;
      if (!read[d].origin.UsesAxis(any_turn_.id)) continue;
      const bool affine = read[d].origin.AffineIn(any_turn_.id, &span.step);
      const Index first = affine ? read[d].origin - Index(any_turn_) * span.step : Index(0);
      if (!affine || span.step < 1 || !first.IsConstant()) {
        return absl::FailedPreconditionError(absl::StrCat("what is read of ", NameOf(tensor),
                                                          " does not move by whole rows with each turn: it begins at ",
                                                          te::ToString(read[d].origin)));
      }
      if (moves) {
        return absl::FailedPreconditionError(
            absl::StrCat("what is read of ", NameOf(tensor), " moves in two dimensions with each turn"));
      }
      moves = true;
      span.dimension = d;
      span.first = first.constant();
      span.rows = read[d].length;
    }
    if (!moves) {
      return absl::FailedPreconditionError(
          absl::StrCat("each turn reads the same elements of ", NameOf(tensor), ", so it has no rows to share out"));
    }
    return span;
  }

  // Plans a stage whose readers are planned.
  absl::Status PlanStage(size_t s) {
    const std::vector<TensorId>& outputs = stages_[s].te.outputs;
    StageRows& stage = plan_.stages[s];
    const size_t before = plan_.windows.size();
    for (size_t r = s + 1; r < stages_.size(); ++r) {
      const std::set<TensorId> reads = TensorsRead(stages_[r].te);
      for (const TensorId out : outputs) {
        if (reads.count(out) == 0) continue;
        ASSIGN_OR_RETURN(const std::optional<RowSpan> span, SpanOf(r, out));
        if (!span) continue;
        if (plan_.windows.size() > before && (span->dimension != stage.logical || span->step != stage.step)) {
          return absl::FailedPreconditionError(
              absl::StrCat("two stages read ", NameOf(out), " by different dimensions or numbers of rows a turn"));
        }
        stage.logical = span->dimension;
        stage.step = span->step;
        plan_.windows.push_back({s, r, out, span->first, span->rows});
      }
    }
    if (plan_.windows.size() == before) {
      return absl::FailedPreconditionError(absl::StrCat("no stage of the kernel reads ", NameOf(outputs[0])));
    }
    RETURN_IF_ERROR(FindPhysical(s));
    const int64_t extent = stages_[s].te.axes[stage.physical].extent;
    int64_t needed = 0;
    bool placed = false;
    for (size_t w = before; w < plan_.windows.size(); ++w) {
      const WindowOfRows& window = plan_.windows[w];
      const StageRows& reader = plan_.stages[window.reader];
      const int64_t begin = reader.first + 1 - CeilDiv(window.first + window.rows, stage.step);
      stage.first = placed ? std::min(stage.first, begin) : begin;
      placed = true;
      needed = std::max(needed, stage.step * (reader.turn.extent - 1) + window.first + window.rows);
    }
    needed = std::min(needed, extent);
    if (needed < 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("the windows over ", NameOf(outputs[0]), " lie in padding, so that no turn reads it"));
    }
    stage.turn = axes_.New(CeilDiv(needed, stage.step));
    for (size_t w = before; w < plan_.windows.size(); ++w) {
      const WindowOfRows& window = plan_.windows[w];
      const int64_t turns = plan_.stages[window.reader].first - stage.first + 1;
      stage.kept = std::max(stage.kept, stage.step * turns - window.first);
    }
    stage.kept = std::min(CeilDiv(stage.kept, stage.step) * stage.step, extent);
    return absl::OkStatus();
  }

  // Finds the stage's physical axis that walks the rows.
  absl::Status FindPhysical(size_t s) {
    StageRows& stage = plan_.stages[s];
    const TensorId out = stages_[s].te.outputs[0];
    const Layout layout = layout_of_(out);
    stage.physical = stage.logical;
    if (layout.axis_last()) {
      std::vector<size_t> order(program_.tensors[out].shape.size());
      std::iota(order.begin(), order.end(), size_t{0});
      order = layout.MoveLast(order);
      stage.physical = std::find(order.begin(), order.end(), stage.logical) - order.begin();
    } else if (!layout.plain() && static_cast<size_t>(layout.axis) == stage.logical) {
      return absl::FailedPreconditionError(absl::StrCat("the rows of ", NameOf(out), " lie in layout blocks"));
    }
    return absl::OkStatus();
  }

  // Is some row that a turn of the stage reads read by its next turn, too?
  void FindSliding(size_t s) {
    for (const TensorId tensor : TensorsRead(stages_[s].te)) {
      const absl::StatusOr<std::optional<RowSpan>> span = SpanOf(s, tensor);
      plan_.slides = plan_.slides || (span.ok() && *span && (*span)->rows > (*span)->step);
    }
  }

  const te::Program& program_;
  const std::vector<PhysicalTe>& stages_;
  const LayoutOf& layout_of_;
  AxisSource& axes_;
  const Axis any_turn_;
  RowPlan plan_;
};

}  // namespace

absl::StatusOr<RowPlan> PlanRows(const te::Program& program, const std::vector<PhysicalTe>& stages,
                                 const LayoutOf& layout_of, size_t rows, int64_t step, AxisSource* axes) {
  return RowPlanner(program, stages, layout_of, axes).Plan(rows, step);
}

}  // namespace fusion
