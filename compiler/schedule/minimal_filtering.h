// Minimal filtering: a fold over the taps of a window needs fewer products when several neighbouring results are
// computed at once (Winograd, Arithmetic Complexity of Computations, 1980; for convolutions: Lavin and Gray, Fast
// Algorithms for Convolutional Neural Networks, CVPR 2016). F(m, r) takes m + r - 1 products for m results of r taps
// instead of m·r; over two axes at once the saving is squared.
//
// It reassociates, and rounding errors grow through the transforms: over two axes the result's are some 2.5 times those
// of the plain sum for F(4, 3), and more the larger m is. What ErrorGrowth puts beyond a bound is refused.
#ifndef FUSION_COMPILER_SCHEDULE_MINIMAL_FILTERING_H_
#define FUSION_COMPILER_SCHEDULE_MINIMAL_FILTERING_H_

#include <optional>
#include <utility>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/te/program.h"
#include "runtime/base/tensor.h"

namespace fusion {

// The matrices of F(m, r), n = m + r - 1: y = outᵀ·[(filter·g) ⊙ (inᵀ·d)] for r taps g and n inputs d. Row-major f32.
struct FilterMatrices {
  int64_t outputs = 0, taps = 0;
  Tensor in;      // [n, n]
  Tensor filter;  // [n, r]
  Tensor out;     // [m, n]
};

// By Toom and Cook, from finite points and infinity; outputs + taps <= 9.
FilterMatrices MakeFilterMatrices(int64_t outputs, int64_t taps);

// How much a relative error of a product grows in the result, root mean square, over one axis: 1.3 for F(2, 3), 3.2 for
// F(4, 3), 6.8 for F(6, 3).
double ErrorGrowth(const FilterMatrices& matrices);

// A program with a fold replaced, and the constant that the filter has become.
struct FilteredProgram {
  te::Program program;
  te::TensorId filter = -1;  // stands for `source`, transformed
  te::TensorId source = -1;
  movement::ConstantTransform transform;
};

// Replaces the first f32 product of a window and a constant filter that qualifies by five expressions (three for one
// axis): the inputs transformed axis by axis, the products, the results transformed back. nullopt: there is none: taps
// other than 3, strides, errors that grow too much, extents of which the last tile would leave much unused, or too
// few channels to gain anything.
std::optional<FilteredProgram> FilterMinimally(const te::Program& program, int64_t outputs);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_MINIMAL_FILTERING_H_
