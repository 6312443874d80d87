// Two-phase reductions: a reduction that reads what an earlier phase makes is computed in two parts. The tasks of the
// earlier phase reduce chunks of what they have just made, and the later phase combines the chunks' results. A product
// followed by a norm is the main case: the product's tiles emit partial results of their rows, so that the later phase
// need not read the whole product for the norm's statistics before it reads it again to normalise it.
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_REDUCTIONS_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_REDUCTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "compiler/te/program/program.h"

namespace fusion {

struct SplitProgram {
  te::Program program;
  std::set<te::TensorId> partials;  // results of chunks: the barrier stands between them and their readers
  int64_t chunks = 1;               // the most that a reduction is cut into
};

// Is the hand-over of the tensor to this expression cut by a barrier?
using CutTest = std::function<bool(te::TensorId tensor, const te::Te& reader)>;

struct Chunks {
  int64_t count = 1;  // at least; as few more as let chunks be equally long
  int64_t least = 1;  // the fewest terms of one
};

// Splits each reduction that reads a tensor across a barrier, in chunks of its longest axis. Returns nullopt where that
// splits nothing.
//
//   %m = max(k<512) x(k)               %p[s<4] = max(k<128) x(128 s + k);   %m = max(s<4) %p[s]      likewise sum, min
//   %e = sum(k<512) exp(x(k) − %m)     %q[s] = sum(k<128) exp(x − %p[s]);  %e = sum(s<4) exp(%p[s] − %m) %q[s]
//   %v = sum(k<512) (x(k) − mean)²     %q[s] = sum(k<128) (x − %μ[s])²;     %v = sum(s<4) %q[s] + 128 (%μ[s] − mean)²
//
// The last two depend on another reduction over the same values, of which each chunk takes its own result first: there
// is no E[x²] − E[x]², which would lose the variance of values with a large mean. A reduction that depends on another
// one in any other way stays whole. Chunks are combined in a fixed order, without atomics, and their number
// depends on nothing but the program and `wanted`, so results are the same for any number of threads.
std::optional<SplitProgram> SplitReductions(const te::Program& program, const CutTest& is_cut, const Chunks& wanted);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_REDUCTIONS_H_
