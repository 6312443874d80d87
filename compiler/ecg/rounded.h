// The mark of nodes whose results are rounded within kernels.
#ifndef FUSION_COMPILER_ECG_ROUNDED_H_
#define FUSION_COMPILER_ECG_ROUNDED_H_

namespace fusion::ecg {

// An attribute that a node of any operator may have (1): its results are rounded to their type before another node uses
// them, also within a kernel, where a compiler would otherwise contract a product and a sum. A pass sets it
// (compiler/rewrite/round_products.h).
inline constexpr char kRounded[] = "rounded";

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_ROUNDED_H_
