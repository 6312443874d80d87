// Texts in C of scalar operations, on single elements and on vectors, from one table with a row for each operation.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_OP_TEXT_H_
#define FUSION_COMPILER_BACKENDS_TEXT_OP_TEXT_H_

#include <string>
#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::text {

// Text of an operation on single elements, before it is rounded to a type narrower than those of C.
std::string ScalarOpText(const te::ScalarNode& s, const std::vector<std::string>& args);
// Text of an operation on vectors, for every node with a vector form (compiler/movement/vector_form.h); "" for others.
std::string VectorOpText(const te::ScalarNode& s, const std::vector<std::string>& args);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_OP_TEXT_H_
