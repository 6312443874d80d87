// Index expressions: quasi-affine integers over axes, kept in a normal form so that equality, contiguity and bounds are
// decided by inspection. An Index is a sum c0 + Σ c_i·term_i, terms ordered and distinct; a term is an axis, a floor
// division or modulo of an Index by a positive constant, or a (data-dependent) load from an integer tensor.
//
// Every constructor normalises, with the ranges of the axes, by:
//   x//c → k and x%c → x−kc when kc ≤ x < (k+1)c;   (c·y+z)//c → y + z//c;   (c·y+z)%c → z%c;
//   c·(x//c) + x%c → x;   (x//a)//b → x//(ab);   (x%ab)%a → x%a;   (x%ab)//a → (x//a)%b;
//   and for 0 ≤ z < g:  (g·y+z)//(g·k) → y//k   and   (g·y+z)%(g·k) → g·(y%k) + z     (every g, largest first).
// The inverses of these rules inside sums, with which differences cancel, are listed at Recombine in index.cc.
//
// One missing rule silently turns vector stores into scalar scatters. index_test.cc therefore checks contiguity, not
// only values.
#ifndef FUSION_COMPILER_TE_INDEX_INDEX_H_
#define FUSION_COMPILER_TE_INDEX_INDEX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fusion::te {

using TensorId = int;

// A loop variable over [0, extent). Ids are unique within a Program (or a schedule).
struct Axis {
  int id = -1;
  int64_t extent = 0;
};

struct Interval {  // closed
  int64_t lo = 0, hi = 0;
};

enum class TermKind : uint8_t { kAxis, kFloorDiv, kMod, kLoad };

class Index;

struct Term {
  TermKind kind = TermKind::kAxis;
  Axis axis;                           // kAxis
  std::shared_ptr<const Index> inner;  // kFloorDiv, kMod (shared: immutable)
  int64_t divisor = 1;                 // kFloorDiv, kMod; > 0
  TensorId tensor = -1;                // kLoad: an integer tensor
  std::vector<Index> indices;          // kLoad
  Interval load_range;                 // kLoad: declared value range of the loaded integers
};

class Index {
 public:
  Index() = default;                          // 0
  Index(int64_t constant) : c0_(constant) {}  // NOLINT: integers are indices
  Index(int constant) : c0_(constant) {}      // NOLINT
  Index(const Axis& axis);                    // NOLINT
  // `range` is the caller's promise about the loaded values: the te clamps or wraps them before.
  static Index Load(TensorId tensor, std::vector<Index> indices, Interval range);

  Index operator+(const Index& other) const;
  Index operator-(const Index& other) const;
  Index operator*(int64_t factor) const;

  int64_t constant() const { return c0_; }
  struct Part {
    Term term;
    int64_t coefficient;
  };
  const std::vector<Part>& parts() const { return parts_ == nullptr ? kNoParts : *parts_; }
  // Returns the sum of `constant` and `parts`, whose terms come from other indices and may repeat in any order. Long
  // sums should be built with it: it normalises once instead of once for each +.
  static Index FromParts(int64_t constant, std::vector<Part> parts);
  bool IsConstant() const { return parts_ == nullptr; }
  // Exact for affine forms, conservative otherwise.
  Interval Range() const;
  bool operator==(const Index& other) const;
  // A total, deterministic order.
  int Compare(const Index& other) const;

  bool UsesAxis(int axis_id) const;
  bool HasLoad() const;
  // Returns whether the index is affine in the axis (no floordiv, mod or load contains it), and its coefficient.
  bool AffineIn(int axis_id, int64_t* coefficient) const;

 private:
  friend Index FloorDiv(const Index&, int64_t);
  friend Index Mod(const Index&, int64_t);
  static const std::vector<Part> kNoParts;
  int64_t c0_ = 0;
  std::shared_ptr<const std::vector<Part>> parts_;  // shared by copies, because an index is mostly copied
};

Index FloorDiv(const Index& x, int64_t divisor);  // divisor > 0
Index Mod(const Index& x, int64_t divisor);       // divisor > 0, result in [0, divisor)

// Replaces axes; an axis for which `map` returns nullptr stays. The result is normalised again.
Index Substitute(const Index& x, const std::function<const Index*(const Axis&)>& map);
// Renumbers tensors in loads.
Index MapTensors(const Index& x, const std::function<TensorId(TensorId)>& map);
void CollectAxes(const Index& x, std::vector<Axis>* axes);  // distinct, first-use order

// Returns the row-major address of `indices` in a box of `extents` (elements).
Index Linearize(const std::vector<Index>& indices, const std::vector<int64_t>& extents);
// Returns the row-major coordinates of `linear` in `extents`.
std::vector<Index> Delinearize(const Index& linear, const std::vector<int64_t>& extents);

// Let axis v, whose extent is a multiple of `lanes`, be split as v = lanes·q + l. Returns whether, within each vector,
// the address advances by exactly 1 (contiguous) or by 0 (invariant) per l; `kOther` otherwise.
enum class LaneAccess { kInvariant, kContiguous, kOther };
LaneAccess ClassifyLanes(const Index& address, const Axis& axis, int64_t lanes);

// Prints "2*i0 + i1//4 + 3" (// and % bind tighter than *). `axis_name` names axes (default: i<id>), `tensor_name` the
// tensors of loads (default: %t<id>), printed as %t<id>[...].
std::string ToString(const Index& x, const std::function<std::string(int axis_id)>& axis_name = {},
                     const std::function<std::string(TensorId)>& tensor_name = {});

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_INDEX_INDEX_H_
