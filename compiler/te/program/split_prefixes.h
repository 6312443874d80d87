// Prefix reductions (prefix_reduction.h) along long axes in parts. Taken by its definition, such a reduction of n
// elements has n² terms; in parts of √n elements it has about 2 n^1.5, and the parts are independent of each other.
#ifndef FUSION_COMPILER_TE_PROGRAM_SPLIT_PREFIXES_H_
#define FUSION_COMPILER_TE_PROGRAM_SPLIT_PREFIXES_H_

#include <cstdint>
#include <optional>

#include "compiler/te/program/program.h"

namespace fusion::te {

// The longest axis that stays whole.
inline constexpr int64_t kLongestPrefix = 1024;

// Computes each prefix reduction along a longer axis in parts: the prefixes inside of each part, the totals of the
// parts, the prefixes of the totals, and each result from one of either. The ids of tensors stay. nullopt where there
// is none.
//
//   %y[i<n] = sum(k<n) if k < i + 1 then x(k)      %x[p<P, b<B] = if B p + b < n then x(B p + b) else 0
//                                                  %t[p]        = sum(b<B) %x[p, b]
//                                                  %w[p, b]     = sum(k<B) if k < b + 1 then %x[p, k]
//                                                  %s[p]        = sum(k<P) if k < p then %t[k]
//                                                  %y[i]        = %s[i // B] + %w[i // B, i % B]
std::optional<Program> SplitPrefixes(const Program& program);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_SPLIT_PREFIXES_H_
