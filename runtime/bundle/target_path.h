// Names of the bundles that one compilation makes for several targets.
#ifndef FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_
#define FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_

#include <string>

namespace fusion {

// Turns "out/model.fusion" and "cuda:sm_90" into "out/model.cuda-sm_90.fusion". The target is inserted before the
// extension, or appended if there is none; characters other than letters, digits, '_' and '-' become '-'.
std::string PathForTarget(const std::string& path, const std::string& target);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_
