// The one read that stands for pieces of a tensor behind each other: shifted or strided slices that are concatenated.
#ifndef FUSION_COMPILER_TE_PROGRAM_STRIDED_READ_H_
#define FUSION_COMPILER_TE_PROGRAM_STRIDED_READ_H_

#include "compiler/te/program/program.h"

namespace fusion::te {

// The fewest pieces for which one read with divisions in its index is better than a copy for each.
inline constexpr int64_t kLeastPieces = 3;

// `body`, of an expression over `axes`, chooses among plain loads of one tensor by where one of the axes is: in its
// first L values, the next L, and so on. Returns the load that reads the same elements everywhere, if the pieces'
// places advance evenly, over them all or in groups of groups (rows of columns); else null.
//
//   if i < 4 then %0[i] else if i < 8 then %0[i - 3] else %0[i - 6]   →   %0[i%4 + i//4]
Scalar AsStridedRead(const Scalar& body, const std::vector<Axis>& axes);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_STRIDED_READ_H_
