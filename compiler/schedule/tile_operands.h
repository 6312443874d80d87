// What the loads of a fold's body are to a register tile: read off their addresses, never off an operator.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_OPERANDS_H_
#define FUSION_COMPILER_SCHEDULE_TILE_OPERANDS_H_

#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest.h"

namespace fusion {

struct Operand {
  const te::ScalarNode* node;
  te::Index address;
  int buffer;
  DType dtype;
};

std::vector<Operand> BodyLoads(const Nest& nest);

double Extent(const std::vector<te::Axis>& axes);  // the product

// A runtime operand that fewer rows than this read again is not worth packing.
inline constexpr int64_t kPackReuse = 8;

// Elements of the result that read the same element of `load`, one vector of `lane` apart.
double Reuse(const Operand& load, const te::Axis& lane, const std::vector<te::Axis>& spatial);

// Bytes of the elements of `load` touched when `axes` run; windows that overlap count once.
double TouchedBytes(const Operand& load, const std::vector<te::Axis>& axes);

// The axes in the operands' addresses that are none of the nest's: of the grid around the task.
std::vector<te::Axis> AxesOutside(const std::vector<Operand>& loads, const Nest& nest);

// The fold walks through the operand, but along no axis from one element to the next.
bool StridesOverFold(const Nest& nest, const Operand& load);

// Each step of the fold finds the operand half a page and more from the last: few lines of the first-level cache can
// hold them, since their addresses differ by multiples of a power of two or nearly so, and each is another page.
bool StepsFar(const Nest& nest, const Operand& load);

// How an operand would be had if `lane` were the lanes.
enum class LaneUse { kBroadcast, kVector, kPackConstant, kPackRuntime, kImpossible };
LaneUse UseOfLanes(const Operand& load, const te::Axis& lane, int64_t lanes, const std::vector<te::Axis>& spatial,
                   const movement::Kernel& kernel);

// Are both factors of the fold's body bytes, one broadcast and the other moving with the lanes (and packed)?
bool IsDotProduct(const Nest& nest, const te::Axis& lane, const te::Axis& row, const movement::Kernel& kernel);

// A fold's axis along which the operand that moves with `row` finds what the neighbouring rows read.
struct Slide {
  te::Axis axis{-1, 1};  // id -1: there is none
  int64_t row_stride = 0, tap_stride = 0;
  bool weighted = false;  // the other factor of a product moves with the axis
};
// In f32, where the body is that operand or its product with one that stands still with the rows.
Slide FindSlide(const Nest& nest, const te::Axis& lane, const te::Axis& row);

// Lanes past a blocked tensor's extent are computed like the others and stored as zero. Would they read past a buffer?
bool MaskedLanesReadPast(const Nest& nest, const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_OPERANDS_H_
