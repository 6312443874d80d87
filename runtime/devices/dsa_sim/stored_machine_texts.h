#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINE_TEXTS_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINE_TEXTS_H_

#include <string>
#include <vector>

namespace fusion::dsa {

// The texts of the files in machines/.
std::vector<std::string> StoredMachineTexts();

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINE_TEXTS_H_
