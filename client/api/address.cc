#include "client/api/address.h"

#include <stdlib.h>

namespace fusion {
namespace {

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string XdgFolder(const char* variable, const char* below_home) {
  const std::string root = FromEnvironment(variable);
  if (!root.empty()) return root + "/fusion";
  const std::string home = FromEnvironment("HOME");
  return (home.empty() ? "/tmp" : home) + below_home + "/fusion";
}

}  // namespace

std::string StateFolder() { return XdgFolder("XDG_STATE_HOME", "/.local/state"); }
std::string CacheFolder() { return XdgFolder("XDG_CACHE_HOME", "/.cache"); }

std::string ServerAddress(const std::string& flag) {
  if (!flag.empty()) return flag;
  const std::string named = FromEnvironment("FUSION_SERVER");
  return named.empty() ? "unix:" + StateFolder() + "/fusion.sock" : named;
}

}  // namespace fusion
