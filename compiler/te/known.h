// What is known at compile time of tensors computed at run time: abstract interpretation of a program. Of small tensors
// (shapes, extents) each element is followed; of any other, one range that all elements lie in (coordinates, indices).
#ifndef FUSION_COMPILER_TE_KNOWN_H_
#define FUSION_COMPILER_TE_KNOWN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "compiler/te/program.h"

namespace fusion::te {

// An element: its closed range, which holds infinities where its ends are infinite, and, for integers, perhaps that it is
// constant + Σ coefficient·symbol. Symbols are the caller's.
struct Known {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  bool number = false;         // never NaN
  bool negative_zero = true;   // may be -0
  double least = 0;            // no magnitude lies between 0 and this: of a zero infinite
  bool linear = false;
  int64_t constant = 0;
  std::map<int, int64_t> terms;

  static Known Exactly(double value, bool integer);
  bool IsPoint() const { return lo == hi; }
};
// Row-major; of a tensor that is not small, one that holds of every element.
using KnownTensor = std::vector<Known>;

// Beyond this a tensor is not small.
inline constexpr int64_t kMaxKnownElements = 64;
// Beyond this a constant is not looked at.
inline constexpr int64_t kMaxScannedElements = 4096;

// `inputs` parallel to program.inputs; nothing where nothing is known. Returns what is known of program.outputs:
// nothing of one that a routine makes. NaN lies in every range unless `number` is set. Ranges of floats hold for every
// order in which sums are added up, and take in the rounding of each step.
// kRanges: one range for all elements of every tensor, small ones too: the time does not depend on extents.
enum class Detail : uint8_t { kElements, kRanges };
std::vector<std::optional<KnownTensor>> Know(const Program& program,
                                             const std::vector<std::optional<KnownTensor>>& inputs,
                                             Detail detail = Detail::kElements);

// What is known of a constant; nothing where it is too large to look at.
std::optional<KnownTensor> KnowTensor(const Tensor& tensor);

// One range for all elements of a constant, however many there are.
Known RangeOf(const Tensor& tensor);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_KNOWN_H_
