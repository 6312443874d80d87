// Minimal filtering: a reduction over the taps of a window needs fewer products when several neighbouring results are
// computed at once (Winograd, Arithmetic Complexity of Computations, 1980; for convolutions: Lavin and Gray, Fast
// Algorithms for Convolutional Neural Networks, CVPR 2016). F(m, r) takes m + r - 1 products for m results of r taps
// instead of m·r; over two axes at once the saving is squared.
//
// It reassociates sums, and rounding errors grow through the transforms: with F(4, 3) over two axes the errors of the
// result are about 2.5 times those of the plain sum, and they grow with m. A window whose ErrorGrowth exceeds a bound
// is refused.
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_MINIMAL_FILTERING_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_MINIMAL_FILTERING_H_

#include <optional>
#include <utility>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/te/program/program.h"
#include "runtime/base/tensor.h"

namespace fusion {

// The matrices of F(m, r), n = m + r - 1: y = outᵀ·[(filter·g) ⊙ (inᵀ·d)] for r taps g and n inputs d. Row-major f32.
struct FilterMatrices {
  int64_t outputs = 0, taps = 0;
  Tensor in;      // [n, n]
  Tensor filter;  // [n, r]
  Tensor out;     // [m, n]
};

// Computes the matrices by Toom and Cook, from finite points and infinity; outputs + taps <= 9.
FilterMatrices MakeFilterMatrices(int64_t outputs, int64_t taps);

// The factor by which a relative error of a product grows in the result, root mean square, over one axis: 1.3 for F(2,
// 3), 3.2 for F(4, 3), 6.8 for F(6, 3).
double ErrorGrowth(const FilterMatrices& matrices);

// PlainSums: the results of a replaced reduction once more, by plain sums over taps that are recovered from the
// transformed filter. An infinity or a NaN of the input is in every transformed element of its tile, but in few of them.
//
// The first and the last row of a transformed filter are taps, up to a factor, and the middle tap is half the
// difference of the rows of the points 1 and -1. A tap below the rounding of these rows counts as zero, so that
// 0 * infinity stays NaN.
struct PlainSums {
  te::Te te;               // with the axes, the epilogue and the output of the reduction that was replaced
  te::TensorId sums = -1;  // what the last transform of the filtered program reads
  te::TensorId filter = -1;
};

// A program in which one reduction is replaced, and the constant that its filter has become.
struct FilteredProgram {
  te::Program program;
  te::TensorId filter = -1;  // the transformed `source`, which it replaces
  te::TensorId source = -1;
  te::TensorId result = -1;  // what the reduction computes, in the program before and in this one
  movement::ConstantTransform transform;
  PlainSums plain;
};

// Replaces the first f32 product of a window and a constant filter that qualifies by five expressions (three for one
// axis): the inputs are transformed axis by axis, multiplied, and the results are transformed back. Returns nullopt
// where no product qualifies. Reasons are:
// - taps other than 3,
// - strides,
// - errors that grow too much,
// - extents of which the last tile would leave much unused,
// - too few channels to gain anything.
std::optional<FilteredProgram> FilterMinimally(const te::Program& program, int64_t outputs);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_MINIMAL_FILTERING_H_
