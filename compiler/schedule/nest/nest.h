// Nest: one stage as a loop nest over flat buffers, before vectorisation is chosen. It is made from a te by giving
// every tensor its layout or scratch box; axes of extent 1 are removed, and adjacent axes that every address walks as
// one are fused.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_NEST_H_
#define FUSION_COMPILER_SCHEDULE_NEST_NEST_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/layout/layout.h"
#include "compiler/movement/kernel.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Hands out axis ids within one kernel.
class AxisSource {
 public:
  explicit AxisSource(int next) : next_(next) {}
  te::Axis New(int64_t extent) { return te::Axis{next_++, extent}; }
  int next() const { return next_; }

 private:
  int next_;
};

// A te whose spatial axes follow the physical order of its output's layout; the loads are still logical.
// coordinates[o][d]: logical coordinate d of output o at a domain point.
struct PhysicalTe {
  te::Te te;
  std::vector<std::vector<te::Index>> coordinates;
  // For a blocked output whose logical extent is no multiple of the layout block: lanes with mask_index >= mask_limit
  // hold zero.
  te::Index mask_index;
  int64_t mask_limit = -1;
};

using LayoutOf = std::function<Layout(te::TensorId)>;

// All outputs of the te must share one layout.
absl::StatusOr<PhysicalTe> MakePhysical(const te::Te& te, const LayoutOf& layout_of, AxisSource* axes);

// Splits a spatial axis i into (i//d, i%d) where the body divides it by a d >= min_divisor that divides its extent.
void SplitDividedAxes(PhysicalTe* physical, AxisSource* axes, int64_t min_divisor);

struct Nest {
  std::string label;
  std::vector<te::Axis> axes;  // spatial, outermost first
  std::optional<te::Reduction> reduction;
  std::vector<te::Scalar> body, then;
  std::vector<movement::Store> stores;
  std::vector<DType> store_types;
  te::Index mask_index;
  int64_t mask_limit = -1;
  // Holds for real elements only: reduction axes rounded up to whole layout blocks run past it, where a packed operand
  // is zero.
  te::Pred padding;
  // By axis: the limit of an axis that has fewer iterations in the last task of a grid that does not divide, or in the
  // last iteration of another axis, which must be a loop around it.
  std::map<int, te::Index> limits;
  // Axes that are not split, although addresses take remainders of them: rows of rings (movement::Ring), which wrap
  // around where they like.
  std::set<int> unsplit;
  bool streaming_stores = false;  // movement::BlockedTranspose::streaming_stores, where that is possible
  bool LimitsUse(const te::Axis& axis) const;

  // Applies a substitution of axes everywhere.
  void Substitute(const std::function<const te::Index*(const te::Axis&)>& map);
  // Every index of the nest: load and store addresses, predicates, FromIndex.
  void ForEachIndex(const std::function<void(const te::Index&)>& f) const;
};

// A loop over an axis of the nest.
movement::Loop LoopOf(const Nest& nest, const te::Axis& axis);
std::optional<movement::Bound> LaneLimitOf(const Nest& nest);

// Replaces spatial and reduction axes of extent 1 by 0.
void DropUnitAxes(Nest* nest);
// Fuses adjacent spatial axes, and adjacent reduction axes, wherever no address then needs a division.
void FuseAxes(Nest* nest, AxisSource* axes);
// Splits a spatial axis i into (i//d, i%d) where addresses divide it by a d >= min_divisor that divides its extent (the
// phases of a transposed convolution, channels that a reorganisation cuts). With `cut_short` also where d does not
// divide the extent, or where the axis has a limit; i%d then has a limit.
void SplitSpatialAxes(Nest* nest, AxisSource* axes, int64_t min_divisor, bool cut_short = false);

// The treatment of products past the end of a reduction axis that is rounded up.
enum class PastEnd : uint8_t {
  kNotRounded,  // the axis is not rounded up
  kZero,        // they are 0 * 0: the operands are packed with zeros there
  kSkipped,     // a test leaves them out: one operand has elements there, which may be infinite or NaN
};
// Splits a reduction axis i into (i//d, i%d), the latter innermost, where addresses divide it by d (a blocked operand).
// An extent that is no multiple of d is rounded up where `past_end(axis)` allows that. Returns whether an axis was.
bool SplitReductionAxes(Nest* nest, AxisSource* axes, const std::function<PastEnd(const te::Axis&)>& past_end);

// Does a condition of the first body, or a value made from an index there, use the axis?
bool PredUses(const Nest& nest, int axis_id);
// The body with `to` in place of every load equal to `from`.
te::Scalar ReplaceLoad(const te::Scalar& body, const te::ScalarNode* from, const te::Scalar& to);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_NEST_H_
