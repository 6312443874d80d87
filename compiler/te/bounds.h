// Bounds inference over boxes (EXPLAINED in compiler/te/README.md): which part of a producer does a consumer's box
// need?
#ifndef FUSION_COMPILER_TE_BOUNDS_H_
#define FUSION_COMPILER_TE_BOUNDS_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/program.h"

namespace fusion::te {

// One dimension of a box: [origin, origin + length). origin is an Index over tile axes only; length is a constant.
struct Span {
  Index origin;
  int64_t length = 1;
};
using Box = std::vector<Span>;

// The span of values that `x` takes when each axis a for which `span_of(a)` is non-null ranges over that span (axes
// without one are tile axes and stay symbolic in the origin). Affine terms exactly; // and % by the aligned hull (exact
// if origin and length are multiples of the divisor, else rounded out by one block); a load → its declared range. A
// single index always has a constant length; only Hull can fail.
absl::StatusOr<Span> SpanOf(const Index& x, const std::function<const Span*(const Axis&)>& span_of);

// The smallest box of `tensor` (of extents `shape`) that covers every load of it in `te` when the te's own axes range
// over `te_box` (parallel to te.axes) and fold axes over their whole extent. Padded loads are clipped to the tensor
// when the origin is constant, else left to the reader's predicate. Hull over several loads; branches of an `if` that
// the box rules out read nothing. A tensor that is not read has spans [0, 0). FAILED_PRECONDITION "length not constant:
// …" when two loads start at origins whose distance depends on tile axes.
absl::StatusOr<Box> RequiredBox(const Te& te, const Box& te_box, TensorId tensor, const Shape& shape);

// Do the boxes that `box` becomes, as each axis of `tasks` runs over its extent, together hold all of [0, extents)?
// "No" where that cannot be told.
bool Covers(const Box& box, const std::vector<int64_t>& extents, const std::vector<Axis>& tasks);

// Smallest box that holds both; fails as above when the symbolic difference of origins is not constant.
absl::StatusOr<Box> Hull(const Box& a, const Box& b);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_BOUNDS_H_
