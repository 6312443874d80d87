// The server's address.
#ifndef FUSION_CLIENT_API_ADDRESS_H_
#define FUSION_CLIENT_API_ADDRESS_H_

#include <string>

namespace fusion {

// `flag` if not empty, else DefaultServerAddress of the user's state folder (runtime/base/user_folders.h).
std::string ServerAddress(const std::string& flag);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_ADDRESS_H_
