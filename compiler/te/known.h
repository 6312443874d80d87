// What is known at compile time of small tensors computed at run time (shapes, extents): abstract interpretation of a
// program, one element at a time.
#ifndef FUSION_COMPILER_TE_KNOWN_H_
#define FUSION_COMPILER_TE_KNOWN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "compiler/te/program.h"

namespace fusion::te {

// An element: its closed range, and, for integers, perhaps that it is constant + Σ coefficient·symbol. Symbols are the
// caller's.
struct Known {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  bool linear = false;
  int64_t constant = 0;
  std::map<int, int64_t> terms;

  static Known Exactly(double value, bool integer);
  bool IsPoint() const { return lo == hi; }
};
using KnownTensor = std::vector<Known>;  // row-major

// Beyond this a tensor is not small.
inline constexpr int64_t kMaxKnownElements = 64;

// `inputs` parallel to program.inputs; nothing where nothing is known. Returns what is known of program.outputs:
// nothing for one that is not small, or that a routine makes.
std::vector<std::optional<KnownTensor>> Know(const Program& program,
                                             const std::vector<std::optional<KnownTensor>>& inputs);

// The elements of a small tensor; nothing if it is not small.
std::optional<KnownTensor> KnowTensor(const Tensor& tensor);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_KNOWN_H_
