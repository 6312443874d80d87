// Operators that are refused for good, and why.
#ifndef FUSION_COMPILER_OPS_REFUSED_H_
#define FUSION_COMPILER_OPS_REFUSED_H_

#include <string>

namespace fusion::ops {

// The class of reason for which `op` (its domain before it where that is not the default one) is refused, in a few
// words; empty for operators that are supported or merely not there yet.
std::string RefusalReason(const std::string& op);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REFUSED_H_
