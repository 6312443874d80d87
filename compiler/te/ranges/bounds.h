// Bounds inference over boxes (explained in compiler/te/README.md): the part of a producer that a consumer's box needs.
#ifndef FUSION_COMPILER_TE_RANGES_BOUNDS_H_
#define FUSION_COMPILER_TE_RANGES_BOUNDS_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/program/program.h"

namespace fusion::te {

// One dimension of a box: [origin, origin + length). origin is an Index over tile axes only; length is a constant.
struct Span {
  Index origin;
  int64_t length = 1;
};
using Box = std::vector<Span>;

// Returns the span of values that `x` takes when each axis a for which `span_of(a)` is non-null ranges over that span.
// Axes without one are tile axes and stay symbolic in the origin. Affine terms are exact. // and % give the aligned
// hull, which is exact if origin and length are multiples of the divisor and otherwise rounded out to whole multiples
// of it. A load gives its declared range. A single index always has a constant length; only Hull can fail.
absl::StatusOr<Span> SpanOf(const Index& x, const std::function<const Span*(const Axis&)>& span_of);

// Returns the smallest box of `tensor` (of extents `shape`) that covers every load of it in `te` when the te's own axes
// range over `te_box` (parallel to te.axes) and reduction axes over their whole extent.
//   - A padded load is clipped to the tensor when the origin is constant, else left to the reader's predicate.
//   - The boxes of several loads are joined by Hull; branches of an `if` that the box rules out read nothing.
//   - A tensor that is not read has spans [0, 0).
// FAILED_PRECONDITION "length not constant: …" when two loads start at origins whose distance depends on tile axes.
absl::StatusOr<Box> RequiredBox(const Te& te, const Box& te_box, TensorId tensor, const Shape& shape);

// Returns whether the boxes that `box` becomes, as each axis of `tasks` runs over its extent, together cover all of
// [0, extents); false where that cannot be decided.
bool Covers(const Box& box, const std::vector<int64_t>& extents, const std::vector<Axis>& tasks);

// Returns the smallest box that holds both; fails as above when the symbolic difference of origins is not constant.
absl::StatusOr<Box> Hull(const Box& a, const Box& b);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RANGES_BOUNDS_H_
