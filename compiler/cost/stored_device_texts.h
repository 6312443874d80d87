#ifndef FUSION_COMPILER_COST_STORED_DEVICE_TEXTS_H_
#define FUSION_COMPILER_COST_STORED_DEVICE_TEXTS_H_

#include <string>
#include <vector>

namespace fusion {

// The texts of the files in devices/.
std::vector<std::string> StoredDeviceTexts();

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_STORED_DEVICE_TEXTS_H_
