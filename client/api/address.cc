#include "client/api/address.h"

#include "runtime/base/user_folders.h"

namespace fusion {

std::string ServerAddress(const std::string& flag) {
  return flag.empty() ? DefaultServerAddress(UserStateFolder()) : flag;
}

}  // namespace fusion
