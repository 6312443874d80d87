// Boxes of a stitched task (compiler/schedule/README.md, "Tile and stitch"): the tasks share out the last stage's axes,
// one point or a tile of points each, and bounds inference finds what every earlier stage must compute for these
// points.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_TASK_BOXES_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_TASK_BOXES_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/te/program/program.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {

// An axis of the last stage that tasks share out in tiles of `block` points. `number` counts the tiles; it is the axis
// itself where a tile is one point.
struct GridAxis {
  te::Axis axis;
  int64_t block = 1;
  te::Axis number;
};

// Returns the axis in tiles of `block` points, the last of which may be shorter.
GridAxis InBlocks(const te::Axis& axis, int64_t block, AxisSource* axes);

// The way of a task where a stage's window reaches into its neighbours' parts (a halo), or out of its tensor.
enum class Halos : uint8_t {
  kRefused,    // no task computes what another one computes, but for a small amount
  kRecomputed  // each task computes its halo; the caller weighs what that costs
};

class TaskBoxes {
 public:
  // `stages` are in order, the main one last. `live_out`: results that are stored whole. All arguments must outlive
  // this.
  TaskBoxes(const te::Program& program, const std::vector<PhysicalTe>& stages, const LayoutOf& layout_of,
            const std::set<te::TensorId>& live_out, Halos halos = Halos::kRefused);

  const te::Program& program() const { return program_; }
  const std::vector<PhysicalTe>& stages() const { return stages_; }
  bool LiveOut(size_t stage) const { return facts_[stage].live_out; }
  double Work(size_t stage) const { return facts_[stage].work; }  // WorkOf the stage's expression
  double Work() const;
  // The last stage that reads an output of this one; the stage itself if none does.
  size_t LastReader(size_t stage) const { return facts_[stage].last_reader; }

  // Returns a box for each stage, over its physical axes. With halos, a box that leaves its tensor in tasks at a border
  // is moved inwards there: these tasks compute elements that none of them needs, but nothing outside of the tensor,
  // and a reader's padded loads keep their tests. Fails with FAILED_PRECONDITION when
  // - some stage has no box of constant size,
  // - tasks leave out elements of a result,
  // - tasks would compute elements of a result more than once, or, without halos, those of another stage beyond a
  //   small amount,
  // - a box leaves its tensor and cannot be moved,
  // - with halos, no task reads anything of a stage.
  absl::StatusOr<std::vector<te::Box>> For(const std::vector<GridAxis>& grid) const;

  // The number of real points of a span that runs past `extent` in the last task; nullopt where it does not.
  static std::optional<te::Index> LimitOf(const te::Span& span, int64_t extent);

  // The elements that one task reads, for a stage, of tensors that no stage makes.
  struct Read {
    te::TensorId tensor;
    double elements;
    bool along_reduction;  // neighbours of a row are summed, so they do not lie along lanes
  };
  std::vector<Read> ReadsOf(size_t stage, const te::Box& box) const;

 private:
  absl::StatusOr<std::vector<te::Box>> Infer(const std::vector<GridAxis>& grid) const;
  absl::StatusOr<te::Box> Joined(const te::Box& a, const te::Box& b, const Shape& shape) const;
  te::Box Inside(te::Box box, const te::Te& te) const;
  absl::StatusOr<te::Box> MatchingBox(const te::Box& main_box, const PhysicalTe& other) const;
  absl::StatusOr<te::Box> PhysicalBox(const PhysicalTe& stage, const te::Box& logical) const;
  absl::Status Check(const std::vector<te::Box>& boxes, const std::vector<GridAxis>& grid) const;

  const te::Program& program_;
  const std::vector<PhysicalTe>& stages_;
  const LayoutOf& layout_of_;
  const Halos halos_;
  // Facts about each stage, computed once because grids are tried by the dozen.
  struct Facts {
    std::set<te::TensorId> reads;
    bool live_out = false;
    double work = 0;
    size_t last_reader = 0;
  };
  std::vector<Facts> facts_;
};

// Multiply-adds, or what costs as much: for one point of a te's domain, and for all points.
double CostPerPoint(const te::Te& te);
double WorkOf(const te::Te& te);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_TASK_BOXES_H_
