// The common part of random graphs and random models: draws shapes, values of roles and attributes, all from one seed.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_DRAWING_H_
#define FUSION_TESTS_FUZZ_GRAPHS_DRAWING_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "compiler/ops/registry/op_def.h"
#include "tests/fuzz/graphs/limits.h"

namespace fusion::fuzz {

class Drawing {
 public:
  Drawing(uint64_t seed, const GraphLimits& limits);

  const GraphLimits& limits() const { return limits_; }
  uint64_t Bits() { return random_(); }
  int Below(int64_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[Below(static_cast<int64_t>(all.size()))];
  }

  DType AnyType() { return static_cast<DType>(Below(kNumDTypes)); }
  DType DrawType() { return OneOf(dtypes_); }  // few in a graph, so that operands match
  int64_t Extent() { return Chance(0.005) ? 0 : Chance(0.2) ? Between(1, 5) : OneOf(extents_); }
  // Draws small numbers of nodes more often than large ones.
  int NodeCount();

  Shape AnyShape();
  // Draws a shape that may suit an operand whose neighbour has shape `first`: most operators relate the extents of
  // their operands.
  Shape RelatedShape(const Shape& first);
  // Makes extents smaller until a value of the shape has no more elements than the limits allow.
  void Limit(Shape* shape);

  std::vector<int64_t> SomeAxes(int64_t rank, int64_t count);
  std::vector<int64_t> SomeExtents(Shape shape);
  // Returns the value of an operand with this role whose first neighbour has shape `first`, or nothing for a data
  // operand. `count`: the number of axes, and of values that go with them, in this proposal.
  std::optional<Tensor> RoleValue(ops::InputRole role, const Shape& first, int64_t count, DType scalar_type);
  std::optional<ecg::Attribute> DrawAttribute(const ops::AttrSpec& spec, int64_t rank);

 private:
  std::mt19937_64 random_;
  const GraphLimits limits_;
  std::vector<int64_t> extents_;  // few in a graph, so that operands match
  std::vector<DType> dtypes_;
};

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_DRAWING_H_
