// Boxes of a stitched task (compiler/schedule/README.md, "Tile and stitch"): the last stage's axes are shared out among
// the tasks, one point or a block of points each, and bounds inference finds what every earlier stage must compute for
// that.
#ifndef FUSION_COMPILER_SCHEDULE_TASK_BOXES_H_
#define FUSION_COMPILER_SCHEDULE_TASK_BOXES_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/nest.h"
#include "compiler/te/bounds.h"
#include "compiler/te/program.h"

namespace fusion {

// An axis of the last stage that tasks share out. `number` counts the blocks; it is the axis itself where a block is
// one point.
struct GridAxis {
  te::Axis axis;
  int64_t block = 1;
  te::Axis number;
};

// The axis in blocks of `block` points, the last of which may be shorter.
GridAxis InBlocks(const te::Axis& axis, int64_t block, AxisSource* axes);

class TaskBoxes {
 public:
  // `stages`: in order, the last is the main one. `live_out`: results that are stored whole. All must outlive it.
  TaskBoxes(const te::Program& program, const std::vector<PhysicalTe>& stages, const LayoutOf& layout_of,
            const std::set<te::TensorId>& live_out);

  const te::Program& program() const { return program_; }
  const std::vector<PhysicalTe>& stages() const { return stages_; }
  bool LiveOut(size_t stage) const { return facts_[stage].live_out; }
  double Work(size_t stage) const { return facts_[stage].work; }  // WorkOf its expression
  double Work() const;
  // The last stage that reads an output of this one; itself if none does.
  size_t LastReader(size_t stage) const { return facts_[stage].last_reader; }

  // Parallel to the stages, over each one's physical axes. FAILED_PRECONDITION when some stage has no box of constant
  // size; when tasks leave elements of a result out; when some stage would compute elements more than once, beyond what
  // is small; when a box leaves its tensor.
  absl::StatusOr<std::vector<te::Box>> For(const std::vector<GridAxis>& grid) const;

  // Where a span runs past `extent` in the last task: how many of its points are real.
  static std::optional<te::Index> LimitOf(const te::Span& span, int64_t extent);

  // Elements that one task reads, for a stage, of tensors that no stage makes.
  struct Read {
    te::TensorId tensor;
    double elements;
    bool along_fold;  // neighbours of a row are summed: they do not lie along lanes
  };
  std::vector<Read> ReadsOf(size_t stage, const te::Box& box) const;

 private:
  absl::StatusOr<std::vector<te::Box>> Infer(const std::vector<GridAxis>& grid) const;
  absl::StatusOr<te::Box> MatchingBox(const te::Box& main_box, const PhysicalTe& other) const;
  absl::StatusOr<te::Box> PhysicalBox(const PhysicalTe& stage, const te::Box& logical) const;
  absl::Status Check(const std::vector<te::Box>& boxes, const std::vector<GridAxis>& grid) const;

  const te::Program& program_;
  const std::vector<PhysicalTe>& stages_;
  const LayoutOf& layout_of_;
  // Of each stage; grids are tried by the dozen.
  struct Facts {
    std::set<te::TensorId> reads;
    bool live_out = false;
    double work = 0;
    size_t last_reader = 0;
  };
  std::vector<Facts> facts_;
};

// Multiply-adds, or what costs as much, of a point of a stage's fold or map, and of all points.
double CostPerPoint(const te::Te& te);
double WorkOf(const te::Te& te);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TASK_BOXES_H_
