// Value ranges at compile time of tensors that are computed at run time, by abstract interpretation of a program. Each
// element of a small tensor (shapes, extents) is followed; any other tensor has one range that holds all its elements
// (coordinates, indices).
#ifndef FUSION_COMPILER_TE_RANGES_VALUE_RANGES_H_
#define FUSION_COMPILER_TE_RANGES_VALUE_RANGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/te/program/program.h"
#include "compiler/te/scalar/value_range.h"

namespace fusion::te {

// Row-major. For a tensor that is not small, one range that holds for every element.
using TensorRanges = std::vector<ValueRange>;

// A tensor with more elements than this is not small.
inline constexpr int64_t kMaxRangedElements = 64;
// A constant with more elements than this is not scanned.
inline constexpr int64_t kMaxScannedElements = 4096;

// `inputs` are parallel to program.inputs; nullopt where nothing is known. Returns the value ranges of program.outputs,
// with nullopt for the outputs of a routine. NaN lies in every range unless `number` is set. Ranges of floats hold for
// every order of summation and include the rounding of each step.
//
// kRanges keeps one range per tensor, also for small ones, so that the time does not depend on extents.
enum class Detail : uint8_t { kElements, kRanges };
std::vector<std::optional<TensorRanges>> InferRanges(const Program& program,
                                                     const std::vector<std::optional<TensorRanges>>& inputs,
                                                     Detail detail = Detail::kElements);

// The ranges of single expressions of a program; one range per tensor. The program must outlive it.
class ExpressionRanges {
 public:
  // `inputs` as for InferRanges.
  ExpressionRanges(const Program& program, const std::vector<std::optional<TensorRanges>>& inputs);

  // Returns the range of an expression that occurs in the te's body or behind its reduction, for every element.
  ValueRange Of(const Te& te, const Scalar& s) const;

 private:
  const Program& program_;
  std::vector<std::optional<TensorRanges>> tensors_;
};

// Returns the value ranges of a constant, or nullopt where it is too large to scan.
std::optional<TensorRanges> RangesOfConstant(const Tensor& tensor);

// Returns one range for all elements of a constant, however many there are.
ValueRange RangeOf(const Tensor& tensor);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RANGES_VALUE_RANGES_H_
