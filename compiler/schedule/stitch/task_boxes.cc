#include "compiler/schedule/stitch/task_boxes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/te/ranges/task_spans.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// A stage that is computed more than this many times over is not stitched, unless the extra work is a small share of
// all work.
constexpr double kRecompute = 1.01;
constexpr double kSmallShare = 0.05;

// Is the origin n · length, where n is the number of a tile?
bool IsBlock(const te::Span& span, Axis* number) {
  if (span.length == 1 || span.origin.constant() != 0 || span.origin.parts().size() != 1) return false;
  const Index::Part& part = span.origin.parts()[0];
  if (part.term.kind != te::TermKind::kAxis || part.coefficient != span.length) return false;
  *number = part.term.axis;
  return true;
}

bool ReadsAlongReduction(const te::Te& te, TensorId tensor) {
  if (!te.reduction) return false;
  bool along = false;
  te::Visit(te.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad || node.tensor != tensor || node.indices.empty()) return;
    along = along || std::any_of(te.reduction->axes.begin(), te.reduction->axes.end(),
                                 [&](const Axis& axis) { return node.indices.back().UsesAxis(axis.id); });
  });
  return along;
}

bool BoxIsEmpty(const te::Box& box) {
  return std::any_of(box.begin(), box.end(), [](const te::Span& span) { return span.length == 0; });
}

}  // namespace

double CostPerPoint(const te::Te& te) {
  double cost = 1;
  for (const te::Scalar& s : te.body) cost += te::OpCost(s);
  return cost;
}

double WorkOf(const te::Te& te) { return CostPerPoint(te) * DomainPoints(te); }

TaskBoxes::TaskBoxes(const te::Program& program, const std::vector<PhysicalTe>& stages, const LayoutOf& layout_of,
                     const std::set<TensorId>& live_out, Halos halos)
    : program_(program), stages_(stages), layout_of_(layout_of), halos_(halos), facts_(stages.size()) {
  std::map<TensorId, size_t> made_by;
  for (size_t s = 0; s < stages.size(); ++s) {
    Facts& facts = facts_[s];
    facts.reads = TensorsRead(stages[s].te);
    facts.work = WorkOf(stages[s].te);
    facts.last_reader = s;
    for (TensorId tensor : facts.reads) {
      if (const auto maker = made_by.find(tensor); maker != made_by.end()) facts_[maker->second].last_reader = s;
    }
    for (TensorId out : stages[s].te.outputs) {
      made_by[out] = s;
      facts.live_out = facts.live_out || live_out.count(out) > 0;
    }
  }
}

double TaskBoxes::Work() const {
  double work = 0;
  for (const Facts& facts : facts_) work += facts.work;
  return work;
}

GridAxis InBlocks(const Axis& axis, int64_t block, AxisSource* axes) {
  if (block <= 1) return {axis, 1, axis};
  return {axis, block, axes->New((axis.extent + block - 1) / block)};
}

std::optional<Index> TaskBoxes::LimitOf(const te::Span& span, int64_t extent) {
  Axis number{-1, 1};
  if (!IsBlock(span, &number) || number.extent * span.length <= extent) return std::nullopt;
  return Index(extent) - span.origin;
}

absl::StatusOr<std::vector<te::Box>> TaskBoxes::For(const std::vector<GridAxis>& grid) const {
  ASSIGN_OR_RETURN(std::vector<te::Box> boxes, Infer(grid));
  RETURN_IF_ERROR(Check(boxes, grid));
  return boxes;
}

absl::StatusOr<std::vector<te::Box>> TaskBoxes::Infer(const std::vector<GridAxis>& grid) const {
  const int n = static_cast<int>(stages_.size());
  std::vector<te::Box> boxes(n);
  for (int s = n - 1; s >= 0; --s) {
    const te::Te& te = stages_[s].te;
    if (s == n - 1) {
      for (const Axis& axis : te.axes) {
        const auto shared =
            std::find_if(grid.begin(), grid.end(), [&](const GridAxis& g) { return g.axis.id == axis.id; });
        boxes[s].push_back(shared == grid.end() ? te::Span{Index(0), axis.extent}
                                                : te::Span{Index(shared->number) * shared->block, shared->block});
      }
      continue;
    }
    if (grid.empty() && LiveOut(s)) {  // a single task computes the whole result, whatever it reads of it
      for (const Axis& axis : te.axes) boxes[s].push_back({Index(0), axis.extent});
      continue;
    }
    // Takes the hull over all readers of all outputs (the outputs of a stage share its domain).
    std::optional<te::Box> need;
    for (TensorId out : te.outputs) {
      for (int r = s + 1; r < n; ++r) {
        if (facts_[r].reads.count(out) == 0) continue;
        ASSIGN_OR_RETURN(te::Box box, te::RequiredBox(stages_[r].te, boxes[r], out, program_.tensors[out].shape));
        if (need) {
          ASSIGN_OR_RETURN(box, Joined(*need, box, program_.tensors[out].shape));
        }
        need = box;
      }
    }
    if (!need) {
      // Nothing here reads this result: the same tasks compute it if its axes match the main stage's.
      ASSIGN_OR_RETURN(need, MatchingBox(boxes[n - 1], stages_[s]));
    }
    ASSIGN_OR_RETURN(boxes[s], PhysicalBox(stages_[s], *need));
    if (halos_ == Halos::kRecomputed && BoxIsEmpty(boxes[s])) {
      return absl::FailedPreconditionError(absl::StrCat("the windows over '", program_.tensors[te.outputs[0]].name,
                                                        "' lie in padding, so that no task reads it"));
    }
    if (halos_ == Halos::kRecomputed) boxes[s] = Inside(std::move(boxes[s]), te);
  }
  return boxes;
}

absl::StatusOr<te::Box> TaskBoxes::Joined(const te::Box& a, const te::Box& b, const Shape& shape) const {
  absl::StatusOr<te::Box> hull = te::Hull(a, b);
  if (hull.ok() || halos_ == Halos::kRefused) return hull;
  // The box of one reader was moved and that of another was not, so their distance depends on the task.
  te::Box joined;
  for (size_t d = 0; d < a.size(); ++d) {
    if (const absl::StatusOr<te::Box> one = te::Hull({a[d]}, {b[d]}); one.ok()) {
      joined.push_back((*one)[0]);
      continue;
    }
    const std::optional<te::Span> span = te::HullInside(a[d], b[d], shape[d]);
    if (!span) return hull;
    joined.push_back(*span);
  }
  return joined;
}

// Moves a box inwards where it leaves the stage's domain: computing a few elements again costs less than loops that are
// cut short, whose rows a register tile may not divide. A box that cannot be moved is left to LimitOf and Check.
te::Box TaskBoxes::Inside(te::Box box, const te::Te& te) const {
  for (size_t d = 0; d < box.size(); ++d) {
    const int64_t extent = te.axes[d].extent;
    if (const std::optional<te::Span> moved = te::MovedInside(box[d], extent)) box[d] = *moved;
  }
  return box;
}

absl::StatusOr<te::Box> TaskBoxes::MatchingBox(const te::Box& main_box, const PhysicalTe& other) const {
  const te::Te& main = stages_.back().te;
  if (main.axes.size() != other.te.axes.size())
    return absl::FailedPreconditionError("the results differ in rank, so they cannot share a grid");
  te::Box box;
  for (size_t d = 0; d < main_box.size(); ++d) {
    const bool shared = main_box[d].length < main.axes[d].extent;
    if (main.axes[d].extent != other.te.axes[d].extent && shared) {
      return absl::FailedPreconditionError("the results differ in extents, so they cannot share a grid");
    }
    box.push_back(shared ? main_box[d] : te::Span{Index(0), other.te.axes[d].extent});
  }
  if (!(layout_of_(main.outputs[0]) == layout_of_(other.te.outputs[0]))) {
    return absl::FailedPreconditionError("the results differ in layout, so they cannot share a grid");
  }
  // The box is over the main stage's physical axes, but the caller takes it as logical; both agree for plain layouts
  // only.
  if (!layout_of_(other.te.outputs[0]).plain())
    return absl::FailedPreconditionError("several results share a grid only if they are row-major");
  return box;
}

// Turns the logical box of a stage's output into a box over the stage's physical axes.
absl::StatusOr<te::Box> TaskBoxes::PhysicalBox(const PhysicalTe& stage, const te::Box& logical) const {
  const Layout layout = layout_of_(stage.te.outputs[0]);
  if (layout.plain()) return logical;
  if (layout.axis_last()) return layout.MoveLast(logical);
  te::Box box = logical;
  const te::Span& span = logical[layout.axis];
  const Index origin = te::FloorDiv(span.origin, layout.block);
  if (!(origin * layout.block == span.origin))
    return absl::FailedPreconditionError("the part that a task needs begins inside a block of channels");
  box[layout.axis] = {origin, (span.length + layout.block - 1) / layout.block};
  box.push_back({Index(0), layout.block});
  return box;
}

absl::Status TaskBoxes::Check(const std::vector<te::Box>& boxes, const std::vector<GridAxis>& grid) const {
  double tasks = 1;
  std::vector<Axis> numbers;
  for (const GridAxis& shared : grid) {
    tasks *= static_cast<double>(shared.number.extent);
    numbers.push_back(shared.number);
  }
  const double total = Work();
  for (size_t s = 0; s < stages_.size(); ++s) {
    double box_points = 1, points = 1;
    std::vector<int64_t> extents;
    bool leaves = false;
    for (size_t d = 0; d < boxes[s].size(); ++d) {
      const te::Span& span = boxes[s][d];
      const int64_t extent = stages_[s].te.axes[d].extent;
      extents.push_back(extent);
      points *= static_cast<double>(extent);
      Axis number{-1, 1};
      if (LimitOf(span, extent) && IsBlock(span, &number)) {
        box_points *= static_cast<double>(extent) / static_cast<double>(number.extent);
        continue;
      }
      box_points *= static_cast<double>(span.length);
      const te::Interval origins = span.origin.Range();
      const bool stays = halos_ == Halos::kRecomputed ? te::LiesInside(span, extent)
                                                      : origins.lo >= 0 && origins.hi + span.length <= extent;
      leaves = leaves || !stays;
    }
    const double factor = box_points * tasks / std::max(1.0, points);
    if (LiveOut(s)) {
      if (factor > kRecompute) {
        return absl::FailedPreconditionError(absl::StrCat("the tasks would compute a result ", factor, " times"));
      }
      if (!te::Covers(boxes[s], extents, numbers)) {
        return absl::FailedPreconditionError("the tasks would leave out elements of a result");
      }
    } else if (halos_ == Halos::kRefused && factor > kRecompute && Work(s) * (factor - 1) > kSmallShare * total) {
      return absl::FailedPreconditionError(absl::StrCat("the tasks would compute a stage ", factor, " times"));
    }
    if (leaves) return absl::FailedPreconditionError("a task would read outside of its tensor");
  }
  return absl::OkStatus();
}

std::vector<TaskBoxes::Read> TaskBoxes::ReadsOf(size_t stage, const te::Box& box) const {
  std::vector<Read> reads;
  for (TensorId tensor : facts_[stage].reads) {
    const bool inside = std::any_of(stages_.begin(), stages_.end(), [&](const PhysicalTe& other) {
      const std::vector<TensorId>& outputs = other.te.outputs;
      return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
    });
    if (inside) continue;
    const Shape& shape = program_.tensors[tensor].shape;
    const absl::StatusOr<te::Box> box_read = te::RequiredBox(stages_[stage].te, box, tensor, shape);
    double elements = static_cast<double>(NumElements(shape));
    if (box_read.ok()) {
      double product = 1;
      for (const te::Span& span : *box_read) product *= static_cast<double>(span.length);
      elements = std::min(elements, product);
    }
    reads.push_back({tensor, elements, ReadsAlongReduction(stages_[stage].te, tensor)});
  }
  return reads;
}

}  // namespace fusion
