// The mark of nodes whose results are rounded within kernels.
#ifndef FUSION_COMPILER_ECG_ROUNDED_H_
#define FUSION_COMPILER_ECG_ROUNDED_H_

namespace fusion::ecg {

// An attribute (1) of nodes with results of f32 or f64: these are rounded to their type before another node uses them,
// also within a kernel, where a compiler would otherwise contract a product and a sum. A pass sets it
// (compiler/rewrite/round_products.h), and so may the text of a graph; a model may not.
inline constexpr char kRounded[] = "rounded";

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_ROUNDED_H_
