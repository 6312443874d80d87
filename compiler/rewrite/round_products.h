// Keeps a kernel from making one multiply-add of two operators where that could give another kind of number.
#ifndef FUSION_COMPILER_REWRITE_ROUND_PRODUCTS_H_
#define FUSION_COMPILER_REWRITE_ROUND_PRODUCTS_H_

#include "compiler/ecg/graph.h"

namespace fusion::rewrite {

// Marks (ecg::kRounded) each node whose result is a product that another node adds to something, or subtracts, unless
// value ranges show that the product cannot overflow, or that the sum cannot bring it back into the type's range. A
// multiply-add does not round the product, so that x + y·x would be finite in a kernel where y·x is an infinity.
// Products that are added within one operator (of a reduction, a normalisation, a polynomial) stay as they are.
ecg::Graph RoundProducts(const ecg::Graph& graph);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_ROUND_PRODUCTS_H_
