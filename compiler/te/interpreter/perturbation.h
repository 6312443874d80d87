// Kernels of Monte Carlo arithmetic, in which results move at random as far as kernels may differ from each other.
#ifndef FUSION_COMPILER_TE_INTERPRETER_PERTURBATION_H_
#define FUSION_COMPILER_TE_INTERPRETER_PERTURBATION_H_

#include "compiler/te/interpreter/lanes.h"

namespace fusion::te::lanes {

// Monte Carlo arithmetic (interpreter.h): the double a, computed in `dtype`, moves at random by up to fimm units in the
// last place of the type's arithmetic (f16 and bf16 compute in f32) and is rounded to that type. A product or
// quotient (fimm 1) of few bits does not move, because it is exact. An elementary function (fimm > 1) always moves: it
// promises no exact values. In every other run it moves equal results alike, as a machine's function does: many results
// that saturate are then all below 1, or all above.
LaneKernel PerturbKernel(DType dtype);
// The same for a = b + c (imm >= 0) or a = b - c (imm < 0). A sum of few bits moves, too, if it has lost an operand's
// bits: 0.25 + 1e-30 is 0.25, but not exactly.
LaneKernel PerturbSumKernel(DType dtype);
// The same for a product in a type narrower than f64. In runs that fuse it with the addition behind it (a fused
// multiply-add), a product beyond the type's range stays finite, so that adding an infinity to it is not NaN.
LaneKernel PerturbNarrowProductKernel();
// The same for a = b * c in f64. Exactness is computed there, because rounding may leave few bits, too.
LaneKernel PerturbProductKernel();
// Tracks a product of many factors in Monte Carlo arithmetic. Where `select` (c) is set, dst = a·|b| if |b| is above 1
// (below 1 for `above` = false). A NaN counts as above 1.
LaneKernel PartialProductKernel(bool above);
// Shows that another order of the factors could leave the type's range on the way: then dst is NaN at random, or zero
// where a is NaN although no factor is. Otherwise dst = a. b and c are the products of the factors above 1 and below 1.
LaneKernel AnyOrderProductKernel(DType dtype);
// The same for a sum. PartialSum: |dst| = |a| + |b| where b is finite; dst is negative (or -0) once some b was not.
// AnyOrderSum: dst = a, or at random NaN where |b|, the sum of all finite magnitudes, leaves the type's range: the
// finite summands may leave it with the sign opposite to that of an infinite summand. Without one, where b is not
// negative, the sum may be an infinity of either sign, too, and is never NaN in every other run: a sum of many sums
// would always be.
LaneKernel PartialSumKernel();
LaneKernel AnyOrderSumKernel(DType dtype);
// Exchanges dst and a, both of which it writes, in half of the lanes, at random. Two sums between which this happens
// take the summands in another order, and what one of them absorbs may have been kept by the other.
void SwapAtRandom(State& s, const Inst& in, int n);
// A product with the zero of a padded load. A kernel may leave padding out, so in every other run 0 * inf and 0 * NaN
// are 0.
LaneKernel PaddedProductKernel();
// Min or Max of floats. Either of two zeros may be the result.
LaneKernel RandomZeroKernel(Op op);
// Like RoundKernel, but rounds up or down at random where the value is nearer to the middle of its neighbours than to
// one of them.
LaneKernel RandomRoundKernel(DType dtype);
// Like DoubleToIntKernel, but gives any number where the value does not fit `dtype` or is NaN.
LaneKernel RandomDoubleToIntKernel(DType dtype);

}  // namespace fusion::te::lanes

#endif  // FUSION_COMPILER_TE_INTERPRETER_PERTURBATION_H_
