// Bounds inference on concrete boxes: the part of each operand that a part of a result needs. It is what RequiredBox
// (compiler/te/ranges/bounds.h) answers for constant origins, prepared once for an operator because GraphTurbo asks it
// for many parts of the same operators.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ACCESS_MAP_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ACCESS_MAP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "compiler/te/program/program.h"

namespace fusion::graph_turbo {

struct Range {
  int64_t begin = 0, end = 0;  // half-open
  int64_t length() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// One range a dimension; there are many boxes of tensors of few dimensions, which need no memory of their own.
using Ranges = absl::InlinedVector<Range, 4>;

// A box of a tensor. nullopt-like: `nothing` is set where no element is needed.
struct Region {
  bool nothing = true;
  Ranges ranges;

  int64_t elements() const {
    if (nothing) return 0;
    int64_t product = 1;
    for (const Range& range : ranges) product *= range.length();
    return product;
  }
  // Grows to the smallest box that holds both.
  void Join(const Region& other);
  bool operator==(const Region&) const = default;
};

Region WholeRegion(const Shape& shape);

// A part of one reduction axis.
struct ReductionPart {
  int axis = -1;  // its id; -1: no axis is limited
  Range range;
};

// The access maps of a program of tensor expressions.
class AccessMap {
 public:
  explicit AccessMap(te::Program program);

  const te::Program& program() const { return *program_; }

  // Is the input only loaded at addresses that depend on data? Then parts of it are gathered, and it is never needed as
  // a whole.
  bool IsTable(te::TensorId tensor) const;

  struct Needs {
    std::vector<Region> inputs;   // parallel to program().inputs; a tensor that is not read needs nothing
    double work = 0;              // scalar operations, a multiply-add counts as two
    std::vector<Region> tensors;  // of all tensors of the program
  };
  // `outputs` is parallel to program().outputs. An expression of which part of a result is needed computes just that
  // box. Reductions, but for `part`, and loads at addresses that depend on data need their whole range; addresses that
  // the program computes are computed as a whole.
  Needs Required(const std::vector<Region>& outputs, const ReductionPart& part = {}) const;
  // Needs::tensors alone.
  std::vector<Region> RequiredTensors(const std::vector<Region>& outputs, const ReductionPart& part = {}) const;
  // The same into `needed`, which has an element for each tensor of the program, whatever it held before.
  void RequiredTensors(const std::vector<Region>& outputs, const ReductionPart& part, absl::Span<Region> needed) const;

 private:
  struct Linear;  // an index that is a sum of axes, for which a look at the axes' bounds is enough
  struct Load;    // of one expression: the tensor, its indices, and the conditions of the branches around it
  struct Step;    // one expression

  static Linear LinearOf(const te::Index& index, const Step& step);
  // Fills `needed`, whose outputs are known, for all other tensors; returns the work.
  double Infer(const ReductionPart& part, absl::Span<Region> needed) const;

  std::shared_ptr<const te::Program> program_;  // shared by copies of the map
  std::shared_ptr<const std::vector<Step>> steps_;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ACCESS_MAP_H_
