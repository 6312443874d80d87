// Texts in C of vectors: lanes of f32 ("vf") or of i32 and masks ("vi"), see compiler/movement/vector_form.h.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_VECTOR_TEXT_H_
#define FUSION_COMPILER_BACKENDS_TEXT_VECTOR_TEXT_H_

#include <string>

#include "compiler/movement/kernel.h"

namespace fusion::text {

const char* VectorType(DType dtype);
std::string VectorZero(DType dtype);
std::string BroadcastText(DType dtype, const std::string& scalar);
// Text that loads or stores as many elements as there are lanes, beginning at the address `place`.
std::string VectorLoadText(DType dtype, const std::string& place);
// The same for the first `count` lanes only, where the language has such accesses (TaskShape::parts).
std::string PartLoadText(DType dtype, const std::string& place, const std::string& count);
std::string PartStoreText(DType dtype, const std::string& place, const std::string& value, const std::string& count);
// Text of one lane; it may be assigned to.
std::string LaneText(DType dtype, const std::string& vector, const std::string& lane);
std::string VectorStoreText(DType dtype, const std::string& place, const std::string& value);
std::string VectorCastText(const te::ScalarNode& cast, const std::string& x);
// Wraps integers of fewer bits than a lane, and rounds f16 and bf16.
std::string Narrowed(DType dtype, const std::string& x);
// ReductionIdentity: the start value of a named reduction, as a scalar of the accumulator's type. VectorCombine: the
// statement that combines vector `x` into `acc`.
std::string ReductionIdentity(te::ReductionKind kind, DType dtype);
std::string VectorCombine(const te::Reduction& reduction, const std::string& acc, const std::string& x);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_VECTOR_TEXT_H_
