// Names of the bundles that one compilation makes for several targets.
#ifndef FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_
#define FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_

#include <string>

namespace fusion {

// "out/model.fusion" and "cuda:sm_90" → "out/model.cuda-sm_90.fusion": before the extension, or at the end where there
// is none; characters that are no letter, digit, '_' or '-' become '-'.
std::string PathForTarget(const std::string& path, const std::string& target);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_TARGET_PATH_H_
