// How a register tile can use the loads of a reduction's body: read off their addresses, never off an operator.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_TILE_OPERANDS_H_
#define FUSION_COMPILER_SCHEDULE_TILE_TILE_OPERANDS_H_

#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

struct Operand {
  const te::ScalarNode* node;
  te::Index address;
  int buffer;
  DType dtype;
};

std::vector<Operand> BodyLoads(const Nest& nest);

// Can the operand be packed when the bundle is made? It is an unpacked constant, and no data decides where it is read
// (the weights of an expert that a router picks).
bool IsPackable(const Operand& load, const movement::Kernel& kernel);

// Is the operand scratch of the task, which may be longer than what is computed into it? Lanes past the end of the
// results may then read whatever lies there.
bool CanHaveRoom(const Operand& load, const movement::Kernel& kernel);

double Extent(const std::vector<te::Axis>& axes);  // the product

// A runtime operand that fewer rows than this read again is not worth packing.
inline constexpr int64_t kPackReuse = 8;

// The number of results that read the same element of `load`, counting one for each vector of `lane`.
double Reuse(const Operand& load, const te::Axis& lane, const std::vector<te::Axis>& spatial);

// Bytes of `load` that are touched while `axes` run; overlapping windows count once.
double TouchedBytes(const Operand& load, const std::vector<te::Axis>& axes);

// The axes in the operands' addresses that are not the nest's: those of the grid around the task.
std::vector<te::Axis> AxesOutside(const std::vector<Operand>& loads, const Nest& nest);

// Does the reduction walk through the operand, but along no axis from one element to the next?
bool StridesOverReduction(const Nest& nest, const Operand& load);

// Does each step of the reduction find the operand half a page or more from the last step? Few lines of the first-level
// cache can hold such elements, since their addresses differ by nearly a multiple of a power of two, and each lies in
// another page.
bool StepsFar(const Nest& nest, const Operand& load);

// How the operand is read if `lane` becomes the lanes.
enum class LaneUse { kBroadcast, kVector, kPackConstant, kPackRuntime, kImpossible };
LaneUse UseOfLanes(const Operand& load, const te::Axis& lane, int64_t lanes, const std::vector<te::Axis>& spatial,
                   const movement::Kernel& kernel);

// Are both factors of the reduction's body bytes, one broadcast and the other moving with the lanes (and packed)?
bool IsDotProduct(const Nest& nest, const te::Axis& lane, const te::Axis& row, const movement::Kernel& kernel);

// A reduction axis along which the operand that moves with `row` finds what the neighbouring rows read.
struct Slide {
  te::Axis axis{-1, 1};  // id -1: there is none
  int64_t row_stride = 0, tap_stride = 0;
  bool weighted = false;  // the product's other factor moves with the axis
};
// Finds such an axis of an f32 reduction whose body is that operand, or its product with one that does not move with
// the rows.
Slide FindSlide(const Nest& nest, const te::Axis& lane, const te::Axis& row);

// Lanes past a blocked tensor's extent are computed like the others and stored as zero. Would they read past a buffer?
bool MaskedLanesReadPast(const Nest& nest, const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_TILE_OPERANDS_H_
