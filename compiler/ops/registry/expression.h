// An operator that is one tensor expression, given by its text. A pass that opens an operator makes one of each
// expression of its lowering, so that planners can cut between them. Lowered together again, they are the expressions
// that they were made from.
#ifndef FUSION_COMPILER_OPS_REGISTRY_EXPRESSION_H_
#define FUSION_COMPILER_OPS_REGISTRY_EXPRESSION_H_

#include <string>
#include <vector>

#include "compiler/te/program/program.h"

namespace fusion::ops {

inline constexpr char kExpression[] = "te.Expression";
inline constexpr char kExpressionText[] = "te";  // its attribute: a program of one expression

struct Expression {
  std::string text;
  std::vector<te::TensorId> inputs;  // of the program that it was written from, in the order of the operator's inputs
};

// Writes an expression of the program as the text of an operator.
Expression ToExpression(const te::Program& program, const te::Te& te);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_EXPRESSION_H_
