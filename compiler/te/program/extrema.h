// Keeps a value equal to itself where its own maximum or minimum is subtracted from it (Softmax, LogSoftmax).
#ifndef FUSION_COMPILER_TE_PROGRAM_EXTREMA_H_
#define FUSION_COMPILER_TE_PROGRAM_EXTREMA_H_

#include "compiler/te/program/program.h"

namespace fusion::te {

// Wraps each product from which an extremum of the same values is subtracted in Rounded. A kernel's compiler would
// contract `x·y − max` into one operation that does not round the product, and the largest element of a row, whose
// product was rounded when the maximum was taken, would differ from the maximum: by 1e30 where it is 1e38. Applies to
// products that Inline has put there; a value that is loaded has been rounded.
void RoundBesideExtrema(Program* program);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_EXTREMA_H_
