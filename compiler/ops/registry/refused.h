// Operators that are refused permanently, with the reason.
#ifndef FUSION_COMPILER_OPS_REGISTRY_REFUSED_H_
#define FUSION_COMPILER_OPS_REGISTRY_REFUSED_H_

#include <string>

namespace fusion::ops {

// Returns, in a few words, the reason why `op` is refused; empty for operators that are supported or not yet
// implemented. `op` starts with its domain unless that is the default one.
std::string RefusalReason(const std::string& op);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_REFUSED_H_
